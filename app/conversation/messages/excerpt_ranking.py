"""Which pieces of which messages fit a query best. Pure arithmetic over what two statements read.

First the messages are rated as wholes, then the pieces of the best of them. Words, vectors and
sessions are scaled to 1 for the best before they are weighed. The weights are round; they were
chosen on half of BEAM's development conversations and of LoCoMo's, and tried on the other halves.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.conversation.messages.excerpts import FoundMessage, FoundPiece
from app.language.ranking.boosts import Boosts
from app.language.ranking.features import (
    Features,
    SessionIndex,
    bucket_statistics,
    features_of,
    term_counts,
)
from app.language.ranking.fusion import Fused, fuse, median
from app.language.ranking.packing import Floats, bm25, rarity
from app.language.ranking.query import ParsedQuery, QueryTraits
from app.language.ranking.records import Records
from app.language.text.conversation_questions import states_wish

WHOLE: Final = 0.5
"""Weight of the message as a whole, for its pieces."""
WHOLE_FOUND: Final = 1.5
"""The same where whole messages are searched."""
NEIGHBOUR: Final = 0.2
"""Weight of the best piece of each message next to it, and half of those two away."""
SESSION: Final = 0.2
"""Weight of the three best messages of its session."""
ASKED: Final = 0.3
"""Weight of the user's message before a reply, where a reply is asked for."""
WISH: Final = 0.6
"""Weight of a standing wish of the user, of which at most `MOST_WISHES` have it: it holds for
whatever is asked, and no question names it."""
MOST_WISHES: Final = 5
WISH_FOUND: Final = 0.4
"""The same where whole messages are searched, of the best `WISHES_FOUND` alone: others are looked
for there too. Where a time or all of something is asked for, no wish is an answer."""
WISHES_FOUND: Final = 2
FURTHER: Final = 0.6
"""What each further piece of a message keeps of its score."""
BESIDE: Final = 0.7
"""What the pieces around a message's best one have of its score at least, where one place is asked
for: an answer often goes on there."""
AROUND: Final = 2

LONGEST_SESSION: Final = 2**40
"""More messages than any session has."""


@dataclass(frozen=True, slots=True)
class RatedPieces:
    """Pieces with their scores; all arrays but `order` are by piece."""

    messages: Sequence[FoundMessage]
    owner: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    similarity: Floats
    signals: Mapping[str, Floats]
    scores: Floats
    order: npt.NDArray[np.int64]
    """Places of the pieces, best first."""

    def best_of_each(self, traits: QueryTraits) -> dict[int, FoundPiece]:
        """The best piece of each message, by the place of its row. Its score is the sum of its
        signals, with the whole message by `WHOLE_FOUND` and wishes by `WISH_FOUND`.
        """
        signals = dict(self.signals)
        signals["message"] = signals["message"] * np.float32(WHOLE_FOUND / WHOLE)
        signals["wish"] = self._wishes_found(traits)
        totals = np.sum(list(signals.values()), axis=0)
        order = np.argsort(-totals, kind="stable")
        _, firsts = np.unique(self.owner[order], return_index=True)
        best = order[np.sort(firsts)]
        pieces = self._pieces(best, totals[best].astype(np.float64), signals)
        return {piece.message.place: piece for piece in pieces}

    def _wishes_found(self, traits: QueryTraits) -> Floats:
        """What being a standing wish adds where whole messages are searched."""
        added = np.zeros_like(self.signals["wish"])
        if not (traits.when or traits.conversation.everything):
            wishes = np.flatnonzero(self.signals["wish"])
            ordered = wishes[np.argsort(-self.signals["piece"][wishes], kind="stable")]
            # The best piece of each message: further ones take no place of another message.
            _, firsts = np.unique(self.owner[ordered], return_index=True)
            added[ordered[np.sort(firsts)[:WISHES_FOUND]]] = WISH_FOUND
        return added

    def best(self, most: int) -> list[FoundPiece]:
        """The best pieces, best first."""
        top = float(self.scores.max(initial=0.0)) or 1.0
        chosen = self.order[:most]
        scores = np.maximum(self.scores[chosen].astype(np.float64) / top, 0.0)
        return self._pieces(chosen, scores, self.signals)

    def _pieces(
        self,
        chosen: npt.NDArray[np.int64],
        scores: npt.NDArray[np.float64],
        signals: Mapping[str, Floats],
    ) -> list[FoundPiece]:
        """The pieces at these places, with these scores, and what each signal added."""
        names = tuple(signals)
        by_piece = np.stack([values[chosen] for values in signals.values()], axis=1)
        return [
            FoundPiece(
                self.messages[owner],
                number,
                score,
                cosine if compared else None,
                names,
                added,
            )
            for owner, number, score, cosine, compared, added in zip(
                self.owner[chosen].tolist(),
                self.numbers[chosen].tolist(),
                scores.tolist(),
                np.clip(self.similarity[chosen], 0.0, 1.0).tolist(),
                (~np.isnan(self.similarity[chosen])).tolist(),
                by_piece.tolist(),
                strict=True,
            )
        ]


@dataclass(frozen=True, slots=True)
class RatedMessages:
    """What the ranking of all messages knows, by row, and which of them are compared in pieces.

    Args:
        places: of the rows to compare, best first.
        fused: how well the row fits as a whole, and why.
        near: the same of the rows beside it, and half of those two away.
        role: what having been said by whom the question asks about adds.
        sessions: number of the row's session in order of time, from 1.

    """

    asked: ParsedQuery
    features: Features
    holders: npt.NDArray[np.int64]
    dense_share: float
    places: Sequence[int]
    fused: Fused
    role: Floats
    near: Floats
    sessions: npt.NDArray[np.int64]


def rated_messages(
    ids: Sequence[str],
    records: Records,
    asked: ParsedQuery,
    boosts: Boosts,
    shown: Collection[str],
    most: int,
) -> RatedMessages:
    """Rate every message as a whole, and choose the `most` best that are not in `shown`."""
    features = features_of(ids, records, asked.packed)
    bucket = bucket_statistics(features)
    share = boosts.dense_share(asked.traits.cjk)
    fused = fuse(features, bucket, asked.traits, boosts)
    role = _role(asked, features, records["by_user"], boosts.role)
    order = np.lexsort((features.order, features.session))
    near = np.empty_like(fused.relevance)
    index = SessionIndex.of(features.session[order])
    near[order] = index.gather(fused.relevance[order], 1.0, 0.5)
    first = fused.relevance + 0.5 * role + NEIGHBOUR * near + WISH * records["wish"]
    said = records["said"].astype(np.int64)
    numbers = np.empty(len(ids), np.int64)
    numbers[order] = _numbered(index, said[order])
    return RatedMessages(
        asked,
        features,
        bucket.holders,
        share,
        _best(ids, records, first, shown, most),
        fused,
        role,
        near,
        numbers,
    )


def _best(
    ids: Sequence[str], records: Records, scores: Floats, shown: Collection[str], most: int
) -> list[int]:
    """Places of the `most` best that may be shown and are not in `shown`; of equals the oldest."""
    places = np.flatnonzero(records["eligible"])
    enough = most + len(shown)
    if len(places) > enough:
        # All that could be among the first, equals included; sorting all took longer than rating.
        floor = np.partition(scores[places], -enough)[-enough]
        places = places[scores[places] >= floor]
    created = records["created"][places].astype(np.int64)
    ordered = places[np.lexsort((created, -scores[places]))].tolist()
    return [place for place in ordered if ids[place] not in shown][:most]


def rated_pieces(
    rated: RatedMessages, messages: Sequence[FoundMessage], records: Records
) -> RatedPieces:
    """Rate every piece of the messages.

    Args:
        rated: all messages.
        messages: those of `rated.places` that are still there, in any order.
        records: of the pieces of those that have several, in their order.

    """
    sizes = np.array([len(message.ends) for message in messages])
    owner = np.repeat(np.arange(len(messages)), sizes)
    starts = np.cumsum(sizes) - sizes
    numbers = np.arange(len(owner)) - np.repeat(starts, sizes)
    similarity, counts, lengths = _known(rated, messages, sizes > 1, owner, records)
    weights = _term_weights(rated.holders, len(rated.role), rated.asked)
    words = bm25(counts, lengths, weights, float(lengths.mean()))
    own = _mixed(words, similarity, rated.dense_share)
    tops = np.zeros(len(messages), np.float32)
    np.maximum.at(tops, owner, own)
    rows = np.array([message.place for message in messages])
    conversation = rated.asked.traits.conversation
    beside = _beside(messages, rated.sessions[rows], tops)
    signals = {
        "piece": own,
        "message": np.float32(WHOLE) * rated.fused.relevance[rows][owner],
        "role": rated.role[rows][owner],
        "neighbours": np.float32(NEIGHBOUR) * (beside @ np.array([0.5, 1, 1, 0.5]))[owner],
        "session": np.float32(SESSION) * _session_best(messages, tops)[owner],
        "asked": _asked(messages, beside, reply=conversation.reply)[owner],
        "wish": _wishes(messages, owner, numbers, own),
    }
    total = np.sum(list(signals.values()), axis=0).astype(np.float32)
    damped = _damped(total, owner, numbers, starts, around=not conversation.everything)
    order = np.lexsort((numbers, owner, -damped))
    return RatedPieces(messages, owner, numbers, similarity, signals, damped, order)


def ordered_by_pieces(rated: RatedMessages, best: Mapping[int, FoundPiece]) -> Floats:
    """What whole messages are ordered by, 0 to 1, by row.

    A message whose pieces were not compared has the score that it would have if none fitted.

    Args:
        rated: all messages.
        best: the best piece of each message that was compared, by the place of its row.

    """
    totals = WHOLE_FOUND * rated.fused.relevance + rated.role + NEIGHBOUR * rated.near
    for place, piece in best.items():
        totals[place] = piece.score
    # A reply has what it was asked, and is no wish.
    either = ASKED if rated.asked.traits.conversation.reply else WISH_FOUND
    most = 1 + WHOLE_FOUND + 3 * NEIGHBOUR + SESSION + either + float(rated.role.max(initial=0.0))
    return np.clip(totals / most, 0.0, 1.0).astype(np.float32)


def _known(
    rated: RatedMessages,
    messages: Sequence[FoundMessage],
    several: npt.NDArray[np.bool_],
    owner: npt.NDArray[np.int64],
    records: Records,
) -> tuple[Floats, Floats, Floats]:
    """Cosine, frequencies of the query's terms (terms first), and length of each piece."""
    within = several[owner]
    rows = np.array([message.place for message in messages])[~several]
    features = rated.features
    similarity = np.full(len(owner), np.nan, np.float32)
    similarity[within] = records["similarity"]
    if features.cosine is not None:
        similarity[~within] = features.cosine[rows]
    counts = np.empty((len(owner), features.counts.shape[1]), np.float32)
    counts[within] = term_counts(records, rated.asked.packed)
    counts[~within] = features.counts[rows]
    lengths = np.empty(len(owner), np.float32)
    lengths[within] = records["length"]
    lengths[~within] = features.lengths[rows]
    return similarity, np.ascontiguousarray(counts.T), lengths


def _term_weights(holders: npt.NDArray[np.int64], rows: int, asked: ParsedQuery) -> Floats:
    return (rarity(holders, rows) * np.sqrt(asked.traits.term_counts)).astype(np.float32)


def _mixed(words: Floats, cosine: Floats, share: float) -> Floats:
    """Words and vectors, each 1 for the best, in their shares; 1 for the best by both.

    A vector counts by how far it is above the usual one. Without one the words speak.
    """
    worded = _scaled(words)
    known = np.isfinite(cosine)
    usual = median(cosine[known]) if known.any() else np.float32(0)
    lead = _scaled(np.where(known, np.maximum(np.nan_to_num(cosine) - usual, 0), 0))
    dense = np.where(known, lead, worded)
    return _scaled(worded * np.float32(1 - share) + dense * np.float32(share))


def _role(
    asked: ParsedQuery, features: Features, by_user: npt.NDArray[np.bool_], weight: float
) -> Floats:
    """What having been said by whom the question asks about adds, by row."""
    if features.named.any():
        return features.named * np.float32(weight)
    wanted = asked.traits.conversation
    if wanted.reply:
        return ~by_user * np.float32(weight)
    if wanted.summary:
        return np.zeros(len(by_user), np.float32)
    return by_user * np.float32(weight)


def _beside(
    messages: Sequence[FoundMessage], sessions: npt.NDArray[np.int64], tops: Floats
) -> Floats:
    """The best pieces of the messages two and one before, and one and two after, in that order."""
    places = sessions * LONGEST_SESSION
    places += np.array([message.sequence_no for message in messages])
    order = np.argsort(places)
    known = places[order]
    wanted = places[:, np.newaxis] + np.array([-2, -1, 1, 2])
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    beside: Floats = np.where(known[found] == wanted, tops[order][found], np.float32(0))
    return beside


def _asked(messages: Sequence[FoundMessage], beside: Floats, *, reply: bool) -> Floats:
    """What the user's message before a reply adds to it."""
    replies = np.array([reply and message.role == "assistant" for message in messages])
    return np.where(replies, beside[:, 1], 0).astype(np.float32) * np.float32(ASKED)


def _wishes(
    messages: Sequence[FoundMessage],
    owner: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    own: Floats,
) -> Floats:
    """What being a standing wish adds, to the best of them."""
    wish = np.array([message.wish for message in messages])[owner]
    places = np.flatnonzero(wish)
    ordered = places[np.argsort(-own[places], kind="stable")].tolist()
    wished = (
        place for place in ordered if states_wish(messages[owner[place]].piece(int(numbers[place])))
    )
    added = np.zeros_like(own)
    # No more is read than it takes.
    added[list(islice(wished, MOST_WISHES))] = WISH
    return added


def _session_best(messages: Sequence[FoundMessage], tops: Floats) -> Floats:
    """The mean of the three best of each message's session, 1 for the best session."""
    by_session: dict[str, list[float]] = defaultdict(list)
    for message, top in zip(messages, tops.tolist(), strict=True):
        by_session[message.session_id].append(top)
    three = {key: sorted(found)[-3:] for key, found in by_session.items()}
    means = {key: sum(best) / len(best) for key, best in three.items()}
    return _scaled(np.array([means[message.session_id] for message in messages], np.float32))


def _damped(
    scores: Floats,
    owner: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    *,
    around: bool,
) -> Floats:
    """The scores, each further piece of a message by `FURTHER` of the one before.

    Args:
        starts: place of the first piece of each message; those of a message stand together.
        around: whether the pieces around the best of each message come before its others.

    """
    if len(starts) == len(scores):
        return scores
    order = np.lexsort((-scores, owner))
    further = np.empty(len(order), np.float32)
    further[order] = numbers
    damped = scores * np.float32(FURTHER) ** further
    if not around:
        return damped
    best = order[starts]
    gap = np.abs(numbers - numbers[best][owner])
    near = (gap > 0) & (gap <= AROUND)
    return np.where(near, BESIDE * scores[best][owner], damped).astype(np.float32)


def _numbered(index: SessionIndex, said: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The number of each row's session, from 1, by when its first row was said.

    Args:
        index: of the rows, which are sorted by session.
        said: of the rows in that order.

    """
    begins = np.minimum.reduceat(said, index.starts)
    numbers = np.empty(len(begins), np.int64)
    numbers[np.argsort(begins, kind="stable")] = np.arange(1, len(begins) + 1)
    return numbers[index.number]


def _scaled(scores: npt.NDArray[Any]) -> Floats:
    top = np.float32(scores.max(initial=0.0))
    return (scores / top if top > 0 else np.zeros_like(scores)).astype(np.float32)
