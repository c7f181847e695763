"""The documents: links lead somewhere, settings exist, nothing points outside the repository."""

import ast
import re
from pathlib import Path

import pytest

from app.settings import Settings, variable

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MANUAL = [page for page in PAGES if page.parent.name != "decisions"]
TEXTS = [*PAGES, ROOT / ".env.example", *ROOT.glob("benchmarks/**/*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SETTING = re.compile(r"\bMEMORY_[A-Z0-9_]+\b")
PLAN_ID = re.compile(r"\b[A-Z]-\d{2}\b")
CODE = re.compile(r"`((?:app|kemem|client|migrations|tests|benchmarks|docs)/[\w./-]+)`")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
OUTSIDE = re.compile(r"\b(?:design|house|peers|features|style-examples)\.md\b")


def anchors(page: Path) -> set[str]:
    """Names that a heading of `page` can be linked by, as GitHub makes them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in headings}


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", MANUAL, ids=shown)
def test_pages_name_only_files_that_exist(page: Path) -> None:
    for name in CODE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", MANUAL, ids=shown)
def test_python_of_a_page_is_python(page: Path) -> None:
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(LINK.findall(index))


def test_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150


def test_documents_name_only_settings_that_exist() -> None:
    known = {variable(name) for name in Settings.model_fields}
    for page in PAGES:
        named = set(SETTING.findall(page.read_text(encoding="utf-8")))
        assert named <= known, page.name


def test_documents_need_nothing_outside_the_repository() -> None:
    for text in TEXTS:
        content = text.read_text(encoding="utf-8")
        assert not PLAN_ID.findall(content), text.name
        assert not OUTSIDE.findall(content), text.name


def test_decision_records_say_their_status() -> None:
    for record in (ROOT / "docs" / "decisions").glob("[0-9]*.md"):
        assert record.read_text(encoding="utf-8").splitlines()[2].startswith("Status: "), (
            record.name
        )
