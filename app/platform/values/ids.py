"""Ids that callers choose for their users, agents, projects and sessions, in any script.

The rule follows the FreeformClass of PRECIS (RFC 8264) in NFC and with case kept, as OpaqueString
of RFC 8265. Stricter than it, an id has no joiners at all, no other spaces, and nothing that a path
cannot carry.
"""

import re
from typing import Final
from unicodedata import category, normalize

LONGEST: Final = 64
"""Characters of an id, each of up to 4 bytes."""

WANTED: Final = (
    "1 to 64 characters of any script, without `/`, spaces at an end or in a row, control and "
    "invisible characters; not `*`, and not dots alone"
)

PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]*")
"""An id of ASCII alone, as messages and blocks have it."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd"
    "\U000e0100-\U000e01ef]"
)
"""What Python prints and nobody can tell apart: letters and marks that are
Default_Ignorable_Code_Point in DerivedCoreProperties.txt, the empty Braille pattern, and U+FFFD,
which a server reads wherever a path or a query is not UTF-8.
"""

_MOST_DECOMPOSED: Final = 4
"""Characters into which NFC's one may be taken apart."""


def composed(text: str) -> str:
    """`text` in NFC, so that a name typed in two forms is one id.

    What cannot become an id in NFC is returned as it is: putting marks into order takes quadratic
    time.
    """
    return normalize("NFC", text) if len(text) <= LONGEST * _MOST_DECOMPOSED else text


def checked_own_id(text: str) -> str:
    """`text`, an id in NFC.

    Raises:
        ValueError: it cannot be an id that a caller chose.

    """
    if not is_own_id(text):
        raise ValueError(f"must be an id: {WANTED}")
    return text


def is_own_id(text: str) -> bool:
    """Whether a caller may choose this id, as it is."""
    if not 1 <= len(text) <= LONGEST:
        return False
    if PLAIN.fullmatch(text):
        return True
    return (
        # Of separators only the space is printable; unassigned characters, surrogates, private
        # ones, and what turns the direction of writing are not.
        text.isprintable()
        and text.strip(" ") == text
        and "  " not in text
        and "/" not in text
        and text != "*"
        and text.strip(".") != ""
        and not _UNSEEN.search(text)
        # It would join the character before it, in a line of text or behind a prefix.
        and not category(text[0]).startswith("M")
        and normalize("NFC", text) == text
    )
