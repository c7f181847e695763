"""Names of files as a folder keeps them. Pure."""

import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final
from unicodedata import category, normalize

LONGEST: Final = 255
_SEPARATORS = re.compile(r"[/\\]+")


def clean_name(given: str) -> str:
    """The last part of a path, without what no name should hold; `file` where nothing is left."""
    name = _SEPARATORS.split(normalize("NFC", given))[-1]
    name = "".join(sign for sign in name if category(sign)[0] != "C").strip(" .")
    return _cut(name, "") or "file"


def suffixed(name: str, number: int) -> str:
    """The name of the next file that would be called `name`: `plan (1).pdf`."""
    return _cut(name, f" ({number})")


def free_name(name: str, taken: Collection[str]) -> str:
    """The name itself, or the first numbered one that is free."""
    number = 0
    found = name
    while found in taken:
        number += 1
        found = suffixed(name, number)
    return found


def _cut(name: str, addition: str) -> str:
    """The name with an addition before its ending, as long as a name may be."""
    ending = PurePosixPath(name).suffix
    ending = ending if len(ending) <= 20 else ""
    stem = name.removesuffix(ending) if ending else name
    return stem[: LONGEST - len(ending) - len(addition)] + addition + ending
