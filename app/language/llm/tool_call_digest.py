"""One line that stands for the calls of tools in a summary: how often which, where, the newest.

Without a model nobody can say in other words what a hundred results came to. Which tools were
called, with what, and the numbers of the messages say where everything is. Digests of several
summaries become one. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.language.llm.summariser import SummaryLine
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.word_limit import word_count

NEWEST: Final = 5
"""How many of the newest calls are shown with their arguments, as far as there is room."""

_OTHERS: Final = "…"
"""The name of all tools for which there is no room."""

_DIGEST = lazy_pattern(
    r"(?:Tool calls|工具调用)(?: ?[(（](?:messages|消息) (?P<first>\d+)–(?P<last>\d+)[)）])?[:：] ?"
    r"(?P<counts>[^;；]*?)(?:(?:; newest: |；最近：).*)?[.。]"
)
_COUNT = lazy_pattern(r"(?P<name>\S+) ×(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class ToolCallDigest:
    """Calls of tools.

    Args:
        first, last: numbers of the messages that they are among; None where that is not known.
        counts: how often each tool was called.
        newest: the newest calls with their arguments, in order.

    """

    first: int | None
    last: int | None
    counts: Mapping[str, int]
    newest: Sequence[str] = ()

    def written(self, words: int, *, chinese: bool) -> str:
        """As a line of at most `words`, or as many as its beginning takes."""
        names = sorted(self.counts, key=lambda name: (name != _OTHERS, self.counts[name]))
        names.reverse()
        shown = _most(len(names), lambda most: self._line(names[:most], (), chinese), words)
        # Those without arguments say no more than their count.
        newest = [call for call in self.newest if "(" in call]
        calls = _most(
            len(newest),
            lambda most: self._line(names[:shown], newest[len(newest) - most :], chinese),
            words,
        )
        return self._line(names[:shown], newest[len(newest) - calls :], chinese)

    def _line(self, names: Sequence[str], newest: Sequence[str], chinese: bool) -> str:
        counts = {name: self.counts[name] for name in names}
        others = sum(self.counts.values()) - sum(counts.values())
        if others:
            counts[_OTHERS] = counts.get(_OTHERS, 0) + others
        comma = "，" if chinese else ", "
        told = comma.join(f"{name} ×{count}" for name, count in counts.items())
        span = "" if self.first is None else f"{self.first}–{self.last}"
        if chinese:
            where = f"（消息 {span}）" if span else ""
            calls = f"；最近：{'，'.join(newest)}" if newest else ""
            return f"工具调用{where}：{told}{calls}。"
        where = f" (messages {span})" if span else ""
        calls = f"; newest: {', '.join(newest)}" if newest else ""
        return f"Tool calls{where}: {told}{calls}."


def _most(count: int, written: Callable[[int], str], words: int) -> int:
    """How many of `count` can be written in so many words."""
    return next((most for most in range(count, 0, -1) if word_count(written(most)) <= words), 0)


def digest_of(lines: Iterable[SummaryLine]) -> ToolCallDigest | None:
    """The calls among the lines; None where there are none."""
    calling = [line for line in lines if line.calls]
    if not calling:
        return None
    calls = [call for line in calling for call in line.calls]
    numbers = [line.number for line in calling if line.number is not None]
    return ToolCallDigest(
        first=min(numbers, default=None),
        last=max(numbers, default=None),
        counts=Counter(_name(call) for call in calls),
        newest=calls[-NEWEST:],
    )


def _name(call: str) -> str:
    """The name of a call, as one word."""
    return "_".join(call.partition("(")[0].split()) or _OTHERS


def read_digest(line: str) -> ToolCallDigest | None:
    """What `written` has written; None for any other line. The newest calls are not read."""
    found = _DIGEST.fullmatch(line.strip())
    if found is None:
        return None
    counts: Counter[str] = Counter()
    for count in _COUNT.finditer(found["counts"].replace("，", ", ")):
        counts[count["name"]] += int(count["count"])
    if not counts:
        return None
    if found["first"] is None:
        return ToolCallDigest(None, None, counts)
    return ToolCallDigest(int(found["first"]), int(found["last"]), counts)


def joined(digests: Sequence[ToolCallDigest]) -> ToolCallDigest | None:
    """All of them as one; None for none."""
    if not digests:
        return None
    counts: Counter[str] = Counter()
    for digest in digests:
        counts.update(digest.counts)
    firsts = [digest.first for digest in digests if digest.first is not None]
    lasts = [digest.last for digest in digests if digest.last is not None]
    return ToolCallDigest(min(firsts, default=None), max(lasts, default=None), counts)
