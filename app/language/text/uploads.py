"""Uploads and injected blocks live as long as a session, so no memory may rest on them.

Blocks are taken out before anybody reads a text; sentences about uploads are taken out once more
of what was extracted, or an agent would look for files that are gone. Expressions are for single
sentences in lower case and simplified characters; none repeats without a bound, so that searching
stays linear.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import fold_lines, has_cjk

_EXTENSION = (
    r"\.(?:pdf|docx?|xlsx?|pptx?|csv|tsv|txt|md|json|ya?ml|xml|html?|zip|tar|gz|rar|7z|png|jpe?g"
    r"|gif|webp|svg|heic|mp[34]|wav|m4a|mov|avi|py|ipynb|js|ts|sql|log|parquet|eml|epub|pages)"
    r"(?![a-z0-9])"
)
_NOUN = (
    r"(?:files?|documents?|attachments?|pdfs?|spreadsheets?|images?|pictures?|photos?"
    r"|screenshots?|slides?|presentations?|csvs?|resumes?|cvs?|zip|archives?|reports?"
    r"|transcripts?|contracts?|invoices?|datasets?)(?![a-z])"
)
_CHINESE_NOUN = (
    "(?:文件|文档|附件|图片|照片|截图|图像|表格|资料|简历|报告|合同|论文|幻灯片|压缩包|数据集"
    "|发票|音频|录音)"
)

_SOME = r"(?:an? |the |one |two |three |some |several |\d{1,3} )?(?:new )?"

PATHS: Final = (
    r"/mnt/user-data/|/mnt/data/|sandbox:/|/tmp/uploads?/",
    r"</?(?:uploaded_files?|attachments?)",
)
"""Places that end with the session; a sentence that names one goes, whatever else it says."""

EVENTS: Final = (
    rf"(?<![a-z])(?:uploaded|uploading|attached|re-uploaded) [^.!?]{{0,60}}?(?:{_NOUN}"
    rf"|{_EXTENSION})",
    rf"(?:{_NOUN}|{_EXTENSION})[^.!?]{{0,20}}? (?:was|were|is|are|has been|have been|had been|got"
    r"|being) (?:just |successfully |also |already |now )?(?:uploaded|attached)",
    r"(?<![a-z])(?:via|after|through|from|during) (?:a |the )?file upload",
    rf"(?<![a-z])(?:user|i|he|she|they) (?:has |have |had )?(?:just |also |already )?upload(?:ed"
    rf"|s) (?:an? |the |one |two |three |some |several |\d{{1,3}} )?(?:new )?(?:{_NOUN}"
    rf"|\S{{1,60}}{_EXTENSION})",
    rf"(?<![a-z])user (?:has |had )?(?:just |also )?(?:sent|shared|pasted|provided) {_SOME}"
    rf"(?:{_NOUN}|\S{{1,60}}{_EXTENSION})(?=[.!?,;]|$)",
    rf"(?<![a-z])i(?:'ve| have)? (?:just |also )?(?:sent|shared|pasted) (?:you {_SOME}"
    rf"(?:{_NOUN}|\S{{1,60}}{_EXTENSION})|{_SOME}{_NOUN} (?:here|above|below)(?![a-z]))",
    # --- Chinese
    rf"上传(?:了|过|完)?[^。!?]{{0,30}}?(?:{_CHINESE_NOUN}|{_EXTENSION})",
    rf"(?:{_CHINESE_NOUN}|{_EXTENSION})[^,。!?]{{0,6}}(?:已|已经|被|都|刚刚?|成功){{0,2}}上传",
    r"(?:用户|我|他|她|您|你)(?:刚刚|刚才|刚|今天|昨天|已经|已|又|也|之前|曾){0,2}(?:上传|附上)"
    r"(?:了|过)",
    r"(?:用户|我)(?:刚刚|刚才|刚|已经|已|又|也){0,2}(?:发来|贴|发(?=给[你您]))(?:给[你您])?了?"
    rf"(?:[一二两三几]?[个张份篇页]|一些)?{_CHINESE_NOUN}",
    rf"附上了?[^,。!?]{{0,12}}(?:{_CHINESE_NOUN}|{_EXTENSION})",
    r"(?:见|请见|查看|请看|阅读|随信?)附件|附件(?:中|里|内)的?",
)
"""Something was handed over in a session."""

LOOKALIKES: Final = (
    # A habit or a wish.
    r"(?<![a-z])(?:prefers?|likes?|loves?|hates?|enjoys?|dislikes?|avoids?|usually|often"
    r"|regularly|always|never|every|each|weekly|daily|supports?)(?![a-z])[^.!?]{0,60}upload",
    r"(?<![a-z])upload[^.!?]{0,60} (?:every|each|weekly|daily|regularly)(?![a-z])",
    r"(?<![a-z])(?:for|of|about|when|while|before|how to|without|by) (?:re-)?upload(?:ing|ed|s)?"
    r"(?![a-z])",
    # Software of the user's own.
    r"(?<![a-z])(?:app|apps|service|api|project|website|server|backend|frontend|system|platform"
    r"|product|pipeline|endpoint|bucket|code|script|company|team|customers?|clients?|users)"
    r"(?![a-z])[^.!?]{0,60}(?:upload|attach)",
    r"(?<![a-z])(?:builds?|building|develop[a-z]{0,4}|implement[a-z]{0,3}|maintain[a-z]{0,3}"
    r"|design[a-z]{0,3}|works? on|working on|debug[a-z]{0,4}|tests?|testing)"
    r"(?![a-z])[^.!?]{0,60}upload",
    r"upload (?:feature|service|endpoint|api|component|form|button|page|speed|limit|widget|tool)",
    # A place that outlives the session.
    r"upload[a-z]{0,3}[^.!?]{0,60} (?:to|on|onto) (?:the |his |her |their |my |our |a )?"
    r"(?:youtube|github|gitlab|s3|aws|azure|instagram|tiktok|facebook|linkedin|google|drive"
    r"|dropbox|onedrive|icloud|notion|confluence|sharepoint|jira|website|blog|portal|app store"
    r"|npm|pypi|arxiv|kaggle|hugging ?face|soundcloud|spotify|flickr|cloud|company|server"
    r"|bilibili)",
    # What is attached to something else, or to someone.
    r"(?<![a-z])attached to (?!(?:this|the) (?:message|chat|conversation|session))",
    # --- Chinese
    r"(?:经常|常常|喜欢|偏好|习惯|总是|每天|每周|每月|每次|定期|希望|讨厌|想)[^,。!?]{0,12}上传",
    r"上传(?:功能|服务|接口|组件|模块|按钮|页面|系统|平台|软件|程序|应用|插件|需求|速度|限制|工具"
    r"|代码)",
    rf"{_CHINESE_NOUN}上传(?:功能|服务|接口|组件|模块|按钮|页面|系统|平台|软件|程序|应用|插件"
    rf"|需求|速度|限制|工具)",
    r"(?:开发|实现|维护|设计|负责|编写|测试|调试|网站|系统|平台|应用|后端|前端|客户|顾客"
    r"|公司)[^,。!?]{0,16}上传",
    r"上传[^,。!?]{0,20}(?:到|至)(?:了)?(?:我的|他的|她的|公司的?|自己的)?\s?(?:youtube|b站"
    r"|哔哩哔哩|github|gitlab|s3|网盘|百度|抖音|小红书|微博|服务器|云|官网|网站|博客|朋友圈|知乎"
    r"|优酷|阿里)",
)
"""What happens again, elsewhere, or in the user's own software: worth knowing."""

_CACHED_TAGS: Final = 64

MOST_UNCLOSED: Final = 8
"""Blocks of a text that are never closed and take their paragraph; one more takes the rest."""

_BLANK_LINE = lazy_pattern(r"\n[ \t]*\n")

_PATH = lazy_pattern("|".join(PATHS))
_EVENT = lazy_pattern("|".join(EVENTS))
_LOOKALIKE = lazy_pattern("|".join(LOOKALIKES))

# Where one part of a sentence may end and another begin.
_JOINT = lazy_pattern(
    r"\s?[,，;；]\s?(?:(?:and|but|so|then|while|because) )?| (?:and|but|so|then|while|because) "
    "|并且|而且|但是|不过|同时",
    re.IGNORECASE,
)
_SUBJECT = lazy_pattern(
    r"(?:i|he|she|we|they|(?:the )?user|my|his|her|our|their)(?![a-z])(?:(?='s)[^ ]{1,40} )?"
    "|用户|[我他她您你](?:们)?",
    re.IGNORECASE,
)
# A verb, told by the little word behind it: of files there is none ("and cover letters").
_PREDICATE = lazy_pattern(
    rf"(?!{_NOUN})(?:am|is|are|was|were|has|have|had|will|would|can|could"
    r"|[a-z]{2,20} (?:an?|the|my|his|her|their|our|at|in|on|to|for|as|with|from|of|that|not|about))"
    r"(?![a-z])"
)
# How a part begins or ends that is part of another: "In Bonn, …", "在会话开始时，…".
_DEPENDS = lazy_pattern(
    r"(?:in|on|at|from|after|before|when|while|as|since|if|with|for|during|by|to|via|based"
    r"|according|which|that|who|where|it|this|these)(?![a-z])"
)
_CHINESE_DEPENDS = lazy_pattern(
    f"^(?:为了|根据|按照|如果|因为|由于|通过|其中|里面|内容|包含|包括)|[时后前中里]$"
    f"|{_CHINESE_NOUN}|{_EXTENSION}"
)
_SHORTEST: Final = 4
_FEWEST: Final = 3
_SENTENCE_END = lazy_pattern(r"[.!?。！？\n]*\s*$")

# The space after it belongs to the sentence, so that the parts add up to the text.
_SENTENCE = lazy_pattern(
    r"[^.!?。！？\n]*(?:[.!?](?!\s|$)[^.!?。！？\n]*)*(?:[.!?]+|[。！？\n]+|$)\s*"
)


@dataclass(frozen=True, slots=True)
class Stripped:
    """A text without its blocks, and what stood in them, in order; blank ones are left out.

    `found` tells a text that had tags from one that had none, also when nothing stood in them.
    """

    text: str
    blocks: tuple[str, ...]
    found: bool


def strip_blocks(text: str, tags: Collection[str]) -> Stripped:
    """Take out every `<tag …>…</tag>` of the given names, in any case, nested or not.

    A block that is never closed reaches to the end of its paragraph: what a user writes after a
    blank line is theirs. A stray closing tag goes alone. A tag
    right after a backtick is spoken of and stays. Stripping the result again changes nothing, and
    takes time linear in the length of the text.
    """
    if not tags or "<" not in text:
        return Stripped(text.strip(), (), found=False)
    kept, blocks = [], []
    position = 0
    for start, inside, outside, end in _blocks(text, tags):
        kept.append(text[position:start])
        blocks.append(text[inside:outside].strip())
        position = end
    kept.append(text[position:])
    # A line end between what is left: two halves of a tag must not become one.
    said = "\n".join(part.strip() for part in kept if part.strip())
    return Stripped(said, tuple(block for block in blocks if block), found=position > 0)


def _blocks(
    text: str, tags: Collection[str], start: int = 0, unclosed: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each outermost block begins, its inside begins and ends, and it ends.

    Each that is never closed has the rest of the text read again, so there are not many.
    """
    tag = _tag_of(tuple(tags))
    opened: tuple[re.Match[str], str] | None = None
    depth = 0
    for match in tag.finditer(text, start):
        name = match["name"].lower()
        alone = match[0].endswith("/>") and not match["close"]
        if opened is None:
            if alone or match["close"]:
                yield match.start(), match.end(), match.end(), match.end()
            else:
                opened, depth = (match, name), 1
        elif name == opened[1] and not alone:
            depth += -1 if match["close"] else 1
            if depth == 0:
                yield opened[0].start(), opened[0].end(), match.start(), match.end()
                opened = None
    if opened is not None:
        blank = None if unclosed == MOST_UNCLOSED else _BLANK_LINE.search(text, opened[0].end())
        end = blank.start() if blank else len(text)
        yield opened[0].start(), opened[0].end(), end, end
        if blank:
            yield from _blocks(text, tags, end, unclosed + 1)


@lru_cache(_CACHED_TAGS)
def _tag_of(tags: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True))
    # One without an end counts too: what a client cut off was injected all the same.
    return re.compile(
        rf"(?<!`)<(?P<close>/?)(?P<name>{names})(?=[\s/<>]|$)[^<>]*+(?P<end>>?)", re.IGNORECASE
    )


def scrub_upload_mentions(text: str) -> str:
    """Take out what tells of an upload or names a place of uploads, and nothing else.

    Of a sentence that says something besides, the rest stays letter for letter: "I uploaded my CV
    and I work at SAP." becomes "I work at SAP.". What the user does with files elsewhere or again
    and again stays. A text without a mention comes back as it was. Takes time linear in the
    length of the text.
    """
    sentences = _SENTENCE.findall(text)
    if not any(map(tells_of_upload, sentences)):
        return text
    return "".join(map(_scrubbed, sentences)).strip()


def tells_of_upload(sentence: str) -> bool:
    """Tell whether one sentence is about something handed over in a session."""
    return _tells(fold_lines(sentence))


def _tells(form: str) -> bool:
    if _PATH.search(form):
        return True
    return _EVENT.search(form) is not None and _LOOKALIKE.search(form) is None


@dataclass(slots=True)
class _Part:
    """A part of a sentence between commas and conjunctions.

    Args:
        joint: what joins it to the part before.
        form: the part as expressions read it.
        mention: whether it tells of an upload, or goes with one that does.

    """

    joint: str
    text: str
    form: str
    mention: bool = False

    @property
    def has_subject(self) -> bool:
        return _SUBJECT.match(self.form) is not None

    @property
    def has_predicate(self) -> bool:
        return _PREDICATE.match(self.form) is not None

    @property
    def says_something(self) -> bool:
        """Whether it can stand without the parts before it."""
        if self.has_subject:
            return True
        if has_cjk(self.form):
            return len(self.form) >= _SHORTEST and not _CHINESE_DEPENDS.search(self.form)
        return len(self.form.split()) >= _FEWEST and not _DEPENDS.match(self.form)


def _scrubbed(sentence: str) -> str:
    if not tells_of_upload(sentence):
        return sentence
    end = _SENTENCE_END.search(sentence)
    body = sentence[: end.start()] if end else sentence
    parts = _parts(body)
    _mark_mentions(parts)
    kept = [part for part in parts if not part.mention]
    told = any(part.says_something or part.has_predicate for part in kept)
    if len(kept) == len(parts) or not told:
        return ""
    said = _subject_of(parts)
    for part in kept:
        said += (part.joint if part is not kept[0] else "") + part.text
    said += sentence[len(body) :]
    # What stood apart may tell of an upload once it stands together.
    return "" if tells_of_upload(said) else said


def _subject_of(parts: Sequence[_Part]) -> str:
    """What the first part that stays shares with the mention before: "I uploaded … and work …"."""
    subject = ""
    for part in parts:
        if not part.mention:
            return f"{subject} " if subject and part.has_predicate else ""
        found = _SUBJECT.match(part.text)
        subject = found[0].strip() if found else subject
    return ""


def _parts(body: str) -> list[_Part]:
    parts, start, joint = [], 0, ""
    for found in _JOINT.finditer(body):
        if body[start : found.start()].strip():
            parts.append(_Part(joint, body[start : found.start()], ""))
            start, joint = found.end(), found[0]
    parts.append(_Part(joint, body[start:], ""))
    for part in parts:
        part.form = fold_lines(part.text)
    return parts


def _mark_mentions(parts: Sequence[_Part]) -> None:
    """Mark the parts that any expression reaches into, and those that hang on one of them."""
    form, ends = "", []
    for part in parts:
        joined = fold_lines(part.joint + part.text)
        space = " " if form and joined[:1] not in {",", ";"} and not has_cjk(joined[:1]) else ""
        form += space + joined
        ends.append(len(form))
    spans = [found.span() for each in (_PATH, _EVENT) for found in each.finditer(form)]
    start = 0
    for part, end in zip(parts, ends, strict=True):
        part.mention = any(first < end and last > start for first, last in spans)
        start = end
    for before, part in pairwise(parts):
        if before.mention and not (part.has_subject or part.has_predicate):
            part.mention = part.mention or not (has_cjk(part.form) and part.says_something)
