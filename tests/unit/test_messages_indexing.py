"""What searches read of a message, and where a page of a search begins: the pure halves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.messages.capture import Said, client_time
from app.conversation.messages.errors import OtherSearchError
from app.conversation.messages.message_index import (
    INDEXED_LENGTH,
    searchable_text,
    words_of,
)
from app.conversation.messages.message_ranking import (
    KEPT,
    MessageSearchPosition,
    decode,
    encode,
    mark,
    marks,
)
from app.language.text.prompt_text import time_ago
from app.language.text.terms import ANALYSER_VERSION, term_key

NOW = datetime(2024, 5, 8, 12, tzinfo=UTC)
CALLS = [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]


def said(content: str = "I play the piano.", **fields: Any) -> Said:
    message = Said("m1", "user", content, None, None, {}, None, 1, NOW)
    return replace(message, **fields)


class TestText:
    @pytest.mark.parametrize(
        "message",
        [
            said(role="assistant", tool_calls=CALLS),
            said(metadata={"hidden": True}),
            said(metadata={"injected": 1}),
            said(""),
            said("  \n "),
            said("<block>piano</block>"),
        ],
    )
    def test_what_nobody_said_is_never_found(self, message: Said) -> None:
        assert searchable_text(message, ["block"]) is None
        row = words_of(message, None)
        assert (row["terms"], row["analyser"]) == (None, ANALYSER_VERSION)

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (said(role="system"), "I play the piano."),
            # Whoever asks for results of tools finds it.
            (said(role="tool"), "I play the piano."),
            (said(role="assistant", tool_calls=[]), "I play the piano."),
            (said("<block>x</block> Hello."), "Hello."),
            (said("", content_parts=[{"type": "text", "text": "Hi."}]), "Hi."),
            (said("Hi.", content_parts=[{"type": "image_url"}]), "Hi.\n[image]"),
            (
                said("", content_parts=[{"type": "file", "filename": "lease.pdf"}]),
                "[file, lease.pdf]",
            ),
            (said("", content_parts=[{"type": "thinking", "thinking": "Hm."}]), None),
            (said("", content_parts=[{"type": "refusal", "refusal": "No."}]), "No."),
            (said("A data:image/png;base64,iVBO it is"), "A [image, png, 3 bytes] it is"),
            (said(metadata={"hidden": False}), "I play the piano."),
        ],
    )
    def test_what_somebody_said_is_found(self, message: Said, text: str | None) -> None:
        assert searchable_text(message, ["block"]) == text

    @pytest.mark.parametrize("extra", [-1, 0, 1])
    def test_a_message_is_searched_up_to_its_limit(self, extra: int) -> None:
        text = searchable_text(said("a" * (INDEXED_LENGTH + extra)), [])

        assert text is not None
        assert len(text) == INDEXED_LENGTH + min(extra, 0)

    def test_speaker_and_day_stand_among_the_words(self) -> None:
        message = said(name="Caroline", metadata={"speaker": "Mel", "name": 7, "subject": "x"})

        keys = set(words_of(message, "I play.")["terms"].indices())

        assert {term_key("8"), term_key("2024")} <= keys
        plain = set(words_of(said(), "I play.")["terms"].indices())
        assert len(keys - plain) >= 2


class TestClientTime:
    @pytest.mark.parametrize(
        ("told", "moment"),
        [
            ("2024-05-08T10:00:00Z", datetime(2024, 5, 8, 10, tzinfo=UTC)),
            ("2024-05-08T10:00:00+08:00", datetime(2024, 5, 8, 2, tzinfo=UTC)),
            ("2024-05-08T10:00:00", datetime(2024, 5, 8, 10, tzinfo=UTC)),
            (" 2024-05-08 ", datetime(2024, 5, 8, tzinfo=UTC)),
            ("8 May", None),
            ("", None),
            (1715162400, None),
            (None, None),
            ("9999-12-31T23:59:59-12:00", None),
            ("0001-01-01T00:00:00+12:00", None),
        ],
    )
    def test_a_time_is_read_and_nothing_else(self, told: Any, moment: datetime | None) -> None:
        assert client_time({"client_time": told}) == moment
        row = words_of(said(metadata={"client_time": told}), "Hi.")
        assert row["said_at"] == moment

    def test_its_day_is_that_of_the_speaker(self) -> None:
        early = "2024-05-09T02:00:00+08:00"

        words = words_of(said(metadata={"client_time": early}), "Hi.")["terms"].indices()

        assert term_key("9") in words
        assert term_key("8") not in words


@pytest.mark.parametrize(
    ("elapsed", "words"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59, microseconds=999_999), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=24), "1 day ago"),
        (timedelta(days=6, hours=23), "6 days ago"),
        (timedelta(days=7), "1 week ago"),
        (timedelta(days=30), "4 weeks ago"),
        (timedelta(days=31), "1 month ago"),
        (timedelta(days=365), "11 months ago"),
        (timedelta(days=366), "1 year ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(minutes=-5), "in 5 minutes"),
    ],
)
def test_how_long_ago_is_told_in_the_largest_full_unit(elapsed: timedelta, words: str) -> None:
    assert time_ago(elapsed) == words


IDS = st.lists(st.text("abc123_", min_size=1, max_size=8), unique=True, min_size=1, max_size=60)


class TestCursor:
    @given(IDS, st.data())
    def test_whatever_is_deleted_the_next_page_begins_after_what_was_seen(
        self, order: list[str], data: st.DataObject
    ) -> None:
        seen = data.draw(st.integers(1, len(order)))
        reached = MessageSearchPosition(seen, marks(None, order[:seen]), NOW, NOW)
        gone = data.draw(st.sets(st.sampled_from(order), max_size=KEPT - 1))
        left = [one for one in order if one not in gone]

        rest = left[reached.place_in(left) :]

        assert rest == [one for one in order[seen:] if one not in gone]

    def test_when_all_that_it_remembers_is_gone_the_count_tells(self) -> None:
        order = [f"m{number}" for number in range(40)]
        reached = MessageSearchPosition(20, marks(None, order[:20]), NOW, NOW)

        left = [*order[: 20 - KEPT], *order[20:]]

        assert left[reached.place_in(left) :] == order[20:]
        assert reached.place_in([]) == 0

    def test_cursor_remembers_the_last_of_several_pages(self) -> None:
        first = marks(None, ["a", "b"])

        reached = MessageSearchPosition(2, first, NOW, NOW)

        assert marks(reached, ["c"]) == (mark("a"), mark("b"), mark("c"))
        assert marks(reached, [str(number) for number in range(50)]) == tuple(
            mark(str(number)) for number in range(50 - KEPT, 50)
        )

    def test_cursor_comes_back_as_it_was_and_fits_its_field(self) -> None:
        reached = MessageSearchPosition(2**31, tuple(range(2**32 - KEPT, 2**32)), NOW, NOW)

        cursor = encode(reached, "f" * 24)

        assert decode(cursor, "f" * 24) == reached
        assert len(cursor) <= 512
        with pytest.raises(OtherSearchError):
            decode(cursor, "e" * 24)

    @given(st.text(max_size=60))
    def test_any_other_text_is_refused(self, text: str) -> None:
        with pytest.raises(OtherSearchError):
            decode(text, "f" * 24)
