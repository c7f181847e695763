"""Whether vectors are as long as others of their model: one that is not would break every search
that compares them. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

# `Embedder.name` ends with it.
_DECLARED: Final = re.compile(r":([1-9][0-9]{0,5})\Z")


class VectorLengths:
    """How long the vectors of each model are: as its name says, else as the first in a part."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def faults(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What is wrong with the vector of a checked row, and the code of it: column and why."""
        vector, model, code = row.get("embedding"), row.get("embedding_model"), row.get("code")
        if vector is None or not model:
            return
        declared = _DECLARED.search(model)
        length = int(declared[1]) if declared else self._first.setdefault(model, len(vector))
        if len(vector) != length:
            why = "as its model says" if declared else "as the first of its model"
            yield "embedding", f"must have {length} numbers, {why}"
        elif declared and isinstance(code, str) and len(code) != length:
            yield "code", f"must have {length} bits, one for each number of the vector"
