"""The guide is built strictly, from every page and from the code as it is."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typing_extensions import override

import kemem
from app.cli.main import COMMANDS
from app.governance.webhooks.schemas import PublishedType
from app.settings import Settings, variable
from scripts.build_guide import GuideError, build, check_navigation, collect
from scripts.guide_reference import pages
from tests.client.test_client_generated import methods

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"^    code = \"(\w+)\"", re.MULTILINE)


class Loaded(HTMLParser):
    """What a page loads, and what in it a policy without inline code would refuse."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.refused: list[str] = []
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        data = given.get("type") == "application/json"
        if tag == "style" or (tag == "script" and "src" not in given and not data):
            self.refused.append(tag)
        self.refused += [name for name in given if name == "style" or name.startswith("on")]
        if tag in {"script", "img", "iframe"}:
            self.addresses.append(given.get("src") or "")
        if tag == "link" and given.get("rel") in {"stylesheet", "icon", "preconnect", "preload"}:
            self.addresses.append(given.get("href") or "")


def test_every_page_is_built(guide_site: Path) -> None:
    sources = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]

    expected = {str(page).replace("README", "index") for page in sources}
    assert expected <= {str(page.relative_to(guide_site)) for page in guide_site.rglob("*.html")}


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code(guide_site: Path) -> None:
    for page in guide_site.rglob("*.html"):
        loaded = Loaded(page.read_text(encoding="utf-8"))
        assert not loaded.refused, page.name
        for address in filter(None, loaded.addresses):
            assert ":" not in address, f"{page.name} loads {address}"
            target = (page.parent / address).resolve()
            assert target.is_file(), f"{page.name} loads {address}"
            assert guide_site in target.parents


def test_links_out_of_the_manual_become_pages_or_text(guide_site: Path) -> None:
    shown = (guide_site / "configuration.html").read_text(encoding="utf-8")

    assert 'href="reference/settings.html"' in shown
    assert "../.env.example" not in shown


def test_broken_link_ends_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs)
    with (docs / "keys.md").open("a", encoding="utf-8") as page:
        page.write("\nSee [this](nowhere.md).\n")

    with pytest.raises(GuideError, match=r"\(nowhere\.md\)"):
        build(tmp_path / "site", tmp_path / "work", docs)
    assert not (tmp_path / "site").exists()


def test_page_outside_the_navigation_ends_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text("# A", encoding="utf-8")
    (docs / "lonely.md").write_text("# B", encoding="utf-8")
    collect(tmp_path / "pages", docs)
    there = [str(page.relative_to(tmp_path / "pages")) for page in tmp_path.rglob("pages/**/*.md")]

    with pytest.raises(GuideError, match=r"lonely\.md is in no entry"):
        check_navigation({"project": {"nav": [set(there) - {"lonely.md"}]}}, tmp_path / "pages")
    with pytest.raises(GuideError, match=r"gone\.md, which is no page"):
        check_navigation({"project": {"nav": [*there, "gone.md"]}}, tmp_path / "pages")
    check_navigation({"project": {"nav": [{"Pages": there}]}}, tmp_path / "pages")


def test_reference_has_every_setting() -> None:
    shown = pages()["settings.md"]

    assert all(f"| `{variable(name)}` |" in shown for name in Settings.model_fields)


def test_reference_has_every_error_code() -> None:
    codes = {
        code
        for path in (ROOT / "app").rglob("*.py")
        if "DomainError" in (text := path.read_text(encoding="utf-8")) or path.name == "errors.py"
        for code in CODE.findall(text)
    }

    assert len(codes) > 100
    assert codes <= set(re.findall(r"`(\w+)`", pages()["errors.md"]))


def test_reference_has_what_a_connection_is_refused_with() -> None:
    assert "| 431 | `headers_too_large` |" in pages()["errors.md"]


def test_reference_has_every_event_and_command() -> None:
    assert all(f"- `{kind}`" in pages()["events.md"] for kind in PublishedType.__args__)
    shown = pages()["commands.md"]
    assert all(
        (f"## kemem {name}\n" in shown) is not listed.hidden for name, listed in COMMANDS.items()
    )
    assert "| `--dry-run` |" in shown


def test_reference_has_every_method_of_the_client() -> None:
    shown = pages()["client.md"]

    for path, kind in {"memory": kemem.Memory, "memory.graph": kemem.Graph}.items():
        callable_ = {name for name, member in methods(kind).items() if callable(member)}
        assert callable_, path
        assert all(f"### {path}.{name}\n" in shown for name in callable_)
