"""HTML by Lexbor: what a reader would see, with headings and paragraphs kept apart."""

import re
from importlib.metadata import version
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from app.language.parsing.decoding import decoded
from app.language.parsing.documents import Document, DocumentLimits, Parser, checked

_UNSEEN: Final = (
    "script", "style", "noscript", "template", "head", "nav", "svg", "iframe", "object", "form",
)  # fmt: skip
# What a reader is not shown may have been put there for a model.
# The root counts as seen, whatever it says: scripts show such pages when they are ready.
_HIDDEN: Final = '[hidden]:not(html):not(body):not([hidden="until-found" i])'
_INVISIBLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|content-visibility\s*:\s*hidden|(?:opacity|font-size)\s*:\s*[0.]+(?:px|r?em|pt|%)?)"
    r"\s*(?:!\s*important\s*)?(?:;|$)",
    re.IGNORECASE,
)
_COMMENTS_OF_STYLE = re.compile(r"/\*.*?\*/", re.DOTALL)
_BLOCKS: Final = (
    "p", "div", "section", "article", "aside", "header", "footer", "main", "ul", "ol", "li", "dl",
    "dt", "dd", "table", "tr", "blockquote", "pre", "figure", "figcaption", "hr", "address",
    "h1", "h2", "h3", "h4", "h5", "h6",
)  # fmt: skip
# Private characters of Unicode, which no page should hold; a paragraph, a line, a cell.
_BREAK, _LINE, _CELL = "\ue000", "\ue001", "\ue002"
_SPACES = re.compile(r"\s+")
_BREAKS = re.compile(rf"\s*{_BREAK}[\s{_BREAK}{_LINE}]*")
_LINES = re.compile(rf" *{_LINE} *")
_LAST_CELL = re.compile(r" \| ?$", re.MULTILINE)
_CELLS = re.compile(rf"\s*{_CELL}\s*")


def read_html(content: bytes, limits: DocumentLimits) -> Document:
    """What a reader of the page would see.

    Raises:
        ParseError: it is no text, empty or too long.

    """
    return checked(Document(text_of(decoded(content, declares=True))), limits)


def text_of(html: str) -> str:
    """The text of a page, one blank line between blocks."""
    for mark in (_BREAK, _LINE, _CELL):
        html = html.replace(mark, "")
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    heading = title.text(strip=True) if title is not None else ""
    tree.strip_tags(list(_UNSEEN))
    _take_hidden(tree)
    for node in tree.css(", ".join(_BLOCKS)):
        level = re.fullmatch(r"h([1-6])", node.tag or "")
        node.insert_before(_BREAK + ("#" * int(level[1]) + " " if level else ""))
        node.insert_after(_BREAK)
    for node in tree.css("br"):
        node.insert_before(_LINE)
    for node in tree.css("td, th"):
        node.insert_after(_CELL)
    body = tree.body
    text = _SPACES.sub(" ", body.text() if body is not None else "")
    text = _CELLS.sub(" | ", text)
    text = _LINES.sub("\n", _BREAKS.sub("\n\n", text))
    text = _LAST_CELL.sub("", text).strip()
    return f"# {heading}\n\n{text}" if heading and heading not in text[:500] else text


def _take_hidden(tree: LexborHTMLParser) -> None:
    """Remove what the page itself says is not to be seen, as far as each element says it."""
    for node in tree.css('[aria-hidden="true" i]'):
        node.attrs["hidden"] = ""
    for node in tree.css("[style]"):
        if _INVISIBLE.search(_COMMENTS_OF_STYLE.sub("", node.attributes.get("style") or "")):
            node.attrs["hidden"] = ""
    # Backwards: with a node goes all that is in it, and what is gone must not go again.
    for node in reversed(tree.css(_HIDDEN)):
        node.decompose()


HTML: Final = Parser(f"selectolax/{version('selectolax')} html/2", read_html)
