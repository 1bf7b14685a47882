"""The browsable documentation works without a network."""

from __future__ import annotations

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client


@pytest.mark.django_db
def test_the_pages_own_files_come_from_this_machine() -> None:
    page = Client().get("/api/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text)
    files = re.findall(r"[\"'](/static/[^\"']+)[\"']", text)
    assert len(files) >= 3
    for file in files:
        assert finders.find(file.removeprefix("/static/")), file


@pytest.mark.django_db
def test_the_document_is_served() -> None:
    response = Client().get("/api/schema", headers={"accept": "application/json"})
    assert response.status_code == 200
    assert response.json()["openapi"].startswith("3.1")
