"""When somebody sets something right: what they put in the place of what, in both languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from app.rules import chinese, english
from app.rules.attributes import attribute_of
from app.rules.chinese_words import simplified
from app.rules.english_forms import plain
from app.rules.patterns import compiled, exact
from app.rules.statements import CORRECTED, Statement


@dataclass(frozen=True, slots=True)
class Correction:
    """What holds instead, and the mistake in the same words where it is known.

    `rest` is what the message says besides.
    """

    statements: tuple[Statement, ...]
    errors: tuple[str | None, ...]
    rest: str


_DENIAL: Final = compiled(
    r"""
    (?:
        (?:
            no|nope|nah|no no|not quite|not exactly|not really|wrong|incorrect|correction|typo|
            oops|whoops|ups|my bad|my mistake|i misspoke|i mistyped|scratch that|strike that|
            (?:actually,? )?(?:that is|that's|thats|this is|it is|it's) (?:
                wrong|not right|not correct|incorrect|not true|a mistake|outdated|
                not what i said|false|not quite right|a typo|not accurate|inaccurate|an error
            )|
            (?:i think )?(?:you are|you're) (?:wrong|mistaken|confusing \w+ with \w+)|
            you (?:got|have|had) (?:that|it|this|my \w+) (?:wrong|mixed up|backwards|confused)|
            you (?:misheard|misunderstood|misread|mixed (?:that|it|me) up)|
            (?:that is |that's )?not (?:me|mine|true|right)|
            let me (?:correct|fix|rephrase) (?:that|myself|you)|
            i need to correct (?:that|myself)|to correct (?:that|myself)|small correction|
            quick correction|one correction
        )(?: (?:there|though|actually|sorry|about (?:that|me|my \w+)))?[,.:;!\-– ]+
    )+(?:sorry[,.]? |actually[,.]? |but |it is |it's |wait[,.]? )*
    """
)
_WEAK: Final = compiled(
    r"""
    (?:(?:sorry|actually|wait|hold on|hmm|ah|oh|i mean|pardon|apologies|well)[,.!:]* )+
    """
)
_MEANT: Final = compiled(
    r"""
    (?:(?:sorry|oops|actually|wait|ah|oh|no|hmm|i)[,.!]* )*(?:i )?(?:
        meant|mean to say|should be|should have said|it should be|should say|make that|
        meant to say|it is|it's|that should be|that was supposed to be|was supposed to say|
        it was
    )(?: (?:to say|to write|to type))? (?P<new>[^,.;!?]{1,40}?)
    (?:,? (?:and )?(?:not|instead of|rather than) (?P<old>[^,.;!?]{1,40}))?[.!]*$
    """
)
# "No, I meant I live in Bern": a whole statement.
_MEANT_THAT: Final = compiled(
    r"^(?:i )?(?:meant|mean|wanted)(?: to (?:say|write|type))?(?: that)?,? (?=(?:i|we|my|our)\b)"
)
_NOT: Final = compiled(
    r"""
    ^(?P<new>(?!(?:i|we|my|our|it|this|that)\b)[^,.;!?]{1,30}?),? (?:and )?not (?P<old>
        [^,.;!?]{1,30}
    )[.!]*$
    """
)
_NOT_TAIL: Final = compiled(
    r"""
    (?<!do)(?<!does)(?<!did)(?<!is)(?<!are)(?<!am)(?<!was)(?<!can)(?<!will)(?<!have)(?<!has)
    (?<!could)(?<!would)(?<!had)(?<!were)(?<!should)(?<!or)
    ,? (?:and )?not (?:in |at |for |with |from |a |an |the |on )?(?P<old>[^,.;!?]{1,40}?)
    (?: any ?more)?[.!]*$
    """
)
_SPELLED: Final = exact(
    r"""
    (?i:
        (?:no,? |actually,? )?(?:
            it's|it is|that's|that is|my name is|i am|i'm|the name is|spelled|it is spelled|
            it's spelled
        )
    ) (?P<new>[A-ZÀ-Þ][\w'-]+),?(?i: (?:
            with (?:a|an|one|two) [\w ]{1,12}|without (?:a|an|the) [\w ]{1,12}|
            not (?P<old>[A-ZÀ-Þ][\w'-]+)|actually|by the way|spelled .{1,20}
        )
    )[.!]*$
    """
)
_NAMED_NOT: Final = exact(
    r"""
    (?:(?i:it is|my name is|name is) |^)(?P<new>[A-ZÀ-Þ][\w'-]+),? (?i:and )?not (?P<old>
        [A-ZÀ-Þ][\w'-]+
    )$
    """
)
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
_CHINESE_NOT: Final = re.compile(
    r"(?:并)?不是(?P<old>[^，,。；！]{1,14}?)[，,]\s*(?:而)?是?(?P<new>\S.+)$"
)
_CHINESE_NOT_TAIL: Final = re.compile(
    r"[，,]?(?:而)?(?:并)?不是(?P<old>[^，,。；！]{1,14})(?:[，,。！].*)?$"
)
_CHINESE_MEANT: Final = exact(
    r"""
    (?:我|其实|实际上?|正确的|正确)*(?:说的是|指的是|的意思是|是说|是想说|应该是|应该为|应该说|准确说是|准确地说是|是|改成|改为)(?P<new>[^，,。；！]{1,16}?)
    (?:[，,]?(?:而)?不是(?P<old>[^，,。；！]{1,14}))?$
    """
)
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
    re.compile(r"(?:周|星期|礼拜|週)[一二三四五六日天末]"),
    exact(
        r"""
        (?:[0-9]{1,2}|十[一二]|[一二三四五六七八九十])月(?:(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3})[日号號])?
        """
    ),
    re.compile(r"[0-9一二三四五六七八九十]{1,3}[日号號]"),
    re.compile(r"(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3})点半?"),
    compiled(r"\b[0-9]{1,2}(?::[0-9]{2})? ?(?:am|pm)\b"),
    re.compile(r"(?:19|20)[0-9]{2}年?"),
    re.compile(r"(?<![0-9])[0-9]+(?:\.[0-9]+)?(?![0-9])"),
    re.compile(r"[一二两三四五六七八九十百0-9]+[万千百][一二三四五六七八九]?(?![0-9])"),
    re.compile(r"[一二两三四五六七八九十百千万]+(?=个|只|条|岁|年|天|周|次|块|元|人)"),
)


def corrected(text: str, known: Sequence[Statement], *, is_chinese: bool) -> Correction | None:
    """What a message sets right, given what was said before it, newest last; None if nothing."""
    return _chinese(text, known) if is_chinese else _english(text, known)


def _english(text: str, known: Sequence[Statement]) -> Correction | None:
    said = plain(text)
    denial = _DENIAL.match(said)
    body, rest = _first_sentence(said[denial.end() :] if denial else said)
    spelled = _SPELLED.match(body)
    if spelled and (denial or known):
        found = _spelled(spelled, known)
        if found:
            return Correction((found[0],), (found[1],), rest)
    weak = _WEAK.match(body)
    bare = body[weak.end() :] if weak else body
    for pattern in (_MEANT, _NOT):
        match = pattern.match(bare)
        if match and (denial or weak or pattern is _NOT or "meant" in bare):
            found = replaced(match["new"], match.groupdict().get("old"), known)
            if found:
                return Correction((found[0],), (found[1],), rest)
    bare = _MEANT_THAT.sub("", bare) if denial or weak else bare
    named = _NAMED_NOT.search(bare)
    if named and re.search(r"(?<!'s )\bname\b", said, re.IGNORECASE):
        error = f"The user is called {named['old']}."
        mended = Statement(f"The user is called {named['new']}.", "correction", CORRECTED)
        return Correction((mended,), (error,), rest)
    tail = _NOT_TAIL.search(bare)
    if not denial and not tail:
        return None
    stem = bare[: tail.start()] if tail else bare
    statements = [each for each in english.read(stem) if not each.retracts]
    if not statements and denial and tail and re.match(r"(?:my|our|the) ", bare, re.IGNORECASE):
        statements = list(english.remembered(stem, text))
    old = tail["old"] if tail else None
    heard = old is not None and any(
        old.casefold() in each.content.casefold() for each in known[-8:]
    )
    return _restated(statements, old, known, certain=denial is not None or heard, rest=rest)


def _first_sentence(said: str) -> tuple[str, str]:
    parts = re.split(r"(?<=[^.\s][.!?])\s+", said, maxsplit=1)
    return parts[0].rstrip(".!"), parts[1] if len(parts) > 1 else ""


def _chinese(text: str, known: Sequence[Statement]) -> Correction | None:
    text = text.strip()
    folded = simplified(text)
    denial = _CHINESE_DENIAL.match(folded)
    start = denial.end() if denial else 0
    end = next(
        (at for at, sign in enumerate(text) if at > start and sign in "。！!\n；;"), len(text)
    )
    body, rest = text[start:end].strip(" ，,"), text[end:].lstrip("。！!\n；; ")
    if re.search(r"[?？]|吗$", body):
        return None
    leading = _CHINESE_NOT.match(simplified(body))
    if leading:
        wrong = body[leading.start("old") : leading.end("old")]
        new = body[leading.start("new") : leading.end("new")]
        statements = chinese.read(new)
        if statements:
            return _restated(statements[:1], wrong, known, certain=True, rest=rest)
        found = replaced(chinese.clean(new), wrong, known)
        return Correction((found[0],), (found[1],), rest) if found else None
    meant = _CHINESE_MEANT.match(simplified(body))
    insists = re.match(r"我?(?:说的是|指的是|的意思是|应该是)", simplified(body))
    if meant and (denial or meant["old"] or insists):
        old = body[meant.start("old") : meant.end("old")] if meant["old"] else None
        found = replaced(chinese.clean(body[meant.start("new") : meant.end("new")]), old, known)
        if found:
            return Correction((found[0],), (found[1],), rest)
    tail = _CHINESE_NOT_TAIL.search(simplified(body))
    stem = body[: tail.start()] if tail else body
    statements = chinese.read(stem)[:1] if denial or tail else []
    if not statements and denial and tail and simplified(stem).startswith(("我", "我们")):
        statements = list(chinese.remembered(stem, separated=True))
    old = body[tail.start("old") : tail.end("old")] if tail else None
    if not statements and (denial or old) and 1 < len(stem) <= 10:
        # "不对，周四" and "建行，不是农行" name no more than the value.
        new = chinese.clean(stem)
        found = (replaced(new, old, known) if old else None) or replaced(new, None, known)
        if found:
            return Correction((found[0],), (found[1],), rest)
    return _restated(statements, old, known, certain=denial is not None, rest=rest)


def _restated(
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
    statement: Statement, given: tuple[str, str] | None, known: Sequence[Statement]
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


def _spelled(
    match: re.Match[str], known: Sequence[Statement]
) -> tuple[Statement, str | None] | None:
    """A name said again in another spelling."""
    new, old = match["new"], match["old"]
    for other in reversed(known[-8:]):
        given = attribute_of(other.content)
        if (
            given
            and given[0] == "user.name"
            and SequenceMatcher(None, given[1], new).ratio() >= 0.5
        ):
            error = f"The user is called {old or given[1]}."
            return Statement(f"The user is called {new}.", "correction", CORRECTED), error
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
        return content[place : place + len(old)] if place >= 0 else None
    for pattern in _CLASSES:
        if pattern.search(new):
            found = pattern.findall(content)
            if len(found) == 1:
                return str(found[0])
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


def _same_class(new: str, target: str) -> str | None:
    """Of what was said, only the part that takes the place of the target: 五月 of 五月结婚."""
    for pattern in _CLASSES:
        if pattern.fullmatch(target):
            found = pattern.search(new)
            return found[0] if found else None
    return None
