"""One form for patterns and search: lower case, half width and simplified Chinese.

What people wrote is stored as they wrote it; this form is for comparing. Signs are folded one by
one, so a text keeps its length; words that differ between regions (計程車, 出租车) stay apart.
"""

from itertools import chain
from typing import Final
from unicodedata import category

from opencc import OpenCC

from app.language.text.normalise import normalise

_MORE: Final = "妳你牠它祂他祇只瞭了藉借荳豆砲炮"
"""Variants that OpenCC leaves as they are, each with its everyday form after it."""

_HAN: Final = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x2A6E0))


def _pairs() -> dict[str, str]:
    """Each sign that has a simplified form, with that form."""
    signs = [chr(code) for code in chain(*_HAN)]
    # A line each: OpenCC also knows phrases.
    simple = OpenCC("t2s").convert("\n".join(signs)).split("\n")
    pairs = {sign: one for sign, one in zip(signs, simple, strict=True) if sign != one}
    pairs |= dict(zip(_MORE[::2], _MORE[1::2], strict=True))
    # Folded twice is folded once.
    return {sign: pairs.get(one, one) for sign, one in pairs.items()}


_SIMPLIFIED: Final = str.maketrans(_pairs())


def simplify(text: str) -> str:
    """`text` in simplified characters; as long as before, and unchanged the second time."""
    return text if text.isascii() else text.translate(_SIMPLIFIED)


def fold_lines(text: str) -> str:
    """Fold width, case, quotes and script, line by line; characters of no width hide nothing.

    Lines stay apart, because a sentence may begin or end with its line.
    """
    if not text.isascii():
        text = "".join(sign for sign in text if category(sign) != "Cf")
        text = simplify(text.replace("’", "'").replace("‘", "'"))
    return "\n".join(normalise(line) for line in text.splitlines())
