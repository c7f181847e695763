"""From messages to turns: what may become memory, what was only put before the model."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.messages.capture import (
    CLOCKS_APART,
    HIDDEN_FLAGS,
    READ_LENGTH,
    SIGNAL_LENGTH,
    Said,
    client_time_fault,
    readable,
    said_text,
    signals_of,
    turn_complete,
    why_unread,
)

TAGS = ("uploaded_files", "memory")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CALLS = [{"id": "c1", "name": "search"}]
UPLOAD = "<uploaded_files>report.pdf</uploaded_files>"


def said(
    role: str,
    content: object = "",
    *,
    parts: list[Any] | None = None,
    calls: list[Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Said:
    return Said("msg", role, content, parts, calls, metadata or {}, None, 1, NOW)


def user(content: object = "", **more: Any) -> Said:
    return said("user", content, **more)


def reply(content: object = "", **more: Any) -> Said:
    return said("assistant", content, **more)


def texts(*messages: Said) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in readable(messages, TAGS).turns]


def reason_of(messages: list[Said], tags: tuple[str, ...] = TAGS) -> str | None:
    return why_unread(messages, readable(messages, tags))


class TestTurns:
    def test_they_carry_what_the_message_is(self) -> None:
        message = Said("m-7", "user", "I live in Bonn", None, None, {}, "Ana", 7, NOW)

        [turn] = readable([message], TAGS).turns

        assert (turn.message_id, turn.role, turn.text) == ("m-7", "user", "I live in Bonn")
        assert (turn.name, turn.said_at, turn.sequence_no) == ("Ana", NOW, 7)

    @pytest.mark.parametrize(
        ("told", "moment"),
        [
            ("2024-06-05T23:00:00-05:00", datetime.fromisoformat("2024-06-05T23:00:00-05:00")),
            ("1900-01-01T00:00:00Z", datetime(1900, 1, 1, tzinfo=UTC)),
            ("1899-12-31T23:59:59Z", NOW),
            ((NOW + CLOCKS_APART).isoformat(), NOW + CLOCKS_APART),
            ((NOW + CLOCKS_APART + timedelta(seconds=1)).isoformat(), NOW),
            ("9999-12-31T23:59:59-12:00", NOW),
            ("last week", NOW),
        ],
    )
    def test_they_were_said_when_the_client_says_if_that_can_be(
        self, told: str, moment: datetime
    ) -> None:
        [turn] = readable([user("I live in Bonn", metadata={"client_time": told})], TAGS).turns

        assert (turn.said_at, turn.said_at.tzinfo) == (moment, moment.tzinfo)

    def test_both_sides_are_read_in_order(self) -> None:
        assert texts(user("早上好"), reply("Good morning"), user("我住在波恩")) == [
            ("user", "早上好"), ("assistant", "Good morning"), ("user", "我住在波恩"),
        ]  # fmt: skip

    def test_tool_traffic_is_not(self) -> None:
        messages = [
            user("weather?"),
            reply("let me see", calls=CALLS),
            said("tool", "22°C"),
            reply("22"),
        ]

        reading = readable(messages, TAGS)

        assert [turn.text for turn in reading.turns] == ["weather?", "22"]
        assert reading.skipped == {"tool_traffic": 2}
        assert reading.said_back == []

    def test_an_empty_list_of_calls_is_no_call(self) -> None:
        assert texts(reply("done", calls=[])) == [("assistant", "done")]

    def test_a_system_text_is_said_back(self) -> None:
        reading = readable([said("system", "Users prefer tea."), user("hello")], TAGS)

        assert [turn.text for turn in reading.turns] == ["hello"]
        assert reading.said_back == ["Users prefer tea."]
        assert reading.skipped == {"system": 1}

    @pytest.mark.parametrize("flag", HIDDEN_FLAGS)
    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_a_hidden_text_is_said_back(self, flag: str, role: str) -> None:
        reading = readable([said(role, "remember the milk", metadata={flag: True})], TAGS)

        assert reading.turns == []
        assert reading.said_back == ["remember the milk"]
        assert reading.skipped == {"hidden": 1}

    @pytest.mark.parametrize("value", [False, None, 0, ""])
    def test_a_flag_that_says_no_hides_nothing(self, value: object) -> None:
        assert texts(user("I live in Bonn", metadata={"hidden": value, "client": "web"}))

    def test_a_stripped_block_is_said_back_and_the_rest_is_read(self) -> None:
        message = user("<memory>The user lives in Bonn.</memory>\nBook a hotel")

        reading = readable([message, message], TAGS)

        assert [turn.text for turn in reading.turns] == ["Book a hotel"] * 2
        assert reading.said_back == ["The user lives in Bonn."]

    def test_a_blank_one_is_nothing(self) -> None:
        reading = readable([user(" \n"), reply("")], TAGS)

        assert (reading.turns, reading.said_back) == ([], [])
        assert reading.skipped == {"blank": 2}

    @pytest.mark.parametrize("sign", ["x", "说"])
    @pytest.mark.parametrize("made", [user, reply])
    @pytest.mark.parametrize(("length", "left"), [(-1, -1), (0, 0), (1, 0)])
    def test_a_long_one_is_cut(
        self, made: Callable[[str], Said], sign: str, length: int, left: int
    ) -> None:
        longest = READ_LENGTH[made("x").role]
        reading = readable([made(sign * (longest + length))], TAGS)

        assert len(reading.turns[0].text) == longest + left
        assert len(reading.cut) == (length > 0 and made is user)

    def test_what_a_user_says_is_read_up_to_40000_characters(self) -> None:
        assert READ_LENGTH["user"] == 40_000

    @pytest.mark.parametrize(
        ("sentence", "end"),
        [("I like tea. ", "tea."), ("我喜欢喝茶。", "茶。"), ("a line\n", "line")],
    )
    @pytest.mark.parametrize("made", [user, reply])
    def test_a_long_one_ends_with_a_sentence(
        self, made: Callable[[str], Said], sentence: str, end: str
    ) -> None:
        longest = READ_LENGTH[made("x").role]
        [(_, text)] = texts(made(sentence * longest))

        assert text.endswith(end)
        assert longest - 2 * len(sentence) < len(text) <= longest

    def test_a_long_one_without_a_sentence_keeps_its_words(self) -> None:
        [(_, text)] = texts(reply("Sure! " + "and so on " * 200))

        assert text.split()[-1] in {"and", "so", "on"}
        assert len(text) > 990

    def test_turn_is_cut_after_the_blocks_are_out(self) -> None:
        block = f"<memory>{'x' * READ_LENGTH['user']}</memory>"
        reading = readable([user(f"{block}I live in Bonn")], TAGS)

        assert [turn.text for turn in reading.turns] == ["I live in Bonn"]
        assert reading.cut == []

    @pytest.mark.parametrize(("before", "seen"), [(0, True), (SIGNAL_LENGTH, False)])
    def test_signals_are_looked_for_at_its_beginning(self, before: int, seen: bool) -> None:
        text = "x" * before + " I prefer window seats."
        turns = readable([user(text)], TAGS).turns

        assert bool(signals_of(turns, 6)) is seen


class TestUploads:
    def test_one_without_words_takes_its_answer_along(self) -> None:
        reading = readable(
            [user(UPLOAD), reply("I see a report."), user("谢谢"), reply("好")], TAGS
        )

        assert [turn.text for turn in reading.turns] == ["谢谢", "好"]
        assert reading.skipped == {"upload_only": 2}
        assert reading.said_back == ["report.pdf"]

    def test_one_with_words_takes_nothing_along(self) -> None:
        assert texts(user(f"{UPLOAD}Summarise it"), reply("It says…")) == [
            ("user", "Summarise it"), ("assistant", "It says…"),
        ]  # fmt: skip

    def test_the_answer_may_come_after_tools(self) -> None:
        messages = [
            user(UPLOAD),
            reply("reading", calls=CALLS),
            said("tool", "…"),
            reply("It says…"),
        ]

        assert texts(*messages) == []

    def test_only_one_answer_goes(self) -> None:
        assert texts(user(UPLOAD), reply("one"), reply("two")) == [("assistant", "two")]

    def test_an_answer_to_later_words_stays(self) -> None:
        assert texts(user(UPLOAD), user("What is in it?"), reply("Figures.")) == [
            ("user", "What is in it?"), ("assistant", "Figures."),
        ]  # fmt: skip

    def test_a_picture_without_words_is_one(self) -> None:
        picture = [{"type": "image_url", "image_url": {"url": "s3://a.png"}}]

        assert texts(user("", parts=picture), reply("A cat."), user("right")) == [("user", "right")]
        assert reason_of([user("", parts=picture)]) == "upload_only"


class TestContent:
    @pytest.mark.parametrize(
        ("content", "parts", "text"),
        [
            ("Hello", None, "Hello"),
            ("Hello", [], "Hello"),
            (["Hel", "lo"], None, "Hello"),
            (
                [{"type": "text", "text": "你好"}, {"type": "text", "text": "世界"}],
                None,
                "你好\n世界",
            ),
            (["a", "b", {"type": "text", "text": "c"}, "d", "e"], None, "ab\nc\nde"),
            ([{"type": "image", "text": "alt"}, {"type": "text", "text": "c"}], None, "c"),
            ([{"text": "c"}, {"type": "output_text", "text": "d"}], None, "c\nd"),
            ([{"type": "text", "text": 3}, {"type": "text"}, None, 7, ["x"]], None, ""),
            (None, None, ""),
            ({"type": "text", "text": "c"}, None, "c"),
            ("", [{"type": "text", "text": "c"}], "c"),
            ("a", [{"type": "text", "text": "c"}], "a\nc"),
            ("c", [{"type": "text", "text": "c"}], "c"),
            ("c", [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}], "c\nd"),
            ("c\nd", [{"type": "text", "text": "d"}, {"type": "file", "id": "f"}], "c\nd"),
        ],
    )
    def test_every_shape_has_its_text(self, content: Any, parts: Any, text: str) -> None:
        assert said_text(content, parts) == text

    def test_what_was_sent_with_words_is_named_beside_them(self) -> None:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
        parts = [{"type": "text", "text": "My dog."}, picture, {"type": "thinking"}]

        [turn] = readable([user("", parts=parts)], TAGS).turns

        assert (turn.text, turn.parts) == ("My dog.", ("[image, png, 3 bytes]",))

    def test_base64_in_a_text_is_not_read(self) -> None:
        text = f"I live in ![x](data:image/png;base64,{'A' * 90_000}) Bonn."

        reading = readable([user(text)], TAGS)

        assert [turn.text for turn in reading.turns] == [
            "I live in ![x]([image, png, 68 kB]) Bonn."
        ]
        assert reading.cut == []
        assert said_text(text) == text

    def test_blocks_are_taken_out_of_parts_too(self) -> None:
        parts = [{"type": "text", "text": UPLOAD}, {"type": "text", "text": "看看这个"}]

        assert texts(user("", parts=parts)) == [("user", "看看这个")]


class TestClientTime:
    @pytest.mark.parametrize(
        ("told", "used"),
        [
            (None, True),
            ("2024-06-05", True),
            ("1900-01-01T00:00:00Z", True),
            ("1899-12-31T23:59:59Z", False),
            ((NOW + CLOCKS_APART - timedelta(seconds=1)).isoformat(), True),
            ((NOW + CLOCKS_APART).isoformat(), True),
            ((NOW + CLOCKS_APART + timedelta(seconds=1)).isoformat(), False),
            ("last week", False),
            ("上周", False),
            ("", False),
            (1_717_600_000, False),
        ],
    )
    def test_fault_is_told_exactly_where_it_is_not_used(self, told: Any, *, used: bool) -> None:
        message = user("I live in Bonn", metadata={"client_time": told})
        [turn] = readable([message], TAGS).turns

        assert (client_time_fault(message.metadata, NOW) is None) is used
        assert told is None or (turn.said_at != NOW) is used

    def test_nothing_told_is_no_fault(self) -> None:
        assert client_time_fault({}, NOW) is None


class TestWorth:
    @pytest.mark.parametrize(
        ("messages", "reason"),
        [
            ([user("I live in Bonn")], None),
            ([user("我住在波恩")], None),
            ([user("ok"), reply("and?"), user("ok, I moved to Munich")], None),
            ([user("thanks!")], "trivial"),
            ([user("好的，谢谢")], "trivial"),
            ([user("👍"), reply("I moved to Munich")], "trivial"),
            ([user("Exactly!")], None),
            ([user("完全正确！👍")], None),
            ([reply("You live in Bonn?"), user("That's right")], None),
            ([reply("你住在波恩？"), user("对的")], None),
            ([reply("You live in Bonn?"), said("tool", "x"), user("Correct.")], None),
            ([user("Exactly!"), reply("Good.")], None),
            ([reply("You live in Bonn?"), user("ok")], "trivial"),
            ([reply("你住在波恩？"), user("好的")], "trivial"),
            ([reply("You live in Bonn?"), user("ok"), user("exactly")], "trivial"),
            ([reply("Exactly!"), user("thanks")], "trivial"),
            ([user("I live in Bonn", metadata={"hidden": True})], "hidden"),
            ([user("x", metadata={"injected": 1}), reply("done")], "hidden"),
            ([user(UPLOAD)], "upload_only"),
            ([user(UPLOAD), reply("A report.")], "upload_only"),
            ([reply("", calls=CALLS), said("tool", "22°C")], "tool_traffic"),
            ([reply("", calls=CALLS), said("tool", "22°C"), reply("22")], "no_user_message"),
            ([reply("Welcome!")], "no_user_message"),
            ([said("system", "You are kind.")], "no_user_message"),
            ([user(" ")], "no_user_message"),
            ([], "no_user_message"),
        ],
    )
    def test_the_user_must_have_said_something(
        self, messages: list[Said], reason: str | None
    ) -> None:
        assert reason_of(messages) == reason

    def test_a_block_is_not_what_the_user_said(self) -> None:
        assert reason_of([user("<memory>I live in Bonn</memory> ok")]) == "trivial"
        assert reason_of([user("<memory>I live in Bonn</memory> ok")], ()) is None


class TestSignals:
    @staticmethod
    def found(window: int, *messages: Said) -> frozenset[str]:
        return signals_of(readable(messages, TAGS).turns, window)

    @pytest.mark.parametrize(("window", "seen"), [(2, False), (3, True), (4, True)])
    def test_the_window_counts_turns_of_both_sides(self, window: int, seen: bool) -> None:
        messages = [user("不对"), reply("抱歉"), user("it is late")]

        assert ("correction" in self.found(window, *messages)) is seen

    def test_messages_without_a_turn_do_not_count(self) -> None:
        messages = [user("不对"), reply("", calls=CALLS), said("tool", "x"), reply("抱歉")]

        assert self.found(2, *messages) == {"correction"}

    def test_the_assistant_has_none(self) -> None:
        assert self.found(6, reply("That's wrong. 我喜欢茶。"), user("hm")) == frozenset()

    def test_several_turns_are_joined(self) -> None:
        assert self.found(6, user("Perfect!"), reply("…"), user("不对")) == {
            "correction",
            "reinforcement",
        }

    def test_a_window_of_nothing_sees_nothing(self) -> None:
        assert self.found(0, user("不对")) == frozenset()

    def test_an_injected_block_has_none(self) -> None:
        assert self.found(6, user("<memory>That's wrong.</memory> what time is it")) == frozenset()


class TestComplete:
    @pytest.mark.parametrize(
        ("messages", "complete"),
        [
            ([user("hi"), reply("hello")], True),
            ([reply("hello")], True),
            ([user("hi")], False),
            ([user("hi"), reply("", calls=CALLS)], False),
            ([user("hi"), reply("", calls=CALLS), said("tool", "22")], False),
            ([user("hi"), reply("", calls=CALLS), said("tool", "22"), reply("22")], True),
            ([user("hi"), reply("hello"), said("tool", "late")], True),
            ([user("hi"), reply("hello"), said("system", "be kind")], True),
            ([user("hi"), reply("hello"), user("psst", metadata={"hidden": True})], True),
            ([user("hi"), reply("hello"), user("and?")], False),
            ([], False),
        ],
    )
    def test_the_last_word_is_the_assistants(self, messages: list[Said], complete: bool) -> None:
        assert turn_complete(messages) is complete


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
ANY_MESSAGE = st.builds(
    said,
    st.sampled_from(["user", "assistant", "system", "tool", "developer"]),
    ANYTHING | st.sampled_from([UPLOAD, "ok", "我住在波恩", "<memory>"]),
    parts=st.none() | st.lists(ANYTHING, max_size=3),
    calls=st.none() | st.lists(ANYTHING, max_size=2),
    metadata=st.dictionaries(st.sampled_from([*HIDDEN_FLAGS, "x"]), ANYTHING, max_size=2),
)


class TestAnyConversation:
    @given(st.lists(ANY_MESSAGE, max_size=8))
    def test_every_message_is_a_turn_or_skipped(self, messages: list[Said]) -> None:
        reading = readable(messages, TAGS)

        assert len(reading.turns) + sum(reading.skipped.values()) == len(messages)
        assert all(turn.text.strip() for turn in reading.turns)
        assert len(set(reading.said_back)) == len(reading.said_back)

    @given(st.lists(ANY_MESSAGE, max_size=8))
    def test_what_is_worth_reading_has_a_turn_of_the_user(self, messages: list[Said]) -> None:
        if reason_of(messages) is None:
            assert any(turn.role == "user" for turn in readable(messages, TAGS).turns)
