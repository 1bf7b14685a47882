"""The look of the console: base view, navigation, state badges, formatting and the files the browser loads.

Furniture: it imports no domain app. Each app brings its own pages (`<app>/console`), and `platform_site.home`
composes the page that needs more than one of them. Nothing here writes inline script or style, so a strict
content security policy can hold; everything the browser loads is served from this folder.
"""
