"""What the keyless reader reads: clauses in the speaker's own words, and text that is not theirs.

A clause is selected from a message, never rewritten. Code, logs, mails, quotations and whatever
follows "here is my essay:" were pasted, not said; they are blanked, so that every place in the
text stays what it was.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.language.keyless.chinese_cues import PERSON
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk

ASKED: Final = "asked"
"""The cue of what the speaker asks to be remembered; it is certain."""

LONGEST: Final = 1_000
"""Characters of a clause; a longer one, without a comma, was hardly said, and is not read."""

LONGEST_LEAD: Final = 240
"""Characters of a sentence that is put in front of another."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of one message in which something may be told.

    Args:
        text: in the speaker's own words; parts that stood apart are joined with " … ".
        start, end: its place in the message.
        cues: named features that speak for or against it being worth remembering.
        lead: the sentence before it, where the clause cannot be understood without.
        aside: the clause before it in its sentence, with the words that join the two.

    """

    text: str
    start: int
    end: int
    cues: Mapping[str, float]
    lead: str = ""
    aside: str = ""

    @property
    def content(self) -> str:
        """What is stored: understandable alone."""
        between = "。" if has_cjk(self.lead[-1:]) else "" if self.lead.endswith("，") else " "
        return f"{self.lead}{between}{self.text}" if self.lead else self.text


_FENCE: Final = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_INLINE_CODE: Final = lazy_pattern(r"`[^`\n]{40,}`")
# Code, logs, quoted lines and tables, a line at a time.
_CODE_LINE: Final = lazy_pattern(
    r"^[ \t]*(?:(?:>|#{1,6} |(?i:user|human|assistant|ai|bot|system|用户|助手) ?[:：]"
    r"|\||\$ |#include|//|/\*|\*/|</?\w+|Traceback|File \"|at [\w.$]+\()[^\n]*"
    r"|@\w+$|[\w.]+\([^\n]*\);?$"
    r"|(?:def|class|function|public|private|static) \w+[^\n]*[({:]"
    r"|(?:import|from) [\w.]+(?: import [^\n]+)?;?$|(?:const|let|var) \w+ ?=|return [^\n]*[;)]$"
    r"|(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER) [^\n]*(?:FROM|INTO|SET|TABLE|WHERE)\b"
    r"|(?:npm|pip|git|sudo|docker|curl|kubectl|cd) [\w./-]+[^\n.?!]*$"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\n]*"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)\b[:\]])[^\n]*"
    r"|^[^\n]*(?:[{};]|=>|\)\s*:)[ \t]*$|^[ \t]*[\w.\[\]]+ ?(?:=|:=|\+=) [^\n]*$",
    re.MULTILINE,
)
_MAIL: Final = lazy_pattern(
    r"^[ \t]*(?:from|to|cc|subject|sent|发件人|收件人|主题)[ \t]?[:：][^\n]*\n"
    r"[ \t]*(?:from|to|cc|subject|sent|date|发件人|收件人|主题|日期)[ \t]?[:：].*"
    r"|^[ \t]*subject:[ \t].*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_TEXTS: Final = (
    r"(?:code|essay|draft|text|letter|e-?mail|message|paragraphs?|resume|cv|article|poem"
    r"|script|snippet|query|function|error|logs?|output|traceback|config(?:uration)?|transcript"
    r"|speech|abstract|post|dialogue|passage|sentences?|introduction|conclusion|attempt|excerpt"
    r"|caption|lyrics|what i(?:'ve)? (?:have|wrote|got|written)[^:\n]{0,20})"
)
# What follows was written elsewhere, as far as the next paragraph that asks for something.
_ANNOUNCED: Final = lazy_pattern(
    rf"(?:\b(?:here(?:['’]s| is| are)|this is|below is|following)\b[^.?!:\n]{{0,50}}"
    rf"\b(?:{_TEXTS}|(?:his|her|their|(?:my|the) \w+['’]s) (?:bio|profile|statement|story|note))\b"
    r"|(?:^|[.?!\n] ?|\b(?:please|you) )"
    r"(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|correct|polish|edit"
    rf"|shorten|fix|improve|review|check)\b[^.?!:\n]{{0,60}}"
    r"|(?:翻译|润色|改写|修改|总结|概括|校对|缩写|扩写|纠错|检查)[^。？！:：\n]{0,20}"
    r"|(?:这是|以下是|下面是|附上)[^。？！:：\n]{0,20}(?:文|信|邮件|代码|日志|报错|稿|段|诗|小说|内容|原文|材料|作业|题)"
    r")[^.?!:：。？！\n]{0,30}(?::(?=\s)|：).{8,}?"
    r"(?=(?<!\n)\n[ \t]*+\n\s*+(?:can|could|would|will|please|what|how|do|does|is|i|my|thanks"
    r"|请|能|帮|你|我|谢)|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# What somebody else said of "I", what was made up, and an example that a question is about.
_OF_OTHERS: Final = lazy_pattern(
    r"(?:^|(?<=[.?!] ))(?!(?:like|as|truth)\b)(?:(?!\b(?:i|we)\b)[^.?!:,\n]){1,40} "
    r"(?:told (?:me|us)|said|says|wrote|writes|texted)(?: to (?:me|us))?: "
    r"(?=[^.?!\n]*\b(?:i|my|me|we|our)\b).*"
    rf"|(?:^|(?<=[。？！]))(?:我们?[的家]?(?={PERSON})|(?!我)[^。？！：\n]){{1,20}}"
    r"(?:(?<![来话句实白真短先再])[说写]道?|告诉我们?|(?<!么)问我?|回[复答]我?)：(?=[^。？！\n]*我).*"
    r"|(?:^|(?<=[。？！]))(?:[请再你]|[帮给]我)*写"
    r"(?!下|[^。？！：\n]{0,18}(?:介绍|简历|提醒|备忘|笔记))[^。？！：\n]{1,20}：.*"
    r"|\A\s*角色扮演(?:：|，(?:你|我是)).*"
    r"|\A\s*(?:(?:for (?:example|instance)|e\.g\.),? (?=(?:i|we|my|our)\b)"
    r"|(?:比如说?|例如)[，：]?(?=我))(?=[^\n]*(?:[?？]|怎么办)).*",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTATION: Final = lazy_pattern(r'"([^"\n]{2,2000})"|“([^“”\n]{2,2000})”|「([^「」\n]{2,2000})」')
_SPEAKS: Final = lazy_pattern(r"\b(?:I|I['’]m|my|me|we|our|us)\b|我|咱")
_LONGEST_TITLE: Final = 60


def without_pasted(text: str) -> str:
    """The text with a space for each pasted character; line breaks and all places stay.

    Of a quotation that is long, or that says "I", the quotation marks stay: a title in quotes
    stays whole.
    """
    for pattern in (_FENCE, _INLINE_CODE, _OF_OTHERS, _ANNOUNCED, _MAIL, _CODE_LINE):
        text = pattern.sub(_blank, text)
    return _QUOTATION.sub(_quotation, text)


def _blank(match: re.Match[str]) -> str:
    kept = _kept_head(match)
    return match[0][:kept] + "".join("\n" if each == "\n" else " " for each in match[0][kept:])


def _kept_head(match: re.Match[str]) -> int:
    """How much of it the speaker said: all that announces the pasted text."""
    if match.re.pattern != _ANNOUNCED.pattern:
        return 0
    return min(at for at in (match[0].find(":"), match[0].find("：")) if at >= 0) + 1


def _quotation(match: re.Match[str]) -> str:
    said = match[1] or match[2] or match[3]
    if len(said) <= _LONGEST_TITLE and not _SPEAKS.search(said):
        return match[0]
    return match[0][0] + "…" + " " * (len(said) - 1) + match[0][-1]
