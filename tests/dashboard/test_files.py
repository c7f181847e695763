"""How the page and its files are delivered; what the page does is tested in a browser."""

import re

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.integrations.dashboard.router import PAGE, built_files
from tests.support.document import document
from tests.support.service import client_of

PAGE_URL = "http://test/dashboard"


@pytest.fixture
async def stranger(app: FastAPI):
    async with client_of(app, None) as client:
        yield client


async def test_page_needs_no_key_and_is_kept_nowhere(stranger: AsyncClient) -> None:
    answer = await stranger.get(PAGE_URL)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_page_may_run_and_load_only_what_the_service_serves(stranger: AsyncClient) -> None:
    answer = await stranger.get(PAGE_URL)

    policy = dict(
        directive.split(" ", 1)
        for directive in answer.headers["content-security-policy"].split("; ")
    )
    assert policy.pop("frame-ancestors") == policy.pop("base-uri") == "'none'"
    assert policy.pop("form-action") == policy.pop("default-src") == "'none'"
    assert policy == dict.fromkeys(
        ["script-src", "style-src", "img-src", "font-src", "connect-src"], "'self'"
    )


async def test_page_has_no_inline_script_style_or_handler(stranger: AsyncClient) -> None:
    page = (await stranger.get(PAGE_URL)).text

    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == [""]
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)


async def test_every_file_that_the_page_names_is_kept_for_ever(stranger: AsyncClient) -> None:
    page = (await stranger.get(PAGE_URL)).text
    named = re.findall(r'(?:src|href)="([^"]+)"', page)

    assert len(named) >= 3
    for path in named:
        answer = await stranger.get(f"http://test{path}")
        assert answer.status_code == 200, path
        assert answer.headers.get_list("cache-control") == ["public, max-age=31536000, immutable"]
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_files_are_compressed_for_those_who_can_read_it(stranger: AsyncClient) -> None:
    script = next(name for name in sorted(built_files()) if name.endswith(".js"))
    url = f"{PAGE_URL}/assets/{script}"

    packed = await stranger.get(url, headers={"Accept-Encoding": "br, gzip"})
    plain = await stranger.get(url, headers={"Accept-Encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.content == plain.content


@pytest.mark.parametrize("name", [PAGE, "nothing.js", "..%2Frouter.py", "%2e%2e%2fbundle.py"])
async def test_other_names_are_not_found(stranger: AsyncClient, name: str) -> None:
    answer = await stranger.get(f"{PAGE_URL}/assets/{name}")

    assert answer.status_code == 404
    assert answer.headers.get_list("cache-control") == ["no-store"]


def test_page_is_no_part_of_the_published_document() -> None:
    assert not [path for path in document()["paths"] if "dashboard" in path]
