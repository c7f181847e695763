"""Uploads and injected blocks live as long as a session, so no memory may rest on them.

Blocks are taken out before anybody reads a text; sentences about uploads are taken out once more
of what was extracted, or an agent would look for files that are gone. Expressions are for single
sentences in lower case and simplified characters; none repeats without a bound, so that searching
stays linear.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import fold_lines

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
    """Take out the sentences that tell of an upload or name a place of uploads.

    What the user does with files elsewhere or again and again stays. A text without such a
    sentence comes back as it was. Takes time linear in the length of the text.
    """
    sentences = _SENTENCE.findall(text)
    kept = [sentence for sentence in sentences if not tells_of_upload(sentence)]
    return text if len(kept) == len(sentences) else "".join(kept).strip()


def tells_of_upload(sentence: str) -> bool:
    """Tell whether one sentence is about something handed over in a session."""
    form = fold_lines(sentence)
    if _PATH.search(form):
        return True
    return _EVENT.search(form) is not None and _LOOKALIKE.search(form) is None
