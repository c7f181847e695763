"""The order of a search by words, vectors and context, and every part of it. Pure."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from app.conversation.messages.errors import OtherSearchError
from app.conversation.messages.excerpt_ranking import (
    RatedMessages,
    RatedPieces,
    ordered_by_pieces,
)
from app.conversation.messages.excerpts import FoundPiece
from app.language.llm.tokens import TokenCounter, fitting
from app.language.ranking.boosts import Boosts
from app.language.ranking.features import Features, bucket_statistics, coverage, features_of
from app.language.ranking.fusion import Fused, best_rows, fuse
from app.language.ranking.packing import Floats
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import EPOCH_2000, Records
from app.platform.values.fields import in_utc

KEPT: Final = 16
"""How many of the last hits a cursor remembers, so that it holds when some are deleted."""

LARGEST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class MessageSearchPosition:
    """How far a reader has come.

    Args:
        count: hits seen.
        last: marks of the last of them, in their order.
        newest: when the newest row that the search looked at was stored.
        reference: when the query was asked.

    """

    count: int
    last: tuple[int, ...]
    newest: datetime
    reference: datetime

    def wanted(self, limit: int) -> int:
        """How many hits are looked at for a page and one more: any of the last that were seen may
        be behind the others by now.
        """
        return self.count + len(self.last) + limit + 1

    def place_in(self, order: Sequence[str]) -> int:
        """Where the next page begins: after the last hit seen that is still there.

        Args:
            order: ids of all hits, best first.

        """
        places = {mark(message_id): place for place, message_id in enumerate(order)}
        for reached in reversed(self.last):
            if reached in places:
                return places[reached] + 1
        return min(max(self.count - len(self.last), 0), len(order))

    def unseen(self, order: Sequence[str]) -> list[int]:
        """The places of the hits that follow, of the first of an order.

        What was written or deleted since may have changed the order: nothing is passed over for
        it, and none of the last hits is shown again.
        """
        start = min(self.place_in(order), self.count)
        seen = set(self.last)
        return [n for n in range(start, len(order)) if mark(order[n]) not in seen]


def newest_of(records: Records) -> datetime:
    """When the newest of some rows was stored."""
    microseconds = int(records["created"].max(initial=0))
    return datetime.fromtimestamp(EPOCH_2000, UTC) + timedelta(microseconds=microseconds)


def mark(message_id: str) -> int:
    """A number that few ids share."""
    return crc32(message_id.encode())


def marks(before: MessageSearchPosition | None, message_ids: Sequence[str]) -> tuple[int, ...]:
    """What `MessageSearchPosition.last` is when these have been shown too."""
    return (*(before.last if before else ()), *map(mark, message_ids))[-KEPT:]


def fingerprint(search: Mapping[str, Any]) -> str:
    """What two searches share exactly when a cursor of one is good for the other.

    Args:
        search: everything that decides about hits and their order, as JSON has it.

    """
    text = json.dumps(search, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=12).hexdigest()


def encode(reached: MessageSearchPosition, search: str) -> str:
    """The cursor, for a search with this fingerprint."""
    times = (reached.newest.isoformat(), reached.reference.isoformat())
    raw = json.dumps([search, reached.count, reached.last, *times], separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode(cursor: str, search: str) -> MessageSearchPosition:
    """What a cursor says.

    Raises:
        OtherSearchError: it is none, or one of another search.

    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        theirs, count, last, *times = parts
        newest, reference = (in_utc(datetime.fromisoformat(time)) for time in times)
        reached = MessageSearchPosition(count, tuple(last), newest, reference)
    except (ValueError, TypeError, RecursionError):
        raise OtherSearchError from None
    numbers = (reached.count, *reached.last)
    # A forged cursor gives no access, and must not break anything.
    sound = len(numbers) <= KEPT + 1 and all(
        type(number) is int and 0 <= number <= LARGEST for number in numbers
    )
    if theirs != search or not sound:
        raise OtherSearchError
    return reached


@dataclass(frozen=True, slots=True)
class MessageRankingRules:
    """What may be among the hits, and which of them are asked for.

    Args:
        mode: `hybrid`, `semantic`: vectors alone, or `lexical`: words alone, and nothing
            without one of them.
        threshold: of similarity, in lexical mode of the lexical score; inclusive.
        reached: how far the reader has come.

    """

    mode: str
    threshold: float | None
    limit: int
    reached: MessageSearchPosition | None = None


@dataclass(frozen=True, slots=True)
class RankedMessage:
    """One message with all that its place comes from.

    Args:
        similarity: cosine of query and message, 0 to 1; None where nothing was compared.
        lexical: how well its words fit, 0 to 1; None where words were not compared.
        relevance: what it is ordered by, 0 to 1.
        boosts: what each part of the context added before the sum was scaled, by name.
        piece: its best piece, where its pieces were compared.
        by_pieces: whether they decided about its place.

    """

    message_id: str
    relevance: float
    similarity: float | None
    lexical: float | None
    boosts: Mapping[str, float]
    piece: FoundPiece | None = None
    by_pieces: bool = False


@dataclass(frozen=True, slots=True)
class RankedPage:
    """Some messages, best first.

    Args:
        count: how many hits end with these.
        more: whether others follow.

    """

    hits: Sequence[RankedMessage]
    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class HybridRanking:
    """Every row by words, vectors and context.

    Args:
        order: what the rows are ordered by, 0 to 1.
        role: what having been said by whom the query asks about added, where that counts.
        pieces: the best piece of a row, where its pieces were compared.

    """

    features: Features
    fused: Fused
    order: Floats
    role: Floats | None = None
    pieces: Mapping[int, FoundPiece] = field(default_factory=dict)

    @classmethod
    def of(
        cls, ids: Sequence[str], records: Records, asked: ParsedQuery, boosts: Boosts
    ) -> "HybridRanking":
        """Of rows that are not cut into pieces."""
        features = features_of(ids, records, asked.packed)
        fused = fuse(features, bucket_statistics(features), asked.traits, boosts)
        return cls(features, fused, fused.relevance)

    @classmethod
    def by_pieces(cls, rated: RatedMessages, pieces: RatedPieces | None) -> "HybridRanking":
        """Of messages, by the best piece of each and by who said it."""
        best = {} if pieces is None else pieces.best_of_each(rated.asked.traits)
        if rated.features.named.any():
            # Who is named has said it, or it is about them: that decides between the speakers.
            return cls(rated.features, rated.fused, rated.fused.relevance, None, best)
        order = ordered_by_pieces(rated, best)
        return cls(rated.features, rated.fused, order, rated.role, best)

    def boosts(self, place: int) -> Mapping[str, float]:
        """What each signal of the context added to one row, by name."""
        added = self.fused.boosts(place)
        return added if self.role is None else added | {"role": float(self.role[place])}


@dataclass(frozen=True, slots=True)
class _Scores:
    """By row; `kept` is what may be a hit."""

    order: npt.NDArray[np.float32]
    kept: npt.NDArray[np.bool_]
    similarity: npt.NDArray[np.float32]
    lexical: npt.NDArray[np.float32] | None
    boosts: Callable[[int], Mapping[str, float]]
    pieces: Mapping[int, FoundPiece] = field(default_factory=dict)
    by_pieces: bool = False


def ranked(
    ids: Sequence[str],
    records: Records,
    asked: ParsedQuery,
    cut: MessageRankingRules,
    hybrid: HybridRanking | None = None,
) -> RankedPage:
    """One page of the best messages, best first; ties go to the nearest, to the newest, by id.

    Args:
        ids: of every message, and `records` what is known of each, in one order.
        asked: the query.
        cut: what may be among the hits.
        hybrid: every message by all signals, in hybrid mode.

    """
    if not ids:
        return RankedPage((), 0, more=False)
    scores = _scores(ids, records, asked, cut.mode, hybrid)
    kept = records["eligible"] & scores.kept
    if cut.threshold is not None:
        raw = scores.order if cut.mode == "lexical" else np.nan_to_num(scores.similarity)
        # In double precision, as the threshold is.
        kept &= raw.astype(np.float64) >= cut.threshold
    wanted = cut.reached.wanted(cut.limit) if cut.reached else cut.limit + 1
    order = (scores.order, np.nan_to_num(scores.similarity), records["created"])
    places = best_rows(order, ids, kept, wanted)
    before = 0
    if cut.reached is not None:
        best = [ids[place] for place in places]
        before = min(cut.reached.place_in(best), cut.reached.count)
        places = [places[number] for number in cut.reached.unseen(best)]
    shown = places[: cut.limit]
    return RankedPage(
        [_ranked(place, ids, scores) for place in shown],
        before + len(shown),
        more=len(places) > len(shown),
    )


def _scores(
    ids: Sequence[str],
    records: Records,
    asked: ParsedQuery,
    mode: str,
    hybrid: HybridRanking | None,
) -> _Scores:
    similarity = np.clip(records["similarity"].astype(np.float32), 0.0, 1.0)
    if mode == "semantic":
        known = np.isfinite(similarity)
        return _Scores(np.nan_to_num(similarity), known, similarity, None, _no_boosts)
    features = features_of(ids, records, asked.packed) if hybrid is None else hybrid.features
    lexical = coverage(features, bucket_statistics(features), asked.traits)
    if hybrid is None:
        return _Scores(lexical, lexical > 0, similarity, lexical, _no_boosts)
    # Of what is left out nothing is known: no word, no vector, no context.
    known = (hybrid.fused.relevance > 0) | np.isfinite(similarity)
    return _Scores(
        hybrid.order,
        known,
        similarity,
        lexical,
        hybrid.boosts,
        hybrid.pieces,
        by_pieces=hybrid.role is not None,
    )


def _no_boosts(_place: int) -> Mapping[str, float]:
    return {}


def _ranked(place: int, ids: Sequence[str], scores: _Scores) -> RankedMessage:
    similarity: Any = scores.similarity[place]
    return RankedMessage(
        ids[place],
        float(scores.order[place]),
        float(similarity) if np.isfinite(similarity) else None,
        None if scores.lexical is None else float(scores.lexical[place]),
        scores.boosts(place),
        scores.pieces.get(place),
        scores.by_pieces,
    )


def next_page(
    page: RankedPage,
    shown: Sequence[RankedMessage],
    reached: MessageSearchPosition | None,
    times: tuple[datetime, datetime],
    search: str,
) -> str | None:
    """The cursor behind the first hits of a page that are shown; None behind the last of all.

    Args:
        page: the hits that might be shown.
        shown: the first of them.
        reached: how far the reader had come before.
        times: when the newest that was looked at was stored, and when the query was asked.
        search: the fingerprint.

    """
    if not page.more and len(shown) == len(page.hits):
        return None
    count = page.count - len(page.hits) + len(shown)
    last = marks(reached, [hit.message_id for hit in shown])
    return encode(MessageSearchPosition(count, last, *times), search)


def fitting_hits(
    hits: Sequence[RankedMessage],
    rows: Mapping[str, Mapping[str, Any]],
    counter: TokenCounter,
    max_tokens: int | None,
) -> Sequence[RankedMessage]:
    """The first hits whose contents take at most `max_tokens` together.

    Args:
        rows: of the hits that are still there, by id.

    """
    there = [place for place, hit in enumerate(hits) if hit.message_id in rows]
    texts = (rows[hits[place].message_id]["content"] for place in there)
    fits = fitting(counter, texts, max_tokens)
    return hits if fits == len(there) else hits[: there[fits]]
