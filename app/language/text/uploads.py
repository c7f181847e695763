"""Uploads and injected blocks live as long as a session, so no memory may rest on them.

Blocks are taken out before anybody reads a text (D-11); sentences about uploads once more out
of what was extracted (D-38), or an agent would look for files that are gone.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.upload_patterns import EVENTS, LOOKALIKES, PATHS
from app.language.text.variants import fold_lines

# The space after it belongs to the sentence, so that the parts add up to the text.
_SENTENCE = lazy_pattern(
    r"[^.!?。！？\n]*(?:[.!?](?!\s|$)[^.!?。！？\n]*)*(?:[.!?]+|[。！？\n]+|$)\s*"
)
_PATH = lazy_pattern("|".join(PATHS))
_EVENT = lazy_pattern("|".join(EVENTS))
_LOOKALIKE = lazy_pattern("|".join(LOOKALIKES))


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

    A block that is never closed reaches to the end, and a stray closing tag goes alone. A tag
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


def _blocks(text: str, tags: Collection[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each outermost block begins, its inside begins and ends, and it ends."""
    names = "|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True))
    # One without an end counts too: what a client cut off was injected all the same.
    tag = lazy_pattern(
        rf"(?<!`)<(?P<close>/?)(?P<name>{names})(?=[\s/<>]|$)[^<>]*+(?P<end>>?)", re.IGNORECASE
    )
    opened: tuple[re.Match[str], str] | None = None
    depth = 0
    for match in tag.finditer(text):
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
        yield opened[0].start(), opened[0].end(), len(text), len(text)


def scrub_upload_mentions(text: str) -> str:
    """Take out the sentences that tell of an upload or name a place of uploads.

    What the user does with files elsewhere or again and again stays (C-08). A text without such a
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
