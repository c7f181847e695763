"""One thing said twice in one Chinese message: 我姓段, 叫我老段 and 都奔五的人了, 今年47."""

import re
from collections.abc import Sequence
from typing import Final

from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import exact
from app.language.keyless.statements import Statement
from app.language.text.lazy_pattern import lazy_pattern

NICKNAME: Final = "用户希望被叫做"
_NAME: Final = exact(
    r"用户(?:的)?(?:免贵|复|敝|贱|本)?(?:姓|名字|名|大名|全名|真名|叫|是|：|:)+(?P<name>\S{1,8})$"
)
_ROUGH_AGE: Final = exact(
    r"用户\S{0,4}(?:奔[二三四五六七八][十了]?|年[过近]\S|本命年|\S0后|零零后)"
)
_EXACT_AGE: Final = exact(
    r"用户(?:\S{0,8})(?:[1-9][0-9]|[二三四五六七八九]?十[一二三四五六七八九]?)(?:周?岁|了|$)"
)
_BORN: Final = exact(r"用户\S{0,9}[0-9零〇一二三四五六七八九]{2,4}年\S{0,6}(?:的|生\S{0,2})$")
_ROUGH_ORIGIN: Final = exact(r"用户\S{0,4}(?:在\S{1,4}(?:边|里|上|村|山)?长大的?|农村的?)$")
_ORIGIN: Final = exact(r"用户\S{0,6}?(?:\S{2,8}人$|老家\S{2,}|来自\S{2,}|是\S{2,6}的$)")
_SIGN: Final = lazy_pattern(r"[\u4e00-\u9fffA-Za-z0-9]")
_SHARED: Final = 6
_OVER: Final = frozenset("用户现在没了卖掉的不已经有还都也再家早就")


def without_echoes(found: Sequence[Statement]) -> list[Statement]:
    """The statements of one message in order, each thing once, as exactly as it was said."""
    told = [simplified(each.content) for each in found]
    return [each for number, each in enumerate(found) if not _is_echo(number, found, told)]


def _repeats(this: str, before: Sequence[str]) -> bool:
    """Tell whether nearly all of its signs stand together in one statement before it."""
    signs = set(_SIGN.findall(this)) - _OVER
    return len(signs) > 1 and any(
        len(signs - set(each)) <= len(signs) // _SHARED for each in before
    )


def _is_echo(number: int, found: Sequence[Statement], told: Sequence[str]) -> bool:
    this, before = told[number], told[:number]
    others = [*before, *told[number + 1 :]]
    if this.startswith(NICKNAME):
        names = [_NAME.match(each) for each in before]
        return any(name and set(name["name"]) & set(this[len(NICKNAME) :]) for name in names)
    if _ROUGH_AGE.match(this) and not _EXACT_AGE.match(this):
        return any(_EXACT_AGE.match(each) or _BORN.match(each) for each in others)
    if _ROUGH_ORIGIN.match(this):
        return any(map(_ORIGIN.match, others))
    if _repeats(this, before):
        return True
    if found[number].retracts:
        gone = set(re.sub(r"[^\u4e00-\u9fff]", "", this)) - _OVER
        return any(
            one.retracts and gone & (set(each) - _OVER)
            for one, each in zip(found, before, strict=False)
        )
    return False
