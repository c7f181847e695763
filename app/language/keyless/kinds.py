"""What kind of memory a clause is, told by its words, in English and Chinese.

The first kind whose words are in the clause is taken, in the order of `_KINDS`; none is a fact.
"""

import re
from datetime import datetime
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import simplify
from app.language.text.time_expressions import find_dates

VAGUE_PLAN_DAYS: Final = 30
"""For how long a plan without a date, an amount or a name is expected to hold."""

_PAST: Final = (
    r"\b(?:i|we|my [\w ]{1,30}|our [\w ]{1,30}|she|he|they|[A-Z]\w+)(?:'ve| have| has)?"
    r" (?:just |already |finally |recently |also |even |only )*(?!used to\b|need)(?:\w{2,}ed|went"
    r"|got|took|came|saw|met|bought|sold|found|lost|won|told|gave|left|began|became|broke|built"
    r"|drove|flew|ran|sent|spent|wrote|taught|quit|passed|been to|gone|done|made|had an?)\b"
)
_KINDS: Final = (
    ("constraint", lazy_pattern(
        r"^(?:please )?(?:always|never|don't|do not|from now on|whenever i ask|when i ask|keep your"
        r"|use|answer|reply|stop)\b|\b(?:must not|mustn't|not allowed to|can(?:no|')t eat"
        r"|deadline)\b|^(?:请|以后|今后|从[现今][在天]起|记住)?(?:不要|别(?!人|的)|一律|务必|必须|不许)|截止|预算"
        r"|(?:以后|今后|从[现今][在天]起).{0,12}(?:不要|别|都|请|用|叫我|说|给|最后)"
        r"|(?:回答|回复).{0,8}[都时用要]|最[多晚]不|不能(?:吃|喝|碰)|才有[空时]",
        re.IGNORECASE,
    )),
    ("decision", lazy_pattern(
        r"\b(?:decided|decision|chose|chosen|picked|opted|settled on|going with|went with|we agreed"
        r"|leaning towards?)\b|决定|选择了|选了|敲定|定下|商量好|想好了|还是[选买]|不打算|再也不",
        re.IGNORECASE,
    )),
    ("goal", lazy_pattern(
        r"\b(?:going to|gonna|plan(?:ning)? (?:to|on)|want(?:s)? to|wants? my|trying to|hop(?:e"
        r"|ing) to"
        r"|aim(?:ing)? (?:to|for)|goal|need to|intend|i'll|we'll|would (?:like|love) to|working on"
        r"|looking (?:to|for)|targeting|considering|preparing)\b"
        r"|打算|计划|(?<!在)准备(?!了)|目标|(?:我|也)希望|想(?![起到法象着知问听要]|$)|争取",
        re.IGNORECASE,
    )),
    ("preference", lazy_pattern(
        r"\b(?:love|loves|(?:i|we|they|user|really|also|still|do|don't) like|likes|enjoys?"
        r"|hates?|prefers?|favou?rite|fan of|can't stand|adore"
        r"|dislikes?|rather|call me|fond of|not into)\b(?! to say)"
        r"|喜欢|讨厌|最爱|偏[好爱]|更爱|爱(?:吃|喝|看|听|玩)|不爱|叫我|不[喝吃](?!了)|只[喝吃看听穿用]"
        r"|(?<![害恐可担])怕|想要",
        re.IGNORECASE,
    )),
    ("habit", lazy_pattern(
        r"\b(?:every (?!one|thing|body)\w+|usually|always|often|regularly|daily|weekly|(?:once"
        r"|twice|times) an? (?:day|week|month|year)|on (?:weekdays|weekends|\w+days)"
        r"|(?<!for )(?<!in )(?<!about )an? (?:day|week|month))\b"
        r"|每(?:天|周|个?月|年|晚|早|次|逢)|经常|总是|老是|通常|一般(?!般)|习惯|平时|常常|天天|从不|从来不|有时候",
        re.IGNORECASE,
    )),
    ("skill", lazy_pattern(
        r"\b(?:fluent|good at|know \w+ well|can (?:play|speak|code|cook|drive|swim)|i speak"
        r"|experienced? (?:in|with)|never (?:used|taken|learn\w+|studied|written))\b"
        r"|擅长|精通|熟悉|流利|会(?:说|弹|写|用|做|开)",
        re.IGNORECASE,
    )),
    ("event", lazy_pattern(
        rf"{_PAST}|[去前]年|[昨前]天|昨晚|上个?(?:周|月|星期|礼拜)|刚(?!才)|今天|[下这]个?(?:周|月)|[了过]$"
        r"|(?<=[\u3400-\u9fff])了(?:[一两三几半0-9]|[^，年月天岁]{2,}(?:，|$))|[^为除]了[，。]",
        re.IGNORECASE,
    )),
)  # fmt: skip
_OF_PROJECT: Final = lazy_pattern(
    r"\b(?:the|our|this) (?:\w+ )?(?:project|repo(?:sitory)?|codebase|backend|frontend|api|service"
    r"|pipeline|database|sprint|release|deployment|staging|production|test suite)\b"
    r"|\bwe (?:use|deploy|run|host|ship|test|write)\b|项目|代码库|仓库|我们(?:团队|组)?用",
    re.IGNORECASE,
)
_CONCRETE: Final = lazy_pattern(r"\d|(?<=[a-z,] )[A-Z][a-zà-ÿ]{2,}|[《“\"]")
_THIRD_PERSON: Final = lazy_pattern(
    r"(?:the |this )?users?\b(?:'s)?|该?用户(?![们数量增反体界名都])", re.IGNORECASE
)
_RETRACTS: Final = lazy_pattern(
    r"(?:please )?forget (?:that|about|what i said about)\b|\b(?:i|we|my \w+|our \w+) (?:no longer"
    r"|(?:don't|doesn't|do not|does not|am not|'m not|is not|isn't|are not|aren't) [^,.]{1,60}"
    r"any ?more)\b|\bi'm not [^,.]{1,60}any ?more\b"
    r"|^(?:please )?(?:don't|do not|never) (?:remember|store|save|keep|note|record) (?:that|this)\b"
    r"|^请?(?:忘掉|忘了|忘记我|别记|不[用要]记)|不再|已经不|没有?再(?!见|说)",
    re.IGNORECASE,
)


def memory_type(words: str) -> str:
    """The memory type of a clause, by its own words without its lead."""
    plain = simplify(words)
    return next((kind for kind, pattern in _KINDS if pattern.search(plain)), "fact")


def is_third_person(content: str) -> bool:
    """Tell what a model or an agent wrote of the user from what somebody said."""
    return _THIRD_PERSON.match(simplify(content)) is not None


def is_of_project(content: str) -> bool:
    """Tell what holds of a project from what holds of a person."""
    return _OF_PROJECT.search(simplify(content)) is not None


def is_retraction(words: str) -> bool:
    """Tell whether it says plainly that something holds no longer, and nothing in its place."""
    return _RETRACTS.search(simplify(words)) is not None


def expected_valid_days(kind: str, words: str, said_at: datetime) -> int | None:
    """How long a plan holds that names nothing by which it ends; None of all else."""
    if kind != "goal" or _CONCRETE.search(words) or find_dates(words, said_at):
        return None
    return VAGUE_PLAN_DAYS
