"""Which pieces fit best: each signal decides where all else is equal, and edges are no harm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from app.conversation.messages.excerpt_ranking import (
    AROUND,
    ASKED,
    BESIDE,
    FURTHER,
    MOST_WISHES,
    NEIGHBOUR,
    SESSION,
    WHOLE,
    WHOLE_FOUND,
    WISH,
    WISH_FOUND,
    WISHES_FOUND,
    RatedMessages,
    RatedPieces,
    ordered_by_pieces,
    rated_messages,
    rated_pieces,
)
from app.conversation.messages.excerpts import FoundMessage
from app.language.ranking.boosts import BOOSTS, Boosts
from app.language.ranking.packing import any_of, packed_query
from app.language.ranking.query import ParsedQuery, QueryTraits
from app.language.ranking.records import Records
from app.language.text.conversation_questions import ONE_PLACE, ConversationQuestion

ROW = [
    ("similarity", ">f4"), ("ranked_similarity", ">f4"), ("product_0", ">f4"), ("named", ">f4"),
    ("length", ">i2"), ("words", ">i2"), ("question", "?"), ("timed", "?"), ("session", ">i8"),
    ("said", ">i8"), ("created", ">i8"), ("by_user", "?"), ("wish", "?"), ("eligible", "?"),
]  # fmt: skip
PIECE = [("similarity", ">f4"), ("product_0", ">f4"), ("length", ">i2")]
VECTORS = replace(Boosts(**dict.fromkeys(BOOSTS, 0.0)), dense_latin=1.0)
"""Vectors alone, so that a score is a cosine."""
ALL = ConversationQuestion(everything=True)
REPLY = ConversationQuestion(reply=True)
SUMMARY = ConversationQuestion(summary=True)
NAN = math.nan


@dataclass(frozen=True)
class Said:
    """A message: cosine, count of the word, and the same of its pieces where it has several."""

    cosine: float = 0.0
    session: str = "a"
    number: int = 1
    pieces: Sequence[float] = ()
    counts: Sequence[int] = ()
    count: int = 0
    length: int = 5
    texts: Sequence[str] = ()
    role: str = "user"
    named: bool = False
    wish: bool = False
    eligible: bool = True
    said: int = 0

    def found(self, place: int) -> FoundMessage:
        texts = self.texts or ["tea."] * max(len(self.pieces), 1)
        return FoundMessage(
            place, f"m{place}", self.session, self.role, None, self.number, 99,
            datetime(2024, 5, 3, tzinfo=UTC), "".join(texts).__str__,
            list(accumulate(map(len, texts))), None, self.wish,
        )  # fmt: skip


BACKGROUND = tuple(Said(session=f"background {number}") for number in range(9))
"""Most of all rows and pieces, so that the usual cosine is 0."""


def rows(said: Sequence[Said]) -> Records:
    numbers = {name: place + 1 for place, name in enumerate(dict.fromkeys(s.session for s in said))}
    records = [
        (
            s.cosine, s.cosine, s.count, s.named, s.length, 9, False, False,
            numbers[s.session], s.said, s.number, s.role == "user", s.wish, s.eligible,
        )
        for s in said
    ]  # fmt: skip
    return np.array(records, ROW)


def rate(
    *said: Said,
    conversation: ConversationQuestion = ONE_PLACE,
    terms: Sequence[str] = (),
    boosts: Boosts = VECTORS,
    shown: Sequence[str] = (),
    most: int = 99,
) -> RatedMessages:
    traits = QueryTraits(np.ones(len(terms), np.float32), conversation=conversation)
    asked = ParsedQuery(packed_query(terms), any_of(()), traits, ("",))
    ids = [f"m{place}" for place in range(len(said))]
    return rated_messages(ids, rows(said), asked, boosts, shown, most)


def compare(rated: RatedMessages, *said: Said, places: Sequence[int] = ()) -> RatedPieces:
    """The pieces of the messages in these places, or of all."""
    places = places or range(len(said))
    chosen = [said[place] for place in places]
    records = [
        (cosine, count, s.length)
        for s in chosen
        for cosine, count in zip(s.pieces, s.counts or [0] * len(s.pieces), strict=True)
    ]
    messages = [s.found(place) for s, place in zip(chosen, places, strict=True)]
    return rated_pieces(rated, messages, np.array(records, PIECE))


def pieces_of(*said: Said, **asked: Any) -> RatedPieces:
    said += BACKGROUND
    return compare(rate(*said, **asked), *said)


def best(pieces: RatedPieces, most: int) -> list[tuple[int, int]]:
    return [(piece.message.place, piece.number) for piece in pieces.best(most)]


def signal(pieces: RatedPieces, name: str) -> list[float]:
    return pieces.signals[name][: -len(BACKGROUND)].tolist()


def near(*values: float) -> Any:
    return pytest.approx(values, abs=1e-5)


class TestPieces:
    def test_the_best_piece_is_worth_one(self) -> None:
        pieces = pieces_of(Said(0.0, pieces=(0.2, 0.4)), Said(0.0, "b", pieces=(0.8, -0.5)))

        assert signal(pieces, "piece") == near(0.25, 0.5, 1, 0)
        found = {(p.message.place, p.number): p for p in pieces.best(99)}
        assert found[1, 0].similarity == pytest.approx(0.8)
        assert found[1, 1].similarity == 0
        assert [p.score for p in pieces.best(1)] == [1]

    def test_of_equal_pieces_the_message_that_fits_as_a_whole_is_first(self) -> None:
        said = Said(0.5, pieces=(0.5, 0.5)), Said(1.0, "b", pieces=(0.5, 0.5))
        pieces = pieces_of(*said)

        assert best(pieces, 1) == [(1, 0)]
        assert signal(pieces, "message") == near(*[WHOLE / 2] * 2, *[WHOLE] * 2)

    def test_a_piece_beside_a_good_one_is_before_one_that_is_two_away_or_alone(self) -> None:
        said = Said(0.5), Said(0.5, number=10), Said(1.0, number=12), Said(0.5, number=13)
        pieces = pieces_of(*said, Said(0.5, "b", 11))

        assert best(pieces, 4) == [(2, 0), (3, 0), (1, 0), (0, 0)]
        added = near(0, NEIGHBOUR / 2, NEIGHBOUR * 0.75, NEIGHBOUR, 0)
        assert signal(pieces, "neighbours") == added

    def test_a_piece_of_the_better_session_is_first(self) -> None:
        session = Said(1.0, "b", 10), Said(0.5, "b", 20), Said(0.0, "b", 30)
        pieces = pieces_of(Said(0.5), Said(0.5, "b", 1), *session)

        assert best(pieces, 3) == [(2, 0), (1, 0), (3, 0)]
        # Of its three best messages: the fourth takes nothing away.
        assert signal(pieces, "session") == near(SESSION * 0.75, *[SESSION] * 4)

    def test_a_reply_to_a_message_that_fits_is_before_one_that_precedes_it(self) -> None:
        reply = replace(Said(0.5), role="assistant")
        said = reply, Said(1.0, number=2), replace(reply, number=3)

        assert signal(pieces_of(*said), "asked") == [0, 0, 0]
        assert best(pieces_of(*said), 3) == [(1, 0), (0, 0), (2, 0)]
        assert signal(pieces_of(*said, conversation=REPLY), "asked") == near(0, 0, ASKED)
        assert best(pieces_of(*said, conversation=REPLY), 3) == [(1, 0), (2, 0), (0, 0)]

    def test_a_standing_wish_is_first_where_it_is_stated(self) -> None:
        texts = "I walk a lot. ", "Please always use metric units."
        wish = Said(0.5, "b", pieces=(0.5, 0.5), texts=texts, wish=True)
        pieces = pieces_of(Said(0.5), wish, Said(0.5, "c", texts=texts[1:]))

        assert best(pieces, 1) == [(1, 1)]
        assert signal(pieces, "wish") == near(0, 0, WISH, 0)

    def test_the_best_wishes_alone_are_preferred(self) -> None:
        wish = Said(0.1, texts=("Always be brief.",), wish=True)
        better = [replace(wish, session=f"{n}", cosine=0.2 + n / 10) for n in range(MOST_WISHES)]

        assert signal(pieces_of(wish, *better), "wish") == near(0, *[WISH] * MOST_WISHES)

    def test_each_further_piece_of_a_message_keeps_a_part_of_its_score(self) -> None:
        others = Said(session="b", pieces=(0.75, 0)), Said(session="c", pieces=(0.2, 0))
        pieces = pieces_of(Said(pieces=(0.9, 1.0, 0.9)), *others, conversation=ALL)

        assert best(pieces, 5) == [(0, 1), (1, 0), (0, 0), (0, 2), (2, 0)]
        full = sum(pieces.signals.values())[:4]
        assert (pieces.scores[:4] / full).tolist() == near(FURTHER, 1, FURTHER**2, 1)

    def test_where_one_place_is_asked_for_what_is_around_the_best_piece_comes_along(self) -> None:
        said = Said(pieces=[0, 0, 0, 0, 1, 0, 0, 0, 0]), Said(session="b", pieces=(0.5, 0))
        pieces = pieces_of(*said)

        around = [number for number in range(4 - AROUND, 5 + AROUND) if number != 4]
        together = [(0, 4), *((0, number) for number in around)]
        assert around
        assert best(pieces, len(together) + 1) == [*together, (1, 0)]
        assert [p.score for p in pieces.best(len(together))] == near(1, *[BESIDE] * len(around))
        assert best(pieces_of(*said, conversation=ALL), 2) == [(0, 4), (1, 0)]


class TestMessages:
    def test_a_row_beside_a_good_one_is_compared_first(self) -> None:
        said = Said(0.5), Said(1.0, "b"), Said(0.5, "b", 2), Said(0.0, "b", 3), *BACKGROUND

        assert rate(*said, most=2).places == [1, 2]
        assert rate(*said).near[:4].tolist() == near(0, 0.5, 1, 1)

    def test_a_wish_is_compared_before_what_fits_little(self) -> None:
        said = Said(WISH - 0.1), Said(0.0, "b", wish=True), Said(1.0, "c"), *BACKGROUND

        assert rate(*said, most=2).places == [2, 1]

    @pytest.mark.parametrize(
        ("conversation", "named", "added"),
        [
            (ONE_PLACE, False, (0.6, 0)),
            (REPLY, False, (0, 0.6)),
            (SUMMARY, False, (0, 0)),
            (SUMMARY, True, (0, 0.6)),
        ],
    )
    def test_who_is_asked_about_is_compared_first(
        self, conversation: ConversationQuestion, named: bool, added: tuple[float, float]
    ) -> None:
        said = Said(0.5), Said(0.5, "b", role="assistant", named=named)
        ask: dict[str, Any] = {"conversation": conversation, "boosts": replace(VECTORS, role=0.6)}
        rated = rate(*said, **ask)

        assert rated.role.tolist() == near(*added)
        assert rated.places == ([1, 0] if added[1] else [0, 1])
        assert signal(pieces_of(*said, **ask), "role") == near(*added)

    def test_what_is_shown_or_may_not_be_found_is_left_out(self) -> None:
        said = Said(1.0), Said(0.9, "b", eligible=False), Said(0.5, "c"), Said(0.4, "d")

        assert rate(*said, shown=["m0"]).places == [2, 3]
        assert rate(*said, shown=["m0", "m2", "m3"]).places == []

    @pytest.mark.parametrize("hidden", [0, 4, 5, 6, 20, 60])
    def test_what_is_shown_makes_room_for_the_next_best(self, hidden: int) -> None:
        said = [Said(number / 60, f"{number}") for number in range(60)]
        best_first = [*range(59, -1, -1)]

        rated = rate(*said, shown=[f"m{place}" for place in best_first[:hidden]], most=5)

        assert rated.places == best_first[hidden : hidden + 5]

    def test_sessions_are_numbered_by_when_they_began(self) -> None:
        said = Said(said=30), Said(session="b", said=10), Said(said=5), Said(session="c", said=2)

        assert rate(*said).sessions.tolist() == [2, 3, 2, 1]

    def test_equal_rows_are_compared_in_the_order_that_they_were_stored_in(self) -> None:
        assert rate(Said(0.5, number=9), Said(0.5, "b", 5), Said(0.5, "c", 7)).places == [1, 2, 0]

    def test_rows_that_are_equal_in_all_stay_in_their_order(self) -> None:
        said = [Said(number % 2, f"{number}") for number in range(60)]
        order = [*range(1, 60, 2), *range(0, 60, 2)]

        assert rate(*said, most=50).places == order[:50]
        assert best(compare(rate(*said), *said), 60) == [(place, 0) for place in order]


class TestWholeMessages:
    def test_the_whole_counts_for_more_where_messages_are_searched(self) -> None:
        said = Said(0.5, pieces=(1.0, 0.0)), Said(1.0, "b", pieces=(0.0, 0.6)), *BACKGROUND
        pieces = compare(rated := rate(*said), *said)
        found = pieces.best_of_each(rated.asked.traits)

        assert best(pieces, 1) == [(0, 0)]
        assert [found[place].number for place in (0, 1)] == [0, 1]
        expected = 1 + WHOLE_FOUND * 0.5 + SESSION, 0.6 + WHOLE_FOUND + SESSION * 0.6
        assert [found[place].score for place in (0, 1)] == near(*expected)
        assert [sum(found[place].added) for place in (0, 1)] == near(*expected)
        assert ordered_by_pieces(rated, found)[:2].argmax() == 1

    def test_messages_that_were_not_compared_are_ordered_by_the_whole(self) -> None:
        said = Said(0.5), Said(1.0, "b"), Said(0.5, "b", 2), Said(0.5, "c", role="assistant")
        rated = rate(*said, *BACKGROUND, boosts=replace(VECTORS, role=0.6))
        order = ordered_by_pieces(rated, {})[:4]

        worth = np.array([0.5, 1, 0.5, 0.5]) * WHOLE_FOUND + np.array([0, 0.5, 1, 0]) * NEIGHBOUR
        worth += [0.6, 0.6, 0.6, 0]
        most = 1 + WHOLE_FOUND + 3 * NEIGHBOUR + SESSION + WISH_FOUND + 0.6
        assert order.tolist() == near(*(worth / most))
        assert order.argsort().tolist() == [3, 0, 2, 1]

    def test_a_message_that_is_best_by_every_signal_has_one(self) -> None:
        said = *(Said(1.0, number=n, role="assistant") for n in range(5)), *BACKGROUND
        rated = rate(*said, conversation=REPLY, boosts=replace(VECTORS, role=0.6))
        order = ordered_by_pieces(rated, compare(rated, *said).best_of_each(rated.asked.traits))

        assert order[2] == pytest.approx(1)
        assert sorted(order.tolist())[-2] < 1

    @pytest.mark.parametrize(
        ("asked", "preferred"),
        [({}, True), ({"when": True}, False), ({"conversation": ALL}, False)],
    )
    def test_the_nearest_wishes_are_preferred_where_one_may_be_an_answer(
        self, asked: dict[str, Any], preferred: bool
    ) -> None:
        wish = Said(0.1, texts=("Always be brief.",), wish=True)
        better = [replace(wish, session=f"{n}", cosine=0.2 + n / 10) for n in range(WISHES_FOUND)]
        pieces = pieces_of(wish, *better, Said(0.3, "z"))
        found = pieces.best_of_each(QueryTraits(np.ones(1, np.float32), **asked))

        added = [found[place].signals["wish"] for place in range(WISHES_FOUND + 2)]
        assert added == near(0, *[WISH_FOUND * preferred] * WISHES_FOUND, 0)
        # Contexts have room for more of them.
        assert signal(pieces, "wish") == near(*[WISH] * (WISHES_FOUND + 1), 0)

    def test_message_with_several_wishes_takes_the_place_of_one(self) -> None:
        wish = Said(0.1, texts=("Always be brief.",), wish=True)
        pieces = [0.9] * WISHES_FOUND
        several = replace(wish, session="b", pieces=pieces, texts=wish.texts * WISHES_FOUND)
        better = [replace(wish, session=f"{n}", cosine=0.4 + n / 10) for n in range(WISHES_FOUND)]
        found = pieces_of(wish, several, *better, Said(0.3, "z")).best_of_each(
            QueryTraits(np.ones(1, np.float32))
        )

        added = [found[place].signals["wish"] for place in range(WISHES_FOUND + 2)]
        assert added == near(0, WISH_FOUND, 0, *[WISH_FOUND] * (WISHES_FOUND - 1))

    def test_messages_are_matched_by_place_in_whatever_order_they_come(self) -> None:
        said = Said(0.3), Said(0.2, "b", pieces=(0.1, 0.9)), Said(0.4, "c"), *BACKGROUND
        rated = rate(*said)
        traits = rated.asked.traits
        one = compare(rated, *said).best_of_each(traits)
        other = compare(rated, *said, places=range(len(said))[::-1]).best_of_each(traits)

        assert [one[place].number for place in range(3)] == [0, 1, 0]
        assert ordered_by_pieces(rated, one).tolist() == near(*ordered_by_pieces(rated, other))


class TestEdges:
    def test_where_nothing_has_a_vector_words_decide(self) -> None:
        said = Said(NAN, pieces=(NAN, NAN), counts=(0, 1), count=1), Said(NAN, "b", count=2)
        rated = rate(*said, Said(NAN, "c"), terms=["tea"])
        found = compare(rated, *said).best(3)

        assert [(p.message.place, p.number) for p in found] == [(1, 0), (0, 1), (0, 0)]
        assert all(p.similarity is None and math.isfinite(p.score) for p in found)

    def test_a_piece_without_a_vector_is_heard_by_its_words(self) -> None:
        said = Said(NAN, count=1), Said(0.9, "b"), Said(0.5, "c"), Said(0.4, "d")

        # A vector counts by how far it is above the usual one.
        assert compare(rate(*said, terms=["tea"]), *said).signals["piece"].tolist() == [1, 1, 0, 0]

    @pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
    def test_words_and_vectors_have_their_shares(self, share: float) -> None:
        said, boosts = (Said(1.0), Said(session="b", count=1)), replace(VECTORS, dense_latin=share)
        worth = np.array([share, 1 - share]) / max(share, 1 - share)

        assert signal(pieces_of(*said, terms=["tea"], boosts=boosts), "piece") == near(*worth)

    def test_texts_of_no_length_are_no_harm(self) -> None:
        said = Said(NAN, length=0, pieces=(NAN, NAN)), Said(NAN, "b", length=0)
        pieces = compare(rate(*said, terms=["tea"]), *said)

        assert [piece.score for piece in pieces.best(3)] == [0, 0, 0]
        assert best(pieces, 3) == [(0, 0), (0, 1), (1, 0)]

    @pytest.mark.parametrize("cosine", [NAN, -1.0, 0.0, 1.0])
    @pytest.mark.parametrize("terms", [(), ("tea",)])
    def test_one_row_is_found(self, cosine: float, terms: Sequence[str]) -> None:
        pieces = compare(rated := rate(Said(cosine), terms=terms), Said(cosine))

        assert (rated.places, rated.sessions.tolist()) == ([0], [1])
        assert best(pieces, 5) == [(0, 0)]
        assert pieces.best(0) == []
        assert 0 <= pieces.best(1)[0].score <= 1
        assert 0 <= ordered_by_pieces(rated, pieces.best_of_each(rated.asked.traits))[0] <= 1
