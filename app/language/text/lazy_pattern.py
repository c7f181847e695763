"""Regular expressions that are compiled when first used.

The tables of words and grammar hold some two thousand expressions, which take 1.5 s of CPU to
compile. Few commands and no migration need any; a process that does pays for those it uses.
"""

import re
from typing import Any, Final, cast

_METHODS: Final = (
    "search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "scanner",
    "flags", "groups", "groupindex",
)  # fmt: skip

# A list, because modules that are imported meanwhile add to it while a thread compiles.
_MADE: Final[list["LazyPattern"]] = []


class LazyPattern:
    """Has every attribute of the compiled pattern; the first one asked for compiles it."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # Called only while the attribute is missing: once, then the pattern's own methods stand
        # in the instance and a call costs what it does on the pattern.
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return vars(self)[name]


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(text, flags)`, done at first use. A fault in the text shows only then.

    For patterns that live as long as their module. The functions of `re` do not take what this
    returns as their pattern; its methods do the same.
    """
    pattern = LazyPattern(text, flags)
    _MADE.append(pattern)
    return cast("re.Pattern[str]", pattern)


def compile_patterns() -> None:
    """Compile every pattern that is not yet, so that no request waits for it; to be run in a
    thread beside the start of a server.
    """
    for pattern in _MADE:
        pattern.search  # noqa: B018 (the first attribute asked for compiles it)
