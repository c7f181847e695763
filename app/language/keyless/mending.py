"""What a correction puts in the place of what was said before it, in both languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from app.language.keyless.attributes import Attribute, attribute_of
from app.language.keyless.patterns import compiled, exact
from app.language.keyless.statements import CORRECTED, Statement
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk


@dataclass(frozen=True, slots=True)
class Correction:
    """What holds instead, and the mistake in the same words where it is known.

    `rest` is what the message says besides.
    """

    statements: tuple[Statement, ...]
    errors: tuple[str | None, ...]
    rest: str


_SPANS: Final = (
    lazy_pattern(r"(?:周|星期|礼拜|週)[一二三四五六日天末](?:上午|下午|晚上|早上|中午|傍晚)"),
    lazy_pattern(r"[0-9一二三四五六七八九十]{1,3}[日号號](?:上午|下午|晚上|早上|中午|傍晚|凌晨)"),
    lazy_pattern(r"(?:上午|下午|晚上|早上|中午)(?:[0-9]{1,2}|[一二两三四五六七八九十]{1,3})点半?"),
)
"""A day and its part, which are set right together."""
_CLASSES: Final = (
    compiled(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"),
    compiled(
        r"""
        \b(?:
            january|february|march|april|may|june|july|august|september|october|november|
            december
        )\b
        """
    ),
    lazy_pattern(r"(?:周|星期|礼拜|週)[一二三四五六日天末]"),
    exact(
        r"""
        (?:[0-9]{1,2}|十[一二]|[一二三四五六七八九十])月(?:(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3})[日号號])?
        """
    ),
    lazy_pattern(r"[0-9一二三四五六七八九十]{1,3}[日号號]"),
    lazy_pattern(r"(?:[0-9]{1,2}|[一二两三四五六七八九十]{1,3})点半?"),
    compiled(r"\b[0-9]{1,2}(?::[0-9]{2})? ?(?:am|pm)\b"),
    lazy_pattern(r"(?:19|20)[0-9]{2}年?"),
    lazy_pattern(r"(?<![0-9])[0-9]+(?:\.[0-9]+)?(?![0-9])"),
    lazy_pattern(r"[一二两三四五六七八九十百0-9]+[万千百][一二三四五六七八九]?(?![0-9])"),
    lazy_pattern(r"[一二两三四五六七八九十百千万]+(?=个|只|条|岁|年|天|周|次|块|元|人)"),
)


def restated(
    statements: Sequence[Statement],
    old: str | None,
    known: Sequence[Statement],
    *,
    certain: bool,
    rest: str,
) -> Correction | None:
    """A whole statement in the place of another: which one, if any is known or named."""
    mended: list[Statement] = []
    errors: list[str | None] = []
    for each in statements:
        given = attribute_of(each.content)
        error = _mistaken(each, given, known) if certain else None
        if old and given:
            error = each.content.replace(given[1], old, 1)
        if not certain and not (old and given):
            return None
        mended.append(
            Statement(each.content, "correction", CORRECTED, each.retracts, each.past, each.project)
        )
        errors.append(error or (_swapped(each.content, old) if old else None))
    return Correction(tuple(mended), tuple(errors), rest) if mended else None


def _swapped(content: str, old: str) -> str | None:
    """The sentence with the old value where one of the same class stands."""
    for pattern in _CLASSES:
        if pattern.fullmatch(old) and pattern.search(content):
            return pattern.sub(old, content, count=1)
    return None


def _mistaken(
    statement: Statement, given: Attribute | None, known: Sequence[Statement]
) -> str | None:
    """What was said before in the same frame with another filling."""
    for other in reversed(known[-8:]):
        theirs = attribute_of(other.content)
        if given and theirs and theirs[0] == given[0] and theirs[1] != given[1]:
            return other.content
        same = SequenceMatcher(None, other.content, statement.content, autojunk=False).ratio()
        if not given and other.content != statement.content and same >= 0.6:
            return other.content
    return None


def replaced(new: str, old: str | None, known: Sequence[Statement]) -> tuple[Statement, str] | None:
    """The newest statement before with the old value in it, or one like the new, and the new."""
    new = re.sub(r"^(?:in|at|a|an|the|on|for) (?=\w)", "", new.strip())
    for other in reversed(known[-8:]):
        content = other.content
        target = _target(content, new, old)
        if target is None or target.casefold() == new.casefold():
            continue
        value = _same_class(new, target) or new
        behind = content[content.find(target) + len(target) :][:1]
        if has_cjk(behind) and value.endswith(behind):
            value = value[:-1]
        mended = content.replace(target, value, 1)
        if mended == content:
            continue
        return (
            Statement(mended, "correction", CORRECTED, other.retracts, other.past, other.project),
            content,
        )
    return None


def _target(content: str, new: str, old: str | None) -> str | None:
    if old:
        old = re.sub(r"^(?:in|at|a|an|the|on|for) (?=\w)", "", old.strip())
        place = content.casefold().find(old.casefold())
        if place >= 0:
            return content[place : place + len(old)]
        return _in_full(content, old)
    for pattern in (*_SPANS, *_CLASSES):
        if pattern.search(new):
            found = pattern.findall(content)
            if len(found) == 1:
                return str(found[0])
            if pattern not in _SPANS:
                return None
    given = attribute_of(content)
    if (
        given
        and len(new) <= 30
        and (new[:1].isupper() or not new.isascii())
        and len(new.split()) <= 3
    ):
        return given[1]
    return None


def _in_full(content: str, short: str) -> str | None:
    """What a Chinese short form stands for: 招商银行 for 招行."""
    if not 2 <= len(short) <= 4 or not re.fullmatch(r"[\u4e00-\u9fff]+", short):
        return None
    found = re.search("[\u4e00-\u9fff]{0,2}?".join(short), content)
    return found[0] if found else None


def _same_class(new: str, target: str) -> str | None:
    """Of what was said, only the part that takes the place of the target: 五月 of 五月结婚."""
    for pattern in _CLASSES:
        if pattern.fullmatch(target):
            found = pattern.search(new)
            return found[0] if found else None
    return None
