"""Where a message is cut: into sentences, and sentences into clauses that could stand alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.language.keyless.patterns import exact
from app.language.text.lazy_pattern import lazy_pattern

MAX_SENTENCE: Final = 400
"""Longer ones are pasted text, not talk; nothing is read from them."""

_MOST_TITLES = 26
_MISREAD = lazy_pattern(
    r"[,;.?!:&]|\b(?:i|i'm|my|me|we|us|our|you|your|and|or|but)\b", re.IGNORECASE
)
_FENCE = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = lazy_pattern(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_CODE = lazy_pattern(
    r"[{};]\s*$|^\s*(?:def|class|import|from \w+ import|"
    r"return|function|const|let|var|public|private"
    r"|SELECT|INSERT|UPDATE|DELETE|CREATE|FROM|WHERE|"
    r"#include|print\(|console\.|if \(|for \(|while \("
    r"|\$ |>>> |npm |pip |git |sudo |docker |curl |<\w+[ >]|</|//|@\w+$)|=>|==|!=|\w\(\"|^\s*\w+ = "
)
_LATIN_END = lazy_pattern(r"(?<=[^\s.][.!])(?:\s+|$)|(?<=[?])\s*|[!]{2,}\s*|\.{2,}\s*|\n+")
_CHINESE_END = lazy_pattern(
    r"(?<=[。！!；;])|(?<=[?？])|\n+|(?:…+|\.{3,})|(?<=[\u4e00-\u9fff][~～])"
)
_ABBREVIATION = exact(
    r"""
    \b(?:
        [A-Za-z]|Dr|Mr|Mrs|Ms|St|Prof|Sr|Jr|vs|etc|approx|No|Nr|Inc|Ltd|Co|e\.g|i\.e|a\.m|p\.m|
        Ph\.D|U\.S
    )\.$
    """
)
_QUOTE = exact(
    r"""
    "[^"\n]{1,300}"|“[^”\n]{1,300}”|「[^」\n]{1,300}」|『[^』\n]{1,300}』|
    (?<![\w])'[^'\n]{2,300}'(?![\w])
    """
)
# The book "I, Robot", my song is "My Way", called "We": a title, whatever it says.
_TITLED = lazy_pattern(
    r"(?:\b(?:book|novel|song|track|album|movie|film|series|show|game|play|musical|poem|podcast"
    r"|blog|band|called|named|titled|entitled)|\bfavou?rite (?:\w+ ){1,3}(?:is|was|are)),? $",
    re.IGNORECASE,
)
_SAYING = lazy_pattern(
    r"(?:\b(?:sa(?:y|ys|id|ying)|told|tells?|ask(?:s|ed)?|wr(?:ite|ites|ote)|repl(?:y|ies|ied)|"
    r"read|thinks?|message|goes|like|texted|answered|phrase|sentence|line)(?: \w+)?|[,:])\s*$",
    re.IGNORECASE,
)
_TITLE_WORD = lazy_pattern(r"[A-ZÀ-Þ0-9]\S*|\w{1,3}\W?")
# The head of a pasted mail: two such lines, or one that names an address.
_MAIL = lazy_pattern(
    r"^[ \t]*(?:from|to|cc|bcc|sent|date|subject|reply-to|发件人|收件人|抄送|主题)"
    r"[ \t]?[:：].*\n"
    r"[ \t]*(?:from|to|cc|bcc|sent|date|subject|reply-to|发件人|收件人|抄送|主题|日期)"
    r"[ \t]?[:：]"
    r"|^[ \t]*from:[^\n]*@|^[ \t]*subject:[ \t]",
    re.IGNORECASE | re.MULTILINE,
)
_SPEAKS = lazy_pattern(r"\b(?:i|i'm|im|my|me|we|our)\b|我|咱|俺|本人", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence; `question` when it ends as one."""

    text: str
    question: bool


def without_foreign_words(text: str) -> str:
    """The message without code, quoted lines, pasted mail, and quotations that say "I".

    A quotation leaves `"…"`: names and titles in quotes stay.
    """
    mail = _MAIL.search(text)
    text = text[: mail.start()] if mail else text
    text = _QUOTED_LINE.sub("", _FENCE.sub("\n", text))
    lines = (line for line in text.splitlines() if not _CODE.search(line))
    return _QUOTE.sub(_quotation, "\n".join(lines))


def _quotation(match: re.Match[str]) -> str:
    return '"…"' if _SPEAKS.search(match[0]) and not _is_title(match) else match[0]


def _is_title(match: re.Match[str]) -> bool:
    """Tell a title by the noun before it, or by its capitals where nobody is quoted."""
    before = match.string[max(match.start() - 60, 0) : match.start()]
    if _TITLED.search(before):
        return True
    said = match[0][1:-1]
    if _SAYING.search(before) or said.endswith((".", "!", "?")) or not before.strip():
        return False
    titled = said.split()
    return 1 < len(titled) <= 10 and all(_TITLE_WORD.fullmatch(each) for each in titled)


def without_titles(text: str) -> tuple[str, list[str]]:
    """The text with `"Aa"`, `"Ba"`, … for the titles that grammar would misread, and these."""
    titles: list[str] = []

    def put(match: re.Match[str]) -> str:
        if len(titles) == _MOST_TITLES or not (_MISREAD.search(match[0]) and _is_title(match)):
            return match[0]
        titles.append(match[0])
        return f'"{chr(ord("A") + len(titles) - 1)}a"'

    return _QUOTE.sub(put, text), titles


def with_titles(text: str, titles: list[str]) -> str:
    """Put the titles back where `without_titles` took them out."""
    for number, title in enumerate(titles):
        text = text.replace(f'"{chr(ord("A") + number)}a"', title)
    return text


def sentences(text: str, *, chinese: bool) -> Iterator[Sentence]:
    """Sentences in order, without those longer than MAX_SENTENCE."""
    for piece in _cut(text, _CHINESE_END if chinese else _LATIN_END):
        stripped = piece.strip(" \t*-•·~～")
        if not stripped or len(stripped) > MAX_SENTENCE:
            continue
        question = stripped.endswith(("?", "？"))
        yield Sentence(stripped.rstrip(".!?。！？;；~～ "), question)


def _cut(text: str, end: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for match in end.finditer(text):
        before = text[start : match.start()]
        if "\n" not in match[0] and _ABBREVIATION.search(before[-8:]):
            continue
        yield before
        start = match.end()
    yield text[start:]
