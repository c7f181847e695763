"""Build the manual as a site for /guide: the pages of `docs/` and what is written from the code.

`make guide` runs it, and so do the image's build and a test. A broken link, or a page outside the
navigation of `zensical.toml`, ends it.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # Run as a file, Python looks for modules beside it.

from scripts import guide_reference  # noqa: E402

WORK: Final = ROOT / "build" / "guide"
SITE: Final = ROOT / "app" / "integrations" / "guide" / "site"

ROOT_PAGES: Final = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages of the repository's first folder that the site has too."""

REFERENCES: Final = {
    ".env.example": "reference/settings.md",
    "app/errors.py": "reference/errors.md",
    "app/platform/outbox/models.py": "reference/events.md",
    "app/cli/main.py": "reference/commands.md",
    "kemem": "reference/client.md",
}
"""Files that pages link to, and the page of the site that is made from them."""

_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:]+)\)")
_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_SHADOW_STYLE: Final = re.compile(r'(\w+)\.appendChild\(\w+\("style",\{\},(\w+)\.toString\(\)\)\)')
_INLINE_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class GuideError(Exception):
    """The guide cannot be built; the message says what to mend."""


def build(site: Path = SITE, work: Path = WORK, docs: Path = ROOT / "docs") -> None:
    """Build the site anew and put it in the place of the one at `site`.

    Raises:
        GuideError: a link leads nowhere, or a page is not in the navigation.

    """
    shutil.rmtree(work, ignore_errors=True)
    collect(work / "pages", docs)
    config = configuration(docs)
    (work / "zensical.toml").write_text(config, encoding="utf-8")
    check_navigation(tomllib.loads(config), work / "pages")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(  # noqa: S603 (our own Python)
        command, cwd=work, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GuideError(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr))
    move_scripts_into_files(work / "site")
    adopt_search_styles(work / "site")
    for name in ("sitemap.xml", "404.html"):  # For a site at the root of a public host.
        (work / "site" / name).unlink()
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(work / "site", site)


def collect(pages: Path, docs: Path) -> None:
    """Write every page of the site to `pages`, with links that hold there."""
    shutil.copytree(docs, pages)
    for name in ROOT_PAGES:
        shutil.copy(ROOT / name, pages / name)
    for page in pages.rglob("*.md"):
        source = ROOT / page.name if page.name in ROOT_PAGES else docs / page.relative_to(pages)
        depth = len(page.relative_to(pages).parts) - 1
        text = page.read_text(encoding="utf-8")
        page.write_text(linked(text, source, docs, depth), encoding="utf-8")
    (pages / "reference").mkdir()
    for name, text in guide_reference.pages().items():
        (pages / "reference" / name).write_text(text, encoding="utf-8")


def linked(text: str, source: Path, docs: Path, depth: int) -> str:
    """The text of the page at `source`, whose links into the repository lead to pages of the site;
    what the site does not have is named without a link.
    """

    def replaced(match: re.Match[str]) -> str:
        label, link = match.groups()
        name, hash_sign, anchor = link.partition("#")
        if not name:
            return match.group()
        target = (source.parent / name).resolve()
        if docs in target.parents and target.is_file():
            path = str(target.relative_to(docs))
        elif not target.is_relative_to(ROOT) or not target.exists():
            return match.group()  # Broken: the strict build says so.
        else:
            path = str(target.relative_to(ROOT))
            path = REFERENCES.get(path, path if path in ROOT_PAGES else "")
        return f"[{label}]({'../' * depth}{path}{hash_sign}{anchor})" if path else label

    return _outside_fences(text, lambda part: _LINK.sub(replaced, part))


def _outside_fences(text: str, change: Any) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def configuration(docs: Path) -> str:
    """The configuration, with each decision record in the navigation."""
    records = sorted(f'"decisions/{record.name}"' for record in docs.glob("decisions/[0-9]*.md"))
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    return text.replace('"Decisions" = []', f'"Decisions" = [{", ".join(records)}]')


def check_navigation(config: dict[str, Any], pages: Path) -> None:
    """Raises GuideError where pages and navigation differ."""
    named = list(_named(config["project"]["nav"]))
    there = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    wrong = [
        *(f"{name} is in no entry of the navigation" for name in sorted(there - set(named))),
        *(f"the navigation names {name}, which is no page" for name in named if name not in there),
    ]
    if wrong:
        raise GuideError("zensical.toml: " + "; ".join(wrong))


def _named(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        for entry in entries.values():
            yield from _named(entry)
    else:
        for entry in entries:
            yield from _named(entry)


def move_scripts_into_files(site: Path) -> None:
    """Give each script that stands in a page a file: the site's policy runs no others."""
    for page in site.rglob("*.html"):
        base = "../" * (len(page.relative_to(site).parts) - 1)

        def stored(match: re.Match[str], base: str = base) -> str:
            content = match[1]
            name = f"assets/javascripts/page.{hashlib.sha256(content.encode()).hexdigest()[:8]}.js"
            (site / name).write_text(content, encoding="utf-8")
            return f'<script src="{base}{name}"></script>'

        text = page.read_text(encoding="utf-8")
        page.write_text(_INLINE_SCRIPT.sub(stored, text), encoding="utf-8")


def adopt_search_styles(site: Path) -> None:
    """Let the search box have its style without a `<style>`, which the site's policy refuses.

    Raises:
        GuideError: the theme's script does it in another way now.

    """
    [script] = site.glob("assets/javascripts/bundle.*.js")
    adopted = r"\1.adoptedStyleSheets=[(s=>(s.replaceSync(\2.toString()),s))(new CSSStyleSheet)]"
    text, number = _SHADOW_STYLE.subn(adopted, script.read_text(encoding="utf-8"))
    if number != 1:
        raise GuideError(f"{script.name} styles the search box in another way: mend this script.")
    script.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        build()
    except GuideError as error:
        sys.exit(f"The guide was not built. {error}")
