"""The forms in which texts are compared: equal statements, and one form for patterns and search.

A form only ever feeds a hash, a comparison or a count: what people wrote is stored as they wrote
it. The form for search has simplified Chinese, folded character by character, so that a text keeps
its length; words that differ between regions (計程車, 出租车) stay apart.
"""

from functools import cache
from hashlib import sha256
from itertools import chain
from typing import Final
from unicodedata import category, normalize

from app.language.text.lazy_pattern import lazy_pattern

_CJK = lazy_pattern(
    "["
    "\u2e80-\u2fdf"  # Radicals.
    "\u3005-\u3007\u3021-\u3029"  # Iteration mark, closing mark, zero, Suzhou numerals.
    "\u3040-\u30ff\u31f0-\u31ff"  # Kana.
    "\u3100-\u312f\u31a0-\u31bf"  # Bopomofo.
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han.
    "\uac00-\ud7af\u1100-\u11ff"  # Hangul.
    "\uff66-\uff9f"  # Half-width kana.
    "\U00020000-\U0003fffd"  # Han, the later planes.
    "]"
)


def normalise(text: str) -> str:
    """Fold away what does not change a statement: width, case, and the kind and run of spaces.

    Normalising a second time changes nothing. Letters, digits and punctuation are kept, so
    "v1.2" and "v12" stay apart.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    # Casefolding can undo NFKC (U+0345 after another mark) and NFKC can yield upper case
    # (U+2121, "TEL"), so one round is not enough to be stable: Unicode 3.13, toNFKC_Casefold.
    folded = normalize("NFKC", normalize("NFKC", normalize("NFD", text).casefold()).casefold())
    # Last, because NFKC turns every other space into U+0020.
    return " ".join(folded.split())


def content_hash(text: str) -> bytes:
    """Return 32 bytes that are equal when two texts normalise to the same."""
    # A lone surrogate cannot reach a UTF-8 database, but a hash must not be what says so.
    return sha256(normalise(text).encode("utf-8", "surrogatepass")).digest()


def length(text: str) -> int:
    """Count the Unicode code points left after trimming."""
    return len(text.strip())


def weight(text: str) -> int:
    """How much a text says, in letters: as `length`, with two for each character of a script
    that writes syllables or words.
    """
    count = length(text)
    return count if text.isascii() else count + len(_CJK.findall(text))


def has_cjk(text: str) -> bool:
    """Tell whether any character is Han, kana, bopomofo or Hangul."""
    return not text.isascii() and _CJK.search(text) is not None


_MORE: Final = "妳你牠它祂他祇只瞭了藉借荳豆砲炮"
"""Variants that OpenCC leaves as they are, each with its everyday form after it."""

_HAN: Final = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x2A6E0))


@cache
def _simplified() -> dict[int, str]:
    """Each character that has a simplified form, with that form."""
    from opencc import OpenCC

    chars = [chr(code) for code in chain(*_HAN)]
    # A line each: OpenCC also knows phrases.
    simple = OpenCC("t2s").convert("\n".join(chars)).split("\n")
    pairs = {char: plain for char, plain in zip(chars, simple, strict=True) if char != plain}
    pairs |= dict(zip(_MORE[::2], _MORE[1::2], strict=True))
    # Folded twice is folded once.
    return str.maketrans({char: pairs.get(plain, plain) for char, plain in pairs.items()})


def simplify(text: str) -> str:
    """`text` in simplified characters; as long as before, and unchanged the second time."""
    return text if text.isascii() else text.translate(_simplified())


def fold_lines(text: str) -> str:
    """Fold width, case, quotes and script, line by line; characters of no width hide nothing.

    Lines stay apart, because a sentence may begin or end with its line.
    """
    if not text.isascii():
        text = "".join(char for char in text if category(char) != "Cf")
        text = simplify(text.replace("’", "'").replace("‘", "'"))
    return "\n".join([normalise(line) for line in text.splitlines()])
