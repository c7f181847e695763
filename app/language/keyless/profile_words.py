"""The frames by which the keyless profiler reads single values, in English and Chinese.

What is named is read from its frame, so there is no list of tools, fields or jobs; languages alone
are a table, because a profile holds their tags.
"""

import re
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern

DENIED: Final = lazy_pattern(
    r"\b(?:not|never|no longer|dislikes?|hates?|avoids?|stopped|quit|without|instead of|used to"
    r"|cannot)\b|n['’]t\b|不|没|讨厌|放弃|停止|以前",
    re.IGNORECASE,
)

_NAME: Final = r"[A-Z][\w+#.-]*[\w+#]|[A-Z]"
_WHOLE: Final = rf"(?:{_NAME})(?: (?:{_NAME}|[0-9.]*[0-9]))*"
_NAMES: Final = rf"{_WHOLE}(?:(?:,? and |, |、|和|与|及){_WHOLE})*"
BETWEEN: Final = lazy_pattern(r",? and |, |、|和|与|及")
CODES: Final = lazy_pattern(
    r"\b(?:cod(?:e|es|ing)|program(?:s|ming)?|(?:writ|develop)(?:e|es|s|ing)(?: \w+)?"
    rf" (?:code|software|scripts|programs|apps))(?: mostly| mainly| only)? in (?P<names>{_NAMES})"
    rf"|写(?P<han>{_NAMES})(?:的?代码|程序|脚本)",
    re.ASCII,
)
USES: Final = lazy_pattern(
    r"(?:\buses?|\busing|\bruns? on|\bbuilt (?:with|on|in)|\bwritten in|\bdeploy(?:ed|s)? (?:to|on)"
    rf"|(?P<han>采?用的?是?|使用|基于|部署在)) ?(?P<names>{_NAMES})",
    re.ASCII,
)
"""What a project is built with."""

EXPERTISE: Final = lazy_pattern(
    r"\b(?:expert (?:in|on|at)|experienced (?:in|with)|speciali[sz]es? in|proficient (?:in|with|at)"
    r"|skilled (?:in|at)|good at|knows? a lot about) (?P<names>(?:(?! (?:but|because|so|since|which"
    r"|when|and (?:i|we|am|have|my))\b)[^.,;…]){2,80})"
    r"|(?:擅长|精通|专长是|熟悉|善于)(?P<han>[^，。；,.…]{1,40})",
    re.IGNORECASE,
)

ANSWERS: Final = lazy_pattern(
    r"\b(?:answers?|repl(?:y|ies)|respon\w+|explain\w*|explanations?|communicat\w+|assistant"
    r"|(?:talk|speak|write) to me)\b|^(?:please )?(?:be|keep it|stay|use)\b"
    r"|回答|回复|解释|答复|说明|沟通|助手|跟我说|和我说",
    re.IGNORECASE,
)
"""A wish about how the user is answered."""

Choices = tuple[tuple[str, re.Pattern[str]], ...]


def _choices(**words: str) -> Choices:
    return tuple((name, lazy_pattern(said, re.IGNORECASE)) for name, said in words.items())


STYLES: Final = _choices(
    concise=r"\b(?:concise\w*|brief\w*|short(?:er)?|terse|to the point)\b|简[洁短明练]|精简",
    detailed=r"\b(?:detail\w*|thorough\w*|in[ -]depth|step by step|long(?:er)?)\b|详[细尽]|细致",
    technical=r"\btechnical\w*\b|技术性|技术细节|专业",
)
FORMATS: Final = _choices(
    markdown=r"(?<!no )markdown",
    plain=r"\bplain(?: text)?\b|no (?:markdown|formatting)|纯文本",
    code=r"\b(?:as|in|only|just) code\b|code only|只给代码|代码形式",
)

_TAGS: Final = {
    "zh-CN": "simplified chinese|chinese|mandarin|简体中文|中文|汉语|普通话",
    "zh-TW": "traditional chinese|繁体中文", "yue": "cantonese|粤语", "en": "english|英[文语]",
    "de": "german|德[文语]", "fr": "french|法[文语]", "es": "spanish|西班牙[文语]",
    "pt": "portuguese|葡萄牙[文语]", "it": "italian|意大利[文语]", "ru": "russian|俄[文语]",
    "ar": "arabic|阿拉伯[文语]", "hi": "hindi|印地[文语]", "ja": "japanese|日[文语]",
    "ko": "korean|韩[文语]", "vi": "vietnamese|越南[文语]",
}  # fmt: skip
LANGUAGES: Final = tuple(
    (tag, lazy_pattern(rf"(?:\bin |\bspeak |用|以|说|讲)(?:{words})(?![a-z])", re.IGNORECASE))
    for tag, words in _TAGS.items()
)
"""Tags, with what names them."""

WORK: Final = lazy_pattern(
    r"\b(?:work(?:s|ing|ed)?|job|team|project|company|colleagues?|boss|manager|clients?|office"
    r"|career|startup)\b|工作|上班|团队|项目|公司|同事|客户|老板|职业|创业",
    re.IGNORECASE,
)
STUDY: Final = lazy_pattern(
    r"\b(?:studied|degree|graduated|university|college|phd|master's|bachelor's|trained as|grew up"
    r"|born)\b|毕业|大学|学位|博士|硕士|本科|出生|长大",
    re.IGNORECASE,
)
