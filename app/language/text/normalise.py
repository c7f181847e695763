"""One form per statement: what two texts must share to count as the same text (B-01).

The form only ever feeds a hash, a comparison or a count. What people wrote is stored as
they wrote it.
"""

from hashlib import sha256
from unicodedata import normalize

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
    """Count the Unicode code points left after trimming (B-15)."""
    return len(text.strip())


def has_cjk(text: str) -> bool:
    """Tell whether any character is Han, kana, bopomofo or Hangul."""
    return _CJK.search(text) is not None
