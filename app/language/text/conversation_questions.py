"""What a question about a conversation asks for: whose words, all of them or one place. Pure.

The words that only frame such a question ("can you summarise what I told you about …") say nothing
of what it is about, and would find whatever is phrased alike.
"""

import re
from dataclasses import dataclass
from typing import Final

from app.language.text.function_words import content_words
from app.language.text.lazy_pattern import lazy_pattern

_TOLD: Final = (
    r"(?:recommend|suggest|advis|explain|propos|mention|describ|outlin|list|provid|show|help|"
    r"draft|calculat|answer|present)\w*|said|say|told|tell|gave|give|wrote|write"
)
_REPLY = lazy_pattern(
    rf"\b(?:did|have|had) you (?:\w+ )?(?:{_TOLD})\b|\byou(?:'ve| have| had)? (?:\w+ )?"
    r"(?:\w+(?:commended|gested|vised|plained|posed|tioned|scribed|lined|vided)|listed|told|said|"
    r"gave|showed|helped|wrote|drafted)\b|\byour (?:\w+ )?(?:recommendation|suggestion|advice|"
    r"explanation|answer|reply|replie|response|step)s?\b|\bthe assistant\b|"
    r"\b(?:was|were|been) (?:i )?(?:recommended|suggested|advised|explained|told|given)\b|"
    r"[你您](?:之前|上次|曾经?|刚才)?(?:[给帮向为]我)?(?:推荐|建议|说|解释|提到|告诉|列|介绍|讲)|"
    r"[你您]的(?:建议|推荐|解释|回答|说法)|助手",
    re.IGNORECASE,
)
_OWN = lazy_pattern(
    r"\b(?:did|have|had) i (?:\w+ )?(?:say|said|tell|told|mention|ask|bring|brought|want)|"
    r"\bi (?:\w+ )?(?:said|told|mentioned|asked|brought)\b|我(?:说|提|告诉|问)",
    re.IGNORECASE,
)
_ALL = lazy_pattern(
    r"\b(?:in (?:what |which |the )?order|order (?:in which|of)|summar\w+|overview|recap|"
    r"walk me through|timeline of|list (?:all|the|every|my)|all (?:the|of the|my)|throughout|"
    r"across (?:my|our|all)|over time|how (?:has|have|did) .{0,60}"
    r"(?:evolv\w*|chang\w*|develop\w*|progress\w*))\b|"
    r"总结|概括|汇总|回顾|顺序|依次|先后|列出|所有|一共|总共|几次|哪些",
    re.IGNORECASE,
)
_SUMMARY = lazy_pattern(
    r"\bsummar|\boverview\b|\brecap\b|总结|概括|汇总|回顾|"
    r"\bhow (?:has|have|did|do|does) .{0,80}\b(?:evolv|chang|develop|progress)",
    re.IGNORECASE,
)
_FRAME = lazy_pattern(
    r"\b(?:the|this) (?:user|assistant)(?:'s\b|(?= (?:has|had|is|was|did|does|said|says?|tells?|"
    r"told|mention|want|prefer|like|ask|recommend|suggest|explain)|[?.,!]|$))|"
    r"(?:用户|助手)(?=[的说提问想]|$)|"
    r"\b(?:can|could|would|will) you (?:please )?(?:also )?(?:tell|give|show|list|walk|"
    r"summari[sz]e|remind|help|provide|explain)?(?: me)?(?: through)?\b|"
    r"\b(?:in )?(?:the )?order in which\b|\bin (?:the |what |which )?order\b(?! of)|"
    r"\bmention only(?: and only)?\b(?: \w+ (?:items?|things?|aspects?))?|"
    r"\b(?:throughout|across|in|over|during|from|based on) (?:all )?(?:of )?"
    r"(?:my|our|the|these|this) (?:\w+ )?(?:conversation|chat|session|discussion|message|request)"
    r"s?\b|\b(?:different|various) (?:aspect|kind|type)s? of\b|"
    r"\b(?:a |the )?(?:\w+ )?(?:summary|overview|recap) of\b|\bsummari[sz]e\b|"
    r"\b(?:i|you|we|user|assistant) (?:have |had |\w+ly )?(?:brought up|mention(?:ed)?|said|say|"
    r"told|talk(?:ed)? about|discuss(?:ed)?|recommend(?:ed)?|suggest(?:ed)?|explain(?:ed)?|"
    r"asked(?: about)?)\b|总结(?:一下)?|概括|按(?:时间)?(?:先后)?顺序|"
    r"在?我们的?(?:对话|聊天|谈话)[中里]?|^请(?=总结|概括|告诉|列|按|问|你|帮|给|说)|你能|告诉我|列出|我(?:说|提到|问)过?|"
    r"你(?:说|推荐|建议|解释|提到)过?",
    re.IGNORECASE,
)
# Of a text in small letters, and begun with what most words do not begin with: both save time.
_WISH = lazy_pattern(
    r"\b(?:(?:always|never) (?!(?:been|had|have|has|is|are|was|were|heard|done|met|went|came|got|"
    r"knew|felt|thought|forgot|took|made|saw|kept|said|told|found|gave|left|ate|ran|\w+ed|\w+en)\b)"
    r"\w+|"
    r"i(?:(?:'d| would)? (?:\w+ )?prefer\b|(?:'d| would) rather\b|"
    r" (?:really )?(?:like|love|hate|dislike) (?:to|when|it when)\b|'?(?: a)?m more comfortable\b)|"
    r"from now on\b|(?:make sure|remember) to\b|my preference\b|"
    r"please (?:don't|do not|always|never|use|include|avoid|keep)\b)"
)
_CHINESE_WISH = lazy_pattern(
    r"我[更比较]*(?:喜欢|偏好)|我讨厌|我不喜欢|我希望你|"
    r"请(?:总是|始终|一律|务必|不要|别)|以后(?:都|请|不要|别)|每次都|记得要|别再|总是要"
)


@dataclass(frozen=True, slots=True)
class ConversationQuestion:
    """What a question about a conversation asks for.

    Args:
        reply: what the assistant has said, and not what the user has.
        everything: all that was said of something: in what order, how often, a list.
        summary: the course of something.

    """

    reply: bool = False
    everything: bool = False
    summary: bool = False


ONE_PLACE: Final = ConversationQuestion()
"""One place, said by the user."""


def conversation_question(text: str) -> ConversationQuestion:
    """What a question asks for, in English or Chinese; by default one place, said by the user."""
    return ConversationQuestion(
        reply=bool(_REPLY.search(text)) and not _OWN.search(text),
        everything=bool(_ALL.search(text)),
        summary=bool(_SUMMARY.search(text)),
    )


def without_frame(text: str) -> str:
    """A question without the words that only frame it; the whole where there would be no other."""
    bare = _FRAME.sub(" ", text)
    return bare if content_words(bare) else text


def states_wish(text: str) -> bool:
    """Whether somebody says how they want things done from now on, or what they like better."""
    if _WISH.search(text.lower()):
        return True
    return not text.isascii() and _CHINESE_WISH.search(text) is not None
