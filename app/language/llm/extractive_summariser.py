"""The keyless summariser: quotes the sentences on which the others lean, by who said them.

TextRank: sentences are near to each other as far as they share terms, and PageRank says which of
them stand for the rest. Terms are those of searches, so Chinese and English are read alike.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np

from app.language.llm.summariser import Summary, SummaryLine, SummaryRequest
from app.language.llm.tool_call import digest_of, joined, read_digest
from app.language.text.offload import read_text
from app.language.text.pieces import cut_at_sentence, mostly_characters, sentences, word_count
from app.language.text.terms import terms
from app.language.text.traits import is_trivial

MOST: Final = 600
"""How many sentences are compared, 60 ms of work; of more the newest count, one per message
at the least."""

LONGEST: Final = 40
"""Words of one quotation; what is longer is cut."""

READ: Final = 2_000
"""Code points of one message that are read; a person's statement is not longer."""

ALIKE: Final = 0.6
"""From which share of common terms on a sentence says what another said already."""

CALLS_SHARE: Final = 0.4
"""Share of the words that the line about calls of tools may take."""

_ATTENTION: Final = {"user": 3.0, "assistant": 1.0, "system": 1.0, "tool": 0.5}
"""How often PageRank begins anew at a sentence of theirs: what is asked for stays."""

_LABELS: Final = {
    "user": ("User", "用户"),
    "assistant": ("Assistant", "助手"),
    "tool": ("Tool", "工具"),
    "system": ("Event", "事件"),
}
_SPEAKERS: Final = {label: speaker for speaker, both in _LABELS.items() for label in both}
_LABELLED: Final = re.compile(
    rf"(?P<label>(?P<word>{'|'.join(_SPEAKERS)})(?: ?[(（][^()（）]{{1,80}}[)）])?)[:：] ?"
    r"(?P<text>.+)"
)


_Row = np.ndarray[tuple[int], np.dtype[np.float64]]
_Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]

# PageRank: the share of steps along edges, the change that is none, and a bound on rounds that
# cannot be reached, because each brings the ranks 15 % nearer.
_FOLLOWED: Final = 0.85
_CLOSE: Final = 1e-9
_MOST_ROUNDS: Final = 200


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One that may be quoted, and by what it is found alike."""

    text: str
    speaker: str
    label: str
    line: int
    terms: frozenset[str]
    source: int = 0
    """Which of several summaries it is in."""


class ExtractiveSummariser:
    """Quotes. Without a state of its own; nothing leaves the process."""

    @property
    def name(self) -> str:
        return "extractive/1"

    @property
    def model(self) -> None:
        return None

    async def summarise(self, request: SummaryRequest) -> Summary:
        """As the port says, within the words asked for; never fails, costs nothing."""
        characters = sum(len(line.text[:READ]) for line in request.lines)
        characters += sum(map(len, request.earlier))
        return Summary(await read_text(characters, extract, request))


def extract(request: SummaryRequest) -> str:
    """Calls of tools in one line; the quotations, in the order in which they were said, a line for
    each speaker's turn.
    """
    calls, request = _calls(request)
    words = request.words - word_count(calls)
    known = [_terms(sentence) for text in request.earlier for sentence in sentences(text)]
    if request.lines:
        found = _said(request.lines) or _said(request.lines, trivial=True)
    else:
        known, found = [], _quoted(request.earlier)
    found = _newest(found)
    chosen: list[int] = []
    for place in _in_turns(found, _ranked(found)):
        more = sorted([*chosen, place])
        fresh = not _alike(found[place], known + [found[at].terms for at in chosen])
        if fresh and word_count(_written([found[at] for at in more])) <= words:
            chosen = more
    if not chosen and found and not calls:
        chosen = [max(range(len(found)), key=lambda place: len(found[place].terms))]
    text = "\n".join(filter(None, [calls, _written([found[place] for place in chosen])]))
    return cut_at_sentence(text, lambda part: word_count(part) <= request.words)[0]


def _calls(request: SummaryRequest) -> tuple[str, SummaryRequest]:
    """The line about calls of tools, and what else there is to summarise."""
    if request.lines:
        digest = digest_of(request.lines)
        texts = [line.text[:READ] for line in request.lines]
    else:
        texts = list(request.earlier)
        digests = [read_digest(line) for text in texts for line in text.splitlines()]
        digest = joined([digest for digest in digests if digest is not None])
        rest = [
            "\n".join(line for line in text.splitlines() if read_digest(line) is None)
            for text in texts
        ]
        request = replace(request, earlier=rest)
    if digest is None:
        return "", request
    share = max(int(CALLS_SHARE * request.words), 1)
    return digest.written(share, chinese=mostly_characters(" ".join(texts))), request


def _said(lines: Sequence[SummaryLine], *, trivial: bool = False) -> list[_Sentence]:
    chinese = mostly_characters(" ".join(line.text[:READ] for line in lines))
    return [
        sentence
        for place, line in enumerate(lines)
        if (trivial or line.speaker != "user" or not is_trivial(line.text))
        and not (line.calls and not line.text.strip())
        for sentence in _sentences(
            line.text[:READ].strip() or "[]",
            line.speaker,
            _label(line, chinese),
            place,
            trivial=trivial,
        )
    ]


def _quoted(earlier: Sequence[str]) -> list[_Sentence]:
    """Sentences of summaries; those of this summariser say whose they are."""
    found: list[_Sentence] = []
    lines = [
        (source, line)
        for source, text in enumerate(earlier)
        for line in text.splitlines()
        if line.strip()
    ]
    for place, (source, line) in enumerate(lines):
        labelled = _LABELLED.fullmatch(line)
        if labelled is None:
            said = _sentences(line, "user", "", place)
        else:
            speaker = _SPEAKERS[labelled["word"]]
            said = _sentences(labelled["text"], speaker, labelled["label"], place)
        found += [replace(sentence, source=source) for sentence in said]
    return found


def _sentences(
    text: str, speaker: str, label: str, line: int, *, trivial: bool = False
) -> Iterable[_Sentence]:
    for sentence in sentences(text):
        short, _ = cut_at_sentence(sentence, lambda part: word_count(part) <= LONGEST)
        # In one line, so that it reads as one when it is quoted again.
        short = " ".join(short.split())
        if short and (trivial or not is_trivial(short)):
            yield _Sentence(short, speaker, label, line, _terms(short))


def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _label(line: SummaryLine, chinese: bool) -> str:
    word = _LABELS["system" if line.event_type else line.speaker][chinese]
    besides = line.event_type or line.name
    if besides is None:
        return word
    besides = re.sub(r"[()（）:：\s]+", " ", besides).strip()[:80]
    return f"{word}（{besides}）" if chinese else f"{word} ({besides})"


def _newest(found: list[_Sentence]) -> list[_Sentence]:
    """As many as can be compared: the first of each line, then the rest from the end."""
    if len(found) <= MOST:
        return found
    firsts = {next(places) for _, places in groupby(range(len(found)), lambda i: found[i].line)}
    order = sorted(range(len(found)), key=lambda place: (place in firsts, place), reverse=True)
    return [found[place] for place in sorted(order[:MOST])]


def _ranked(found: Sequence[_Sentence]) -> list[int]:
    """Places of the sentences, the weightiest first; of two alike the later one."""
    if len(found) < 2:
        return list(range(len(found)))
    attention = np.array([_ATTENTION[sentence.speaker] for sentence in found], float)
    # Rounded, so that two alike are so whatever the order of additions was.
    ranks = page_ranks(_nearness(found), attention).round(12).tolist()
    return sorted(range(len(found)), key=lambda place: (ranks[place], place), reverse=True)


def page_ranks(weights: _Matrix, attention: _Row) -> _Row:
    """PageRank of the nodes of a weighted graph, with sum 1, by power iteration.

    Args:
        weights: of the edge from each row to each column; 0 is none.
        attention: where whoever jumps goes, in proportion; also from a node without edges.

    """
    jumps = attention / attention.sum()
    leaving = weights.sum(axis=1)
    steps = weights / np.where(leaving > 0, leaving, 1.0)[:, None]
    ranks = np.full(len(jumps), 1 / len(jumps))
    for _ in range(_MOST_ROUNDS):
        before = ranks
        stuck = before[leaving == 0].sum()
        ranks = _FOLLOWED * (before @ steps + stuck * jumps) + (1 - _FOLLOWED) * jumps
        if np.abs(ranks - before).sum() < _CLOSE:
            break
    return ranks


def _in_turns(found: Sequence[_Sentence], ranked: Sequence[int]) -> list[int]:
    """The places, the best of each summary before the second of any, newer summaries first.

    By rank alone the summary with most to say would say all of it, fold after fold, and what came
    later would be lost.
    """
    taken: Counter[int] = Counter()
    rounds = {}
    for place in ranked:
        source = found[place].source
        rounds[place] = taken[source]
        taken[source] += 1
    return sorted(ranked, key=lambda place: (rounds[place], -found[place].source))


def _nearness(found: Sequence[_Sentence]) -> _Matrix:
    """How many terms two sentences share, over how many they could."""
    columns: dict[str, int] = {}
    for sentence in found:
        for term in sentence.terms:
            columns.setdefault(term, len(columns))
    holds = np.zeros((len(found), len(columns) or 1))
    for row, sentence in enumerate(found):
        holds[row, [columns[term] for term in sentence.terms]] = 1.0
    lengths = np.array([math.log1p(len(sentence.terms)) for sentence in found])
    nearness: _Matrix = holds @ holds.T
    nearness /= np.maximum(lengths[:, None] + lengths[None, :], 1e-9)
    np.fill_diagonal(nearness, 0.0)
    return nearness


def _alike(sentence: _Sentence, others: Iterable[frozenset[str]]) -> bool:
    return any(
        len(sentence.terms & other) > ALIKE * min(len(sentence.terms), len(other))
        for other in others
        if other
    )


def _written(chosen: Sequence[_Sentence]) -> str:
    lines = []
    for (_, label), group in groupby(chosen, lambda sentence: (sentence.line, sentence.label)):
        joined = ""
        for sentence in group:
            apart = "" if not joined or mostly_characters(joined) else " "
            joined += apart + sentence.text
        colon = ": " if label.isascii() else "："
        lines.append(f"{label}{colon}{joined}" if label else joined)
    return "\n".join(lines)
