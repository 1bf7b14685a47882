"""Who is calling: tenants, API tokens, roles, and the records that make a repeated request harmless.

A *tenant* owns workflows, runs and tokens. A *token* is a secret bound to one tenant and one role; only
its SHA-256 digest is stored. A *principal* is what a request acts as once its credential was accepted:
interfaces read the tenant and the role from it and never look at the credential again.

This app is furniture: it imports no domain app. The tenant named `default` exists from the first
migration on, and whoever needs it makes it again (`tenants.default_tenant()`).
"""
