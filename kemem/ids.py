"""The rule for ids that you choose for users, agents, projects and sessions, as the service has
it: an id is checked before a request.
"""

import re
from typing import Final
from unicodedata import category, normalize
from urllib.parse import quote

LONGEST: Final = 64
"""Characters of an id."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd"
    "\U000e0100-\U000e01ef]"
)


def is_id(text: str) -> bool:
    """Whether `text`, in NFC, can be an id."""
    text = normalize("NFC", text)
    return (
        1 <= len(text) <= LONGEST
        and text.isprintable()
        and text.strip() == text
        and "  " not in text
        and "/" not in text
        and text != "*"
        and text.strip(".") != ""
        and not _UNSEEN.search(text)
        and not category(text[0]).startswith("M")
    )


def checked_id(kind: str, text: str) -> str:
    """`text` in NFC, the form in which the service returns it, if it can be an id.

    Raises:
        ValueError: it cannot.

    """
    if not is_id(text):
        raise ValueError(
            f"{text!r} cannot be the id of a {kind}: 1 to {LONGEST} characters of any script, "
            "without `/`, spaces at an end or in a row, control and invisible characters; not "
            "`*`, and not dots alone"
        )
    return normalize("NFC", text)


def in_header(user_id: str) -> str:
    """An id as a header takes it: UTF-8, percent-encoded."""
    return quote(user_id, safe=":@|+=")
