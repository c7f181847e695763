"""The name of what a memory gives the value of: `subject.property`, as `user.residence`.

Every memory of one attribute has the name in the same form, whoever wrote it: an attribute holds
one value at a time, and two forms of its name would hold two.
"""

import re
from typing import Final
from unicodedata import category, normalize

LONGEST: Final = 100
WANTED: Final = (
    "subject.property: letters, digits and _, the subject in any script with a letter first "
    "and more parts after a dot if it needs them, the property in ASCII"
)
_PROPERTY: Final = re.compile(r"[a-z0-9_]+")


def checked_attribute(text: str) -> str:
    """The name in its form: composed (NFC) and in lower case.

    Raises:
        ValueError: it is no such name.

    """
    name = _form(text)
    *subject, held = name.split(".")
    if (
        len(name) > LONGEST
        or not name[:1].isalpha()
        or not subject
        or not all(part and all(map(_in_word, part)) for part in subject)
        or not _PROPERTY.fullmatch(held)
    ):
        raise ValueError(f"must be {WANTED}")
    return name


def mended_attribute(text: str) -> str | None:
    """The same of a name with spaces or other marks, which become `_`; None for what is none."""
    if len(text) > LONGEST:
        return None
    marked = "".join(char if char == "." or _in_word(char) else " " for char in _form(text.strip()))
    try:
        return checked_attribute(re.sub(" +", "_", marked).replace("._", "."))
    except ValueError:
        return None


def _form(text: str) -> str:
    return normalize("NFC", text.lower())


def _in_word(char: str) -> bool:
    # Vowel signs of Hindi and Thai are marks, and no letters.
    return char.isalnum() or char == "_" or category(char).startswith("M")
