"""What kind of text it is, in English and Chinese: a question, one that asks for a time, one that
names a time, or one that only keeps a conversation going ("ok", "thanks!!", "嗯嗯", "👍").

Each answer takes time linear in the text's length.

They start no extraction. What says anything besides is read, so a missing phrase costs one run,
and a wrong one could cost a memory: phrases stay out that can be an answer with content.
"""

import re
from functools import cache
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern, literals
from app.language.text.normal_forms import has_cjk, normalise, simplify
from app.language.text.periods import MONTHS, WEEKDAYS

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
# What a time begins with, which a text is looked through for in half the time of the whole.
_TIME_BEGINS = (
    "(?=[0-9]|"
    + literals((
        "yesterday", "today", "tomorrow", "tonight", "recently", "lately", "nowadays", "weekend",
        "the other day", "midnight", "noon", *_DAY.split("|"), *_MONTH.split("|"),
    ))
    + "|"
    + literals((
        "last", "next", "this", "past", "previous", "following", "a", "an", "one", "two", "three",
        "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "few", "couple",
        "several", "many", "some", "in", "since", "of", "by", "until", "during", "early", "late",
        "mid", "the",
    ))
    + r"\s|(?:may|march|mar)[.\s])"
)  # fmt: skip
# Of a text in small letters, which takes a third of the time of ignoring case.
_TIME = lazy_pattern(
    rf"\b{_TIME_BEGINS}"
    r"(?:yesterday|today|tomorrow|tonight|recently|lately|nowadays"
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


PHRASES: Final = (
    "great stuff|good stuff|alrighty|ok|okay|okey|okie|dokey|k|kk|alright|all right|sure"
    "|sure thing|yes|yeah|yep|yup|ya|yea|no|nope|nah|no thanks|no thank you|thanks|thank you"
    "|thank u|thx|tx|ty|tysm|cheers|many thanks|much appreciated|thanks a lot|thanks a bunch"
    "|thanks a million|thank you very much|thank you so much|thanks so much|thanks for your help"
    "|thanks for the help|thank you for your help|thanks for that|thanks again|i appreciate it"
    "|appreciate it|appreciated|great|good|very good|good job|great job|nice job|well done|cool"
    "|nice|very nice|perfect|awesome|amazing|excellent|fine|that's fine|it's fine|wonderful"
    "|fantastic|brilliant|lovely|super|sweet|neat|sounds good|sounds great|looks good|looks great"
    "|lgtm|all good|i'm good|got it|gotcha|understood|i understand|i see|makes sense"
    "|that makes sense|right|that's right|exactly|precisely|correct|that's correct|true|indeed"
    "|agreed|i agree|of course|absolutely|definitely|certainly|for sure|will do|never mind"
    "|nevermind|nvm|no problem|np|no worries|don't worry|you're welcome|you are welcome|welcome"
    "|my pleasure|hi|hello|hey|hiya|hi there|hey there|hello there|good morning|good afternoon"
    "|good evening|good night|good day|morning|bye|bye bye|goodbye|see you|see ya|cya"
    "|see you later|see you soon|see you tomorrow|take care|later|have a nice day|have a good day"
    "|have a good one|you too|same to you|lol|lmao|rofl|ha|he|hm|hmm|mhm|mm|uh|uh huh|wow|oh|ah"
    "|aha|oops|yay|yup|go on|go ahead|continue|please continue|keep going|please|pls|next|more"
    "|one moment|one sec|just a moment|wait|ok then|that's all|that's it|that helps|very helpful"
    "|helpful|that's great|that's good|that's perfect|that's nice|how are you|what's up|sup|test"
    "|testing|ping|and|so|then|now|well|really|very|much|too|again|done|me too|yes please|not bad"
    "|good to know|okay great|fair enough"
)
CHINESE_PHRASES: Final = (
    "好|好的|好吧|好啊|好呀|好嘞|好哒|好滴|好耶|行|行吧|可以|可以的|中|成|嗯|恩|哦|噢|喔|啊|呃|额"
    "|唔|是|是的|是啊|是吗|对|对的|对啊|没错|没问题|没事|没关系|不用|不用了|不用谢|不必了|不客气"
    "|不谢|别客气|没有|没有了|没了|谢谢|谢|谢谢你|谢谢您|谢谢大家|谢谢你的帮助|谢谢您的帮助|多谢"
    "|感谢|非常感谢|十分感谢|万分感谢|感谢你|感谢您|谢啦|谢了|3q|辛苦|辛苦了|麻烦了|麻烦你了|收到"
    "|明白|明白了|我明白了|懂|懂了|我懂了|知道了|我知道了|了解|了解了|清楚|清楚了|原来如此"
    "|原来是这样|这样啊|这样|你好|您好|你们好|大家好|嗨|哈喽|哈啰|哈罗|喂|早|早啊|早上好|早安"
    "|上午好|中午好|下午好|晚上好|晚安|再见|拜拜|拜|回头见|明天见|回见|下次见|哈|嘿|嘻|呵|嘿嘿|哇"
    "|哎|唉|厉害|牛|赞|棒|真棒|太棒了|太好了|真好|很好|非常好|不错|很不错|挺好|挺好的|完美|优秀"
    "|漂亮|加油|继续|请继续|接着说|继续说|然后|然后呢|还有呢|还有吗|下一个|等等|等一下|稍等|算了"
    "|当然|当然可以|同意|赞成|确实|的确|有道理|说得对|你说得对|完全正确|正确|就是这样|就这样"
    "|就这样吧|就这些|在吗|在不在|在么|打扰了|客气|客气了|您太客气了|了|啦|呀|吧|呢|哈|嘛|的"
    "|帮大忙了|太感谢了|真的|真的吗|666|6666|没毛病|妥|妥了|稳|真不错|真厉害|太厉害了|太强了|ok"
    "|欧克|欧了|恭喜|祝你好运|测试"
)

LONGEST: Final = 80
"""Code points; a longer text says something, or too much for it not to be looked at."""

_FACE = lazy_pattern(
    r"(?<![^\W_])(?:[:;=8]-?'?[()\[\]dpo3/|]{1,5}|x+d+|<3+|\^[_-]?\^|t[_-]t|qaq|orz|\+1)"
    r"(?![^\W_])"
)
# A Latin word, or one character of any other script.
_TOKEN = lazy_pattern(r"[a-z0-9]+(?:'[a-z]+)*|[^\W_]")
_AGAIN = lazy_pattern(r"([^\W\d_]{1,2}?)\1+")


def is_trivial(text: str) -> bool:
    """Tell whether a text says nothing but yes, no, thanks, hello or the like, in any row.

    Case, width, script, punctuation, emoji and repeats do not matter. A text without letters or
    digits is trivial, as is an empty one.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return False
    return _made_of_phrases(_tokens(text))


def _tokens(text: str) -> tuple[str, ...]:
    """Words and characters, repeats once: "okkk" is "ok", "haha" is "ha", "嗯嗯" is "嗯"."""
    form = _FACE.sub(" ", simplify(normalise(text.replace("’", "'"))))
    return tuple(_TOKEN.findall(_AGAIN.sub(r"\1", form)))


def _made_of_phrases(tokens: tuple[str, ...]) -> bool:
    """Tell whether the tokens can be cut into known phrases without a rest."""
    known, most = _known()
    reached = {0}
    for start in range(len(tokens)):
        if start in reached:
            reached |= {
                start + size for size in range(1, most + 1) if tokens[start : start + size] in known
            }
    return len(tokens) in reached


@cache
def _known() -> tuple[frozenset[tuple[str, ...]], int]:
    """The tokens of every phrase, and how many the longest has."""
    known = frozenset(_tokens(each) for each in f"{PHRASES}|{CHINESE_PHRASES}".split("|"))
    return known, max(map(len, known))
