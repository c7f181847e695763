"""Regular expressions that are compiled when first used, and which of many a text has to be
searched by.

The tables of words and grammar hold some two thousand expressions, which take 1.5 s of CPU to
compile. Few commands and no migration need any; a process that does pays for those it uses.

Most expressions can match only where a certain word stands. To look for 200 words takes a text
of a sentence some ten microseconds, and to search it by 70 expressions twenty times as long.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import chain
from re import _constants as codes  # type: ignore[attr-defined] # what `re` parses is not public
from re import _parser as parser  # type: ignore[attr-defined] # nor is how it does
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


def literals(texts: Iterable[str]) -> str:
    """An expression for any of the texts, the longest where several begin alike.

    What they begin with alike is in it once: to look for 200 words takes a text of a sentence 3
    microseconds instead of 6, and looking for each of them in turn 10.
    """
    tails: dict[str, set[str]] = {}
    for text in texts:
        tails.setdefault(text[:1], set()).add(text[1:])
    ended = tails.pop("", None) is not None
    alternatives = [re.escape(first) + literals(tail) for first, tail in sorted(tails.items())]
    if len(alternatives) > 1 or (ended and alternatives):
        return f"(?:{'|'.join(alternatives)})" + "?" * ended
    return "".join(alternatives)


def compile_patterns() -> None:
    """Compile every pattern that is not yet, so that no request waits for it; to be run in a
    thread beside the start of a server.
    """
    for pattern in _MADE:
        pattern.search  # noqa: B018 (the first attribute asked for compiles it)


class PatternIndex:
    """Expressions by the parts that a text must have, one of them at least, to match."""

    def __init__(self, patterns: Sequence[str], flags: int = 0) -> None:
        self._patterns = patterns
        self._flags = flags

    @cached_property
    def _places(self) -> tuple[dict[str, list[int]], list[int]]:
        """Places of expressions by part, and of those that may match whatever a text has."""
        by_part: dict[str, list[int]] = {}
        anywhere = []
        for place, pattern in enumerate(self._patterns):
            parts = needed_parts(pattern, self._flags)
            for part in parts:
                by_part.setdefault(part, []).append(place)
            if not parts:
                anywhere.append(place)
        return by_part, anywhere

    def possible(self, text: str) -> list[int]:
        """Places of the expressions that may match, in their order."""
        # No part that has other characters is in an ASCII text, and half of the parts have some.
        found = (self._ascii_finder if text.isascii() else self._finder).findall(text)
        if not found:
            return self._places[1]
        return sorted({*self._places[1], *chain.from_iterable(map(self._begun, found))})

    @cached_property
    def _ascii_finder(self) -> re.Pattern[str]:
        return _finder([part for part in self._places[0] if part.isascii()])

    @cached_property
    def _finder(self) -> re.Pattern[str]:
        # Thousands of characters begin no part, while most letters do.
        begin = "".join({re.escape(part[0]) for part in self._places[0]})
        return _finder(list(self._places[0]), f"(?=[{begin}])" if begin else "")

    @cached_property
    def _begun(self) -> Callable[[str], list[int]]:
        """Places of the expressions by a part that was found: those of all that it begins with."""
        parts = self._places[0]
        return cache(
            lambda found: [
                place for end in range(1, len(found) + 1) for place in parts.get(found[:end], ())
            ]
        )


def _finder(parts: Sequence[str], begin: str = "") -> re.Pattern[str]:
    """Finds the longest of the parts at each place of a text that `begin` allows."""
    return re.compile(f"{begin}(?=({literals(parts)}))" if parts else "(?!)")


def needed_parts(pattern: str, flags: int = 0) -> frozenset[str]:
    """Texts of which every match has at least one; empty where that cannot be told."""
    parsed = parser.parse(pattern, flags)
    return frozenset() if parsed.state.flags & re.IGNORECASE else _needed(parsed)


def _needed(sequence: Any) -> frozenset[str]:
    """Of everything in a row that must match, that which says most."""
    found: list[frozenset[str]] = []
    run = ""
    for code, given in sequence:
        if code is codes.LITERAL:
            run += chr(given)
            continue
        found.append(frozenset({run} - {""}))
        run = ""
        if code is codes.SUBPATTERN and not given[1] & re.IGNORECASE:
            found.append(_needed(given[-1]))
        elif code is codes.BRANCH:
            branches = [_needed(branch) for branch in given[1]]
            found.append(frozenset().union(*branches) if all(branches) else frozenset())
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT} and given[0] >= 1:
            found.append(_needed(given[2]))
    found.append(frozenset({run} - {""}))
    # Long parts are rare ones.
    return max(found, key=lambda parts: (min(map(len, parts), default=0), -len(parts)))
