"""What kind of text it is, in English and Chinese: a question, one that asks for a time, or a text
that names one.

Each answer takes time linear in the text's length.
"""

import re
from typing import Final

from app.language.text.calendar_words import MONTHS, WEEKDAYS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, simplify

_CJK_RUN = lazy_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_WORD = lazy_pattern(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LAST: Final = 400
"""Characters from the end of a text; a question mark before them asks something else."""

_TRAILING: Final = " \t\r\n\"'”’」』)）]】*_~～…。.！!😀😂😊🤔🙂😉😄👀"
_SENTENCE = lazy_pattern(r"[^。！？!?\n.;；]+")
_AUXILIARY = (
    "is|are|was|were|am|do|does|did|has|have|had|will|would|can|could|should|shall|may|might|must"
)
_ASKING = lazy_pattern(
    rf"(?:(?:so|and|but|well|hey|ok|okay|then|by the way),? )?(?:"
    rf"(?:what|who|whom|whose|where|when|why|how|which)(?:'s|'re|'d)?(?: \w+)?"
    rf" (?:{_AUXILIARY}) (?:you|he|she|it|they|we|i|the|my|your|his|her|their|our|a|an|this|that)\b"
    rf"|(?:what|who|where|when|why|how)(?:'s| is| are| was| were| do| does| did| have| has) "
    rf"|how (?:many|much|long|often|old|far|about|come) "
    rf"|(?:do|does|did|are|is|were|was|have|has|can|could|would|will|should) "
    rf"(?:you|he|she|it|they|we|i|there|any|anyone)\b)",
    re.IGNORECASE,
)
_CHINESE_ASKING = lazy_pattern(
    r"什么|啥|谁|哪[里儿个些位天年]|几[点号个岁次时天年月]|多少|多久|多大|怎么|怎样|为什么|为何|何时|如何|是否"
)
_NOT_ASKING = lazy_pattern(
    r"不知道|不管|无论|不论|什么都|谁都|哪.?都|怎么都|没什么|没怎么|不怎么|任何|怎么也|什么也|谁也|什么的"
    r"|知道.{0,6}(?:怎么|如何|什么)"
)
_CHINESE_ENDING = lazy_pattern(r"[吗么]$|(?<![着还])呢$")
_A_NOT_A = lazy_pattern(
    r"是不是|有没有|能不能|要不要|会不会|好不好|对不对|行不行|可不可以|想不想|喜不喜欢|去不去"
)
_STATED_NE = lazy_pattern(r"[着正还才可]\w{0,8}呢$")

_ASKS_WHEN = lazy_pattern(
    rf"(?:^|[.!?,;:\n\"“]\s?|\b(?:and|or|so|but|since|until|remember|recall|know|tell me|exactly"
    rf"|say|said|sure|ask|asked|mention|mentioned|find out|on)\s)"
    rf"when(?:'s|'d|\s(?:exactly\s)?(?:{_AUXILIARY}))\b"
    r"|\b(?:tell me|remember|recall|remind me|know|find out)\s(?:exactly\s)?when\b"
    r"|\b(?:what|which)(?:'s|\sis|\swas)?(?:\sthe|\sher|\shis|\stheir)?(?:\sexact)?"
    r"\s(?:dates?|days?|months?|years?|weekdays?|weekend|season|week|time|hour|decade|birthday)\b"
    r"(?!-|\s(?:management|zones?|planning)\b)"
    r"|\bhow\s(?:long|recently|soon|early|late)\b"
    r"|\bhow\smany\s(?:minutes|hours|days|nights|weeks|weekends|months|years)\b"
    r"|\Awhen\b[^,?\n]{1,200}\?\s*\Z"
    r"|\b(?:date|time)\sof\b[^.!?\n]{0,200}\?",
    re.IGNORECASE,
)
_CHINESE_ASKS_WHEN = lazy_pattern(
    r"(?:什么|啥)(?:时候|时间|日子|时段|日期)|何[时日年]|哪[一]?[天年周日]|哪[一]?个?(?:月|星期|季节)|几[号月日点时]"
    r"|(?:星期|周|礼拜)几|多久|多长时间|(?:几|多少)(?:个)?(?:天|年|月|周|星期|礼拜|小时|分钟)|(?:日期|时间)是"
)

_MONTH = "|".join(sorted(MONTHS.keys() - {"may", "march", "mar"}, key=len, reverse=True))
_DAY = "|".join(sorted(WEEKDAYS.keys() - {"mon", "sun", "sat"}, key=len, reverse=True))
_COUNT = (
    r"(?:[0-9]{1,4}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:a )?(?:few|couple of|couple)|several|many|some)"
)
_SPAN = r"(?:seconds?|minutes?|hours?|days?|nights?|weeks?|weekends?|months?|years?|decades?)"
# Of a text in small letters, which takes a third of the time of ignoring case.
_TIME = lazy_pattern(
    r"\b(?:yesterday|today|tomorrow|tonight|recently|lately|nowadays"
    r"|weekends?|the other day|midnight|noon"
    rf"|{_DAY}|{_MONTH}"
    r"|(?:last|next|this|past|previous|following)\s"
    r"(?:few\s|couple\sof\s|[0-9]{1,3}\s|two\s|three\s)?(?:second|minute|hour|day|night|morning"
    r"|afternoon|evening|week|weekend|month|year|decade|spring|summer|autumn|fall|winter|time"
    r"|semester|quarter|christmas|easter|birthday)s?"
    rf"|(?:an?|one)\s{_SPAN}\s(?:ago|later|earlier|before|after|from now|back)"
    rf"|{_COUNT}\s{_SPAN}"
    r"|(?:in|since|of|by|until|during|early|late|mid|last|next|this)\s(?:may|march)"
    r"|(?:may|march|mar)\.?\s[0-9]{1,4}|[0-9]{1,2}(?:st|nd|rd|th)?(?:\sof)?\s(?:may|march|mar)"
    r"|(?:19|20)[0-9]{2}(?:s|\b)|[0-9]{1,2}(?::[0-9]{2})?\s?[ap]\.?m|[0-9]{1,2}:[0-9]{2}"
    r"|[0-9]{1,2}/[0-9]{1,2}(?:/[0-9]{2,4})?|(?:in|this|last)\sthe\s(?:morning|afternoon|evening)"
    r"|the\s(?:day|week|month|year|night)\s(?:before|after))(?!\w)"
)
_NUMERAL = "[0-9一二两三四五六七八九十百半几数多]"
_CHINESE_TIME = lazy_pattern(
    r"大?[昨今明前后][天晚早日夜]|[去今明前后]年|当[天晚日]|[上下这本]个?(?:周|星期|礼拜|月|学期|季度)|[上下]次"
    r"|(?:周|星期|礼拜)[一二三四五六日末天]|本[周月年]|月[初底末]|年[初底末]"
    rf"|{_NUMERAL}{{1,4}}(?:月[份底初]?|[号日]|点[半钟整]?|年)|[0-9]{{1,2}}[:：][0-9]{{2}}"
    rf"|{_NUMERAL}{{1,4}}个?(?:多)?(?:天|日|周|星期|礼拜|月|年|小时|钟头|分钟)"
    r"|刚才|刚刚|最近|近来|前阵子|前些天|前几天|早上|早晨|清晨|上午|中午|下午|傍晚|晚上|凌晨|半夜|周末"
    r"|春节|除夕|元旦|国庆|中秋|端午|清明|元宵|圣诞|情人节|暑假|寒假|春天|夏天|秋天|冬天"
)


def is_question(text: str) -> bool:
    """Tell whether a text ends by asking: with a question mark or in the form of a question."""
    end = simplify(text[-_LAST:]).rstrip(_TRAILING)
    if end.endswith(("?", "？")):
        return True
    sentences = _SENTENCE.findall(end)
    if not sentences:
        return False
    last = sentences[-1].strip()
    return _asks_in_chinese(last) if has_cjk(last) else _ASKING.match(last) is not None


def _asks_in_chinese(sentence: str) -> bool:
    if _NOT_ASKING.search(sentence) or _STATED_NE.search(sentence):
        return False
    return any(
        form.search(sentence) is not None for form in (_CHINESE_ENDING, _A_NOT_A, _CHINESE_ASKING)
    )


def word_count(text: str) -> int:
    """Count the words: one for each of letters and digits, one for each two Chinese characters."""
    if text.isascii():
        return len(_WORD.findall(text))
    chars = sum(len(run) for run in _CJK_RUN.findall(text))
    return (chars + 1) // 2 + len(_WORD.findall(_CJK_RUN.sub(" ", text)))


def cjk_share(text: str) -> float:
    """Return how much of a text's letters and digits is Chinese, Japanese or Korean, 0 to 1."""
    if text.isascii():
        return 0.0
    chars = sum(len(run) for run in _CJK_RUN.findall(text))
    others = sum(len(word) for word in _WORD.findall(_CJK_RUN.sub(" ", text)))
    return chars / (chars + others) if chars else 0.0


def asks_when(text: str) -> bool:
    """Tell whether a question asks for a time: a date, a day, a year or how long it is or was."""
    if _ASKS_WHEN.search(text):
        return True
    return has_cjk(text) and _CHINESE_ASKS_WHEN.search(simplify(text)) is not None


def has_time_expression(text: str) -> bool:
    """Tell whether a text names a time: a date, a day, a month, or one relative to today."""
    if _TIME.search(text.lower()):
        return True
    return has_cjk(text) and _CHINESE_TIME.search(simplify(text)) is not None
