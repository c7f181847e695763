"""What somebody sets right in Chinese: 不对，周四, 不是招行，浦发, 我老家不是宜昌，是宜春."""

import re
from collections.abc import Sequence
from typing import Final

from app.language.keyless import chinese
from app.language.keyless.chinese_words import simplified
from app.language.keyless.mending import Correction, replaced, restated
from app.language.keyless.patterns import exact
from app.language.keyless.statements import Statement
from app.language.text.lazy_pattern import lazy_pattern

_CHINESE_DENIAL: Final = exact(
    r"""
    (?:
        (?:
            (?:哎|诶|欸|啊|哦|噢|呃|额|等等|
            等下|等一下|不好意思)?[，, ]*(?:不(?=[，,])|(?:不对)+|不不+|错了)|
            (?:弄|写|说|搞|记|打)(?:反|岔|混)了|改一下|改下|修正一下|不是不是|
            非也|你?(?:刚才|之前)?(?:记|弄|搞|说|写|理解|听|打|看)错了?|您(?:记|
            弄|搞|说|写|理解|听|看)错了?|
            我?(?:刚才|刚刚|之前|上面|前面)?(?:那个?\S{1,4})?我?(?:说|打|写|记)(?:错|反|岔)了?|搞混了|弄混了|更正(?:一下|下)?|纠正(?:一下|下)?|订正一下|口误|笔误|手误|打错字了|
            (?:这|那)?(?:不对|不准确|有误|不是这样的?|不是的|说法不对)|不是啊?|并不是|你误会了?|误会了|说反了|抱歉|不好意思
        )(?:了|啦|哦|啊|呀|哈|吧|哈|嘛)*[，,。：:！!\s]+
    )+
    """
)
_CHINESE_NOT: Final = lazy_pattern(
    r"(?:并)?不是(?P<old>[^，,。；！]{1,14}?)[，,]\s*(?:而)?是?(?P<new>\S.+)$"
)
_CHINESE_NOT_TAIL: Final = lazy_pattern(
    r"[，,]?(?:而)?(?:并)?不是(?P<old>[^，,。；！]{1,14})(?:[，,。！].*)?$"
)
# "我老家不是宜昌，是宜春"
_CHINESE_RATHER: Final = lazy_pattern(
    r"(?P<stem>[^，,不是]{1,10})(?:并)?不是(?P<old>[^，,]{1,14})[，,](?:而)?是(?P<new>[^，,]+)$"
)
_INSISTS: Final = lazy_pattern(
    r"我?(?:说的是|指的是|的意思是|应该是)|(?:改|挪|推|推迟|提前|延后|延|调|换|移)到"
)
# "之前说我女儿五岁，说错了，是六岁"
_CHINESE_SAID: Final = lazy_pattern(
    r"(?:我)?(?:之前|刚才|刚刚|前面|上次)(?:我)?(?:说|写)(?P<stem>[^，,]{3,20})[，,]我?(?:说|记|打|写|弄)错了"
    r"[，,]?(?:应该)?是?(?P<new>[^，,。]{1,12})$"
)
_WAIT: Final = lazy_pattern(r"(?:(?:哎|诶|啊|哦|噢|呃)?等等|等一?下|对了|啊|哦|噢|哎)[，,]")
_CHINESE_MEANT: Final = exact(
    r"""
    (?:我|其实|实际上?|正确的|正确)*(?:说的是|指的是|的意思是|是说|是想说|应该是|应该为|应该说|准确说是|准确地说是|是|改成|改为|(?:改|挪|推|推迟|提前|延后|延|调|换|移)到了?)(?P<new>[^，,。；！]{1,16}?)
    (?:[，,]?(?:而)?不是(?P<old>[^，,。；！]{1,14}))?$
    """
)
# "六岁" is of whoever was spoken of.
_BARE_VALUE: Final = exact(
    r"是?[0-9一二两三四五六七八九十百千万]+(?:周?岁|个|块|元|年|天|号|点|月)?\S{0,1}"
)
_LONGEST_VALUE: Final = 10
# "不是，那是我弟" names somebody else, and no value.
_NO_VALUE: Final = lazy_pattern(r"[那这他她它你您我谁没不才早]|是(?:我|他|她)")


def chinese_corrected(text: str, known: Sequence[Statement]) -> Correction | None:
    """What a message sets right, given what was said before it, newest last; None if nothing."""
    text = text.strip()
    folded = simplified(text)
    denial = _CHINESE_DENIAL.match(folded)
    opening = denial or _WAIT.match(folded)
    start = opening.end() if opening else 0
    end = next(
        (at for at, sign in enumerate(text) if at > start and sign in "。！!\n；;"), len(text)
    )
    body, rest = text[start:end].strip(" ，,"), text[end:].lstrip("。！!\n；; ")
    if re.search(r"[?？]|吗$", body):
        return None
    denied = denial is not None
    return (
        _of_slip(text[:end], rest)
        or _instead(body, known, rest)
        or _rather(body, known, rest, denied=denied)
        or _meant(body, known, rest, denied=denied)
        or _told_again(body, known, rest, denied=denied)
    )


def _of_slip(said: str, rest: str) -> Correction | None:
    slipped = _CHINESE_SAID.match(simplified(said))
    if not slipped:
        return None
    before = chinese.read(said[slipped.start("stem") : slipped.end("stem")])
    new = chinese.clean(said[slipped.start("new") : slipped.end("new")])
    return _put(replaced(new, None, before), rest)


def _instead(body: str, known: Sequence[Statement], rest: str) -> Correction | None:
    """What stands behind a denial with the wrong value: 不是周三，周四."""
    leading = _CHINESE_NOT.match(simplified(body))
    if not leading:
        return None
    wrong = body[leading.start("old") : leading.end("old")]
    new = body[leading.start("new") : leading.end("new")]
    statements = chinese.read(new)
    if statements:
        return restated(statements[:1], wrong, known, certain=True, rest=rest)
    return _put(replaced(chinese.clean(new), wrong, known), rest)


def _rather(body: str, known: Sequence[Statement], rest: str, *, denied: bool) -> Correction | None:
    parts = _CHINESE_RATHER.match(simplified(body))
    if not parts or not (denied or _heard(parts["old"], known)):
        return None
    told = f"{body[: parts.end('stem')]}是{body[parts.start('new') :]}"
    return restated(chinese.read(told)[:1], parts["old"], known, certain=True, rest=rest)


def _meant(body: str, known: Sequence[Statement], rest: str, *, denied: bool) -> Correction | None:
    meant = _CHINESE_MEANT.match(simplified(body))
    if not meant or not (denied or meant["old"] or _INSISTS.match(simplified(body))):
        return None
    old = body[meant.start("old") : meant.end("old")] if meant["old"] else None
    new = re.sub(r"了$", "", chinese.clean(body[meant.start("new") : meant.end("new")]))
    return _put(replaced(new, old, known), rest)


def _told_again(
    body: str, known: Sequence[Statement], rest: str, *, denied: bool
) -> Correction | None:
    """A whole statement, or the bare value, that a message with a denial gives."""
    tail = _CHINESE_NOT_TAIL.search(simplified(body))
    stem = body[: tail.start()] if tail else body
    valued = _BARE_VALUE.fullmatch(simplified(stem)) is not None
    statements = chinese.read(stem)[:1] if (denied or tail) and not valued else []
    if not statements and denied and tail and simplified(stem).startswith(("我", "我们")):
        statements = list(chinese.remembered(stem, separated=True))
    old = body[tail.start("old") : tail.end("old")] if tail else None
    bare = not statements and _NO_VALUE.match(simplified(stem)) is None
    if bare and (denied or old) and 1 < len(stem) <= _LONGEST_VALUE:
        # "不对，周四" and "建行，不是农行" name no more than the value.
        new = chinese.clean(stem)
        found = (replaced(new, old, known) if old else None) or replaced(new, None, known)
        if found:
            return _put(found, rest)
    return restated(statements, old, known, certain=denied, rest=rest)


def _put(found: tuple[Statement, str] | None, rest: str) -> Correction | None:
    return Correction((found[0],), (found[1],), rest) if found else None


def _heard(old: str, known: Sequence[Statement]) -> bool:
    return any(old in simplified(each.content) for each in known[-8:])
