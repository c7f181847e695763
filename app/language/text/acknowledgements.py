"""Texts that only keep a conversation going: "ok", "thanks!!", "嗯嗯", "👍".

They start no extraction. What says anything besides is read, so a missing phrase costs one run,
and a wrong one could cost a memory: phrases stay out that can be an answer with content.
"""

from functools import cache
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import normalise, simplify

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
