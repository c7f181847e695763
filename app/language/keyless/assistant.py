"""What the assistant said about the user, and whether the user's next words affirm it."""

import re
from typing import Final

from app.language.keyless import chinese, english
from app.language.keyless.chinese_words import simplified
from app.language.keyless.english_forms import plain
from app.language.keyless.patterns import compiled, exact
from app.language.keyless.statements import CONFIRMED, Statement
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk

MAX_CLAIM: Final = 600
"""Longer answers of an assistant are answers, not questions put to the user."""


_YES: Final = compiled(
    r"""
    (?:
        (?:
            yes|yep|yeah|yup|exactly|correct|right|that is right|that is correct|that's right|
            that's correct|true|indeed|absolutely|precisely|bingo|spot on|you got it|
            you are right|you're right|definitely|of course|sure|
            (?:i do|i am|i have|it is|he is|she is)(?=[,.!]|$)|totally|affirmative|certainly|
            mhm|uh-huh|aye|very much so|sounds right|that is me|that's me|good memory|
            well remembered|thanks|thank you|that is true|that's true
        )(?:[,.!]+ ?| |$)
    )+
    """
)
# Thanks beside a yes are welcome; alone they confirm nothing.
_ONLY_POLITE: Final = compiled(r"(?:(?:thanks|thank you|sure|of course|please)[,.! ]*)+")
# "Yes, but I quit": what is confirmed no longer holds, or only in part.
_BUT_NOT: Final = compiled(
    r"(?:but|except|although|though|until)\b|(?:i |we )?(?:used to|did|was)\b|please\b"
    r"|(?:that is|this is|it is) (?:wrong|not|incorrect|outdated)"
)
# "Is that right?" asks for what was said before it.
_CHECK: Final = compiled(
    r"""
    (?:so |and )?(?:
        (?:is|was) (?:that|this|it|all that)(?: all)?(?: still)?[ ]
        (?:right|correct|true|accurate|so|the case|you|up to date|ok|okay)|
        (?:am i|did i get (?:that|it)|have i got (?:that|it)|do i have (?:that|it)|
        did i understand (?:that|you|it))(?: right| correct| correctly)?|
        right|correct|yes|true|agreed|ok|okay|is that so|does that sound right|
        sounds? (?:right|about right)|can you confirm(?: that| this)?|is that still (?:so|true)
    )
    """
)
_CHINESE_CHECK: Final = exact(
    r"(?:我?(?:说|记|理解)得?)?(?:这样)?(?:对吧|对吗|对不对|是吧|是吗|是不是|没错吧|是这样吗|正确吗|对么|是么|没记错吧)"
)
_CHINESE_YES: Final = exact(
    r"""
    (?:
        (?:
            对|系|是的|是|没错|嗯+|对的|对啊|对呀|正确|确实|正是|可不是|可不|完全正确|就是|说得对|说对了|当然|是啊|是呀|不错|的确|对对+|猜[对中]了|蒙对了|没记错|你?记得没错|
            记性真好|是这样|就是这样
        )(?:的|了|啊|呀|哦|呢)?[，,。!！\s]*
    )+
    """
)
# "对，不过我辞职了", "是的，以前是": what is confirmed holds no longer, or only in part.
_CHINESE_BUT_NOT: Final = exact(
    r"(?:但是?|不过|可是?|只是|只不过|以前|之前|原来|曾经|那是|那都是|现在不|已经不|早就?不|才怪)"
)
# "嗯，滴酒不沾": what is confirmed, in other words, up to a clause that has a subject.
_CHINESE_DWELT: Final = exact(
    r"^(?:(?!另外|还有|而且|今年|现在|顺便|对了)"
    r"[^，,。！!？?；;\n我咱俺本]{1,24}(?:[，,]|(?=[。！!\n])|$))+"
)
_PERSONS: Final = tuple(
    (compiled(pattern), said)
    for pattern, said in (
        (r"\b(?:you are|you're)\b", "I am"),
        (r"\byou've\b|\byou have\b", "I have"),
        (r"\byou were\b", "I was"),
        (r"\byour\b", "my"),
        (r"\byou\b", "I"),
    )
)
_HEDGES: Final = compiled(
    r"""
    ^(?:
        (?:
            so|ok|okay|great|got it|noted|understood|right|alright|ah|i see|thanks|perfect|sure|
            happy to help|just to confirm|to confirm|just to check|let me confirm|
            if i understand (?:you )?correctly|if i remember correctly|as i understand it|
            i understand(?: that)?|it (?:sounds|seems|looks) (?:like|as if|that)|sounds like|
            i (?:assume|believe|think|take it|gather|remember|recall|guess|noted|have noted|see)
            (?: that)?|
            you (?:said|mentioned|told me)(?: that)?|am i right that|am i correct that|
            is it (?:right|correct|true) that|do i understand correctly that|
            correct me if i am wrong|from what you said|since|as|because|if you
        )[,.:!]* )+
    """
)
_INVERTED: Final = compiled(
    r"""
    ^(?:so,? )?
    (?P<aux>do you|are you|have you|is your|are your|were you|did you|don't you|aren't you)
    (?: still| currently| really| also)? (?P<rest>.+?)$
    """
)
_BECAUSE: Final = compiled(r"(?:since|as|because)\b")
_UNDECIDED: Final = compiled(r"\b(?:any|ever|either|or|anything|something|someone)\b")
_OPEN: Final = compiled(r"(?:what|where|who|how|when|why|which|would|could|can|shall|should)\b")
# "As a nurse I will assume …", said to the user.
_AS_ONE: Final = compiled(r"\bas an? (?P<what>[\w -]{3,40}?) I will\b.*")
_TAGS: Final = compiled(
    r"""
    ,? (?:
        right|correct|isn't it|don't you|aren't you|is that right|is that correct|yes|no|
        am i right|you said|you mentioned|you told me
    )$
    """
)
_GREETING: Final = exact(
    r"""
    (?i:
        \b(?:
            hi|hello|hey|dear|thanks|thank you|welcome|happy to help|sure|sure thing|of course|
            great|good to (?:see|meet) you|nice to (?:see|meet) you|welcome back|got it|
            no problem|good morning|good evening|glad to help
        )
    ),? (?P<name>[A-ZÀ-Þ][\w'-]+)(?=[!.,]|$)
    """
)
_CHINESE_HEDGES: Final = exact(
    r"""
    ^(?:
        (?:
            好的?|明白了?|收到|记下了|已记录|了解了?|知道了|嗯|那么?|所以|看起来|看来|看样子|听起来|听上去|据我所知|据我了解|似乎|好像|应该|我记得|我了解到?|如果我没记错(?:的话)?|
            没记错的话|您是说|你是说|您的意思是|您说过|你说过|已记录|已为您记录|您提到过?|你提到过?|确认一下|也就是说|这么说|请问
        )[，,。：:！!\s]*
    )+
    """
)
_CHINESE_TAGS: Final = exact(
    r"""
    [，,]?(?:对吧|对吗|是吧|是吗|对不对|是不是|没错吧|吧|吗|么|呢)?[?？。！!]*$
    """
)
# "您下周三的体检我已记下": what the assistant did with it is left out.
_CHINESE_NOTED: Final = exact(
    r"[，,]?我?(?:已经?|帮我|给我|为我)+(?:记下|记录|登记|安排|预约|设置|更新|保存)(?:好|下来)?了?$"
)
_APPOINTMENT: Final = (
    r"航班|飞机|火车|高铁|车次|体检|预约|挂号|会议|面试|考试|手术|答辩|婚礼|课|牙医|聚会|行程|"
    r"酒店|座位|电话|地址|尺码|门牌号|房号"
)
_CHINESE_APPOINTED: Final = exact(
    rf"""
    (?:我的)?(?P<thing>{_APPOINTMENT})(?:时间)?(?:就?是|在|为|定在|安排在|改到|约在)(?P<later>\S{{2,16}})|
    我(?P<when>\S{{2,10}}?)的(?P<what>{_APPOINTMENT})
    """
)
_CHINESE_GREETING: Final = exact(
    r"""
    ^(?P<name>[\u4e00-\u9fff]{2,4}?)(?:您好|你好|，您好|，你好)
    """
)


_SENTENCE_END: Final = lazy_pattern(r"(?<=[。！？!?])|(?<=[.:])\s+|\n")


def claims(content: str) -> list[Statement]:
    """Statements about the user in an assistant's turn, as if the user had said them."""
    if len(content) > MAX_CLAIM:
        return []
    return _chinese_claims(content) if has_cjk(content) else _english_claims(content)


def confirmable(content: str) -> list[Statement]:
    """Claims that a plain yes confirms: those of the question it answers, where one stands last."""
    said = content.strip()
    if not said.endswith(("?", "？")):
        return claims(content)
    parts = [each for each in _SENTENCE_END.split(said) if each.strip(" ?？")]
    if not parts:
        return []
    asked = parts[-1].strip()
    check = _CHINESE_CHECK if has_cjk(asked) else _CHECK
    if len(parts) > 1 and check.fullmatch(plain(asked).strip(" ?？。，")):
        told = [each for each in parts[:-1] if not each.strip().endswith(("?", "？"))]
        return claims(" ".join(told))
    return claims(asked) if len(content) <= MAX_CLAIM else []


def _english_claims(content: str) -> list[Statement]:
    found: list[Statement] = []
    greeted = _GREETING.search(content)
    if greeted:
        found.append(Statement(f"The user is called {greeted['name']}.", "fact", CONFIRMED))
    for each in re.split(r"(?<=[.!?:])\s+|\n", content)[:8]:
        found += english.read(claim_of(each))
    return found


def claim_of(sentence: str) -> str:
    """A sentence of the assistant as the user would say it of themselves; empty for a question."""
    said = _TAGS.sub("", _HEDGES.sub("", plain(sentence.rstrip(".!? "))))
    # "Since you are on Windows, open …": the claim ends at the comma.
    if _BECAUSE.match(sentence.strip()) or "you are on" in said:
        said = said.split(",")[0]
    asked = _INVERTED.match(said)
    if asked:
        if _UNDECIDED.search(said):
            return ""
        said = _upright(asked)
    elif "?" in sentence and _OPEN.match(said):
        return ""
    said = in_first_person(said)
    return _AS_ONE.sub(r"I am a \g<what>", said)


def in_first_person(content: str) -> str:
    """What is said to the user, with "I" and "my" for "you" and "your"."""
    said = plain(content)
    for pattern, put in _PERSONS:
        said = pattern.sub(put, said)
    return said


def _upright(asked: re.Match[str]) -> str:
    """The statement that a yes-or-no question asks about: "do you eat meat", "I eat meat"."""
    first, second = asked["aux"].casefold().split()
    put = {"is": "my {}", "are": "I am {}", "have": "I have {}"}.get(first, "I {}")
    said = put.format(asked["rest"])
    if second == "your":
        said = re.sub(r"^(?:my|I am) (.+?) ([\w-]+)$", r"my \1 is \2", said)
    return said


def _chinese_claims(content: str) -> list[Statement]:
    found: list[Statement] = []
    greeted = _CHINESE_GREETING.match(content)
    if greeted and greeted["name"] not in {"很高兴", "早上", "大家", "各位", "亲爱"}:
        found.append(Statement(f"用户叫{greeted['name']}", "fact", CONFIRMED))
    for sentence in re.split(r"(?<=[。！？!?])|\n", content)[:8]:
        said = _CHINESE_HEDGES.sub("", sentence.strip())
        said = _CHINESE_TAGS.sub("", said)
        said = re.sub(r"您|你", "我", said)
        said = _CHINESE_NOTED.sub("", said)
        said = re.sub(r"^我(?:应该|好像|似乎|大概|可能)", "我", said)
        found += chinese.read(said) or _chinese_dates_of(said)
    return found


def _chinese_dates_of(said: str) -> list[Statement]:
    """A date, place or figure of the user's that the assistant repeats: 您的航班是18号下午."""
    told = _CHINESE_APPOINTED.fullmatch(said)
    if told is None:
        return []
    when = told["when"] or told["later"]
    return [Statement(f"用户的{told['what'] or told['thing']}是{when}", "fact", CONFIRMED)]


def affirmed(text: str) -> str | None:
    """What a turn says besides yes; None when it does not begin with a yes."""
    said = text.strip()
    if has_cjk(said):
        match = _CHINESE_YES.match(simplified(said))
        if not match or re.match(r"[吗么不]|的话", said[match.end() :]):
            return None
        if match[0].strip("，,。!！ ") in {"是", "就是"} and said[match.end() :]:
            return None
        rest = said[match.end() :]
        # "对青霉素过敏" is no yes.
        if match[0] == "对" and re.match(
            r"(?![我就是现您你])[\u4e00-\u9fffA-Za-z]", simplified(rest)
        ):
            return None
        return None if _CHINESE_BUT_NOT.match(simplified(rest)) else _CHINESE_DWELT.sub("", rest)
    match = _YES.match(plain(said))
    if not match or _ONLY_POLITE.fullmatch(match[0].strip()):
        return None
    rest = plain(said)[match.end() :]
    return None if _BUT_NOT.match(rest) else rest
