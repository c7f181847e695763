"""The keyless summariser: what it quotes, in which order, how long, in which script."""

import asyncio
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.extractive_summariser import MOST, ExtractiveSummariser, extract, page_ranks
from app.language.llm.summariser import SummaryLine, SummaryRequest
from app.language.text.pieces import word_count

TRIP = (
    SummaryLine("user", "Hi there!"),
    SummaryLine("assistant", "Hello, how can I help?"),
    SummaryLine(
        "user",
        "I'm planning a trip to Kyoto in May with my sister Mia. We have a budget of 2,000 euros. "
        "She is vegetarian.",
    ),
    SummaryLine(
        "assistant",
        "For Kyoto in May I suggest staying near Gion. Ryokans cost about 120 euros per night. "
        "Many temples offer vegetarian shojin ryori.",
    ),
    SummaryLine(
        "user", "Please avoid flights with a layover. Dr. Lee said I should not sit for 12.5 hours."
    ),
    SummaryLine("tool", '{"flights": [{"id": "LH714", "price": 840}]}', name="search_flights"),
    SummaryLine(
        "assistant", "I found LH714, a direct flight from Munich for 840 euros. Shall I book it?"
    ),
    SummaryLine("user", "yes"),
)
SHANGHAI = (
    SummaryLine("user", "你好"),
    SummaryLine(
        "user", "我下个月要去上海出差，预算是三千元。我对花生过敏，请帮我找没有花生的餐厅。"
    ),
    SummaryLine("assistant", "好的，我建议住在人民广场附近。那里交通方便，餐厅也很多。"),
    SummaryLine("user", "酒店要安静一点，最好有健身房。"),
    SummaryLine("assistant", "我找到了和平饭店，每晚八百元，有健身房，也很安静。要预订吗？"),
)


def quoted(lines, words=100, **members):
    return extract(SummaryRequest(words, lines, **members))


class TestQuoting:
    def test_every_line_is_labelled_with_who_said_it(self):
        text = quoted(TRIP)

        assert "User: I'm planning a trip to Kyoto in May with my sister Mia." in text
        assert "Assistant: For Kyoto in May" in text
        assert all(line.partition(": ")[0] in {"User", "Assistant", "Tool (search_flights)"}
                   for line in text.splitlines())  # fmt: skip

    def test_quotations_stand_in_the_order_in_which_they_were_said(self):
        text = quoted(TRIP)

        places = [text.index(part) for part in ("Kyoto", "Gion", "layover", "LH714")]
        assert places == sorted(places)

    def test_nothing_is_quoted_that_was_not_said(self):
        said = " ".join(line.text for line in TRIP)

        for line in quoted(TRIP).splitlines():
            for sentence in line.partition(": ")[2].split(". "):
                assert sentence.rstrip(".") in said

    def test_greetings_and_thanks_are_left_out(self):
        assert "Hi there" not in quoted(TRIP)
        assert "你好" not in quoted(SHANGHAI)

    def test_a_conversation_of_nothing_else_is_quoted_all_the_same(self):
        assert (
            quoted((SummaryLine("user", "ok"), SummaryLine("assistant", "You're welcome!"))) != ""
        )

    def test_chinese_is_cut_into_sentences_and_labelled_in_chinese(self):
        text = quoted(SHANGHAI)

        assert "用户：我下个月要去上海出差，预算是三千元。我对花生过敏" in text
        assert "助手：我找到了和平饭店" in text

    def test_what_is_repeated_is_quoted_once(self):
        lines = [SummaryLine("user", "I live in Munich near the river."), *TRIP] * 2

        assert quoted(lines).count("Munich near the river") == 1

    def test_what_a_summary_before_says_already_is_not_quoted_again(self):
        before = "User: I'm planning a trip to Kyoto in May with my sister Mia."

        assert "planning a trip" not in quoted(TRIP, earlier=[before])

    def test_events_say_that_nobody_said_them(self):
        line = SummaryLine(
            "user", "The customer Ana Ruiz has logged in from Madrid.", event_type="login"
        )

        assert quoted((line, *TRIP)).startswith("Event (login): The customer")

    def test_calls_without_words_are_named(self):
        assert quoted((SummaryLine("assistant", "", calls=("search_flights",)),)) == (
            "Tool calls: search_flights ×1."
        )

    def test_a_long_sentence_is_cut(self):
        long = "The report says " + " ".join(f"item{number}" for number in range(500)) + "."

        text = quoted((SummaryLine("user", long), *TRIP))

        assert "item20" in text
        assert "item60" not in text

    def test_without_any_words_there_is_nothing(self):
        assert quoted((SummaryLine("user", " "),)) == "User: []"
        assert extract(SummaryRequest(100)) == ""


class TestLength:
    @pytest.mark.parametrize("lines", [TRIP, SHANGHAI], ids=["english", "chinese"])
    @pytest.mark.parametrize("words", [3, 10, 11, 25, 40, 80, 100])
    def test_summary_is_never_longer_than_asked_for(self, lines, words):
        assert 0 < word_count(quoted(lines, words)) <= words

    def test_more_words_hold_more(self):
        counts = [word_count(quoted(TRIP, words)) for words in (10, 30, 60, 100)]

        assert counts == sorted(counts)
        assert counts[0] < counts[-1]

    @given(
        st.lists(
            st.builds(
                SummaryLine,
                st.sampled_from(["user", "assistant", "system", "tool"]),
                st.text(max_size=200),
                event_type=st.none() | st.text(min_size=1, max_size=20),
                calls=st.lists(st.text(max_size=30), max_size=3).map(tuple),
                number=st.none() | st.integers(1, 10**6),
            ),
            max_size=12,
        ),
        st.integers(1, 60),
    )
    def test_any_text_gives_some_within_the_limit(self, lines, words):
        assert word_count(quoted(lines, words)) <= words


class TestFolding:
    def test_several_summaries_become_one_with_their_labels(self):
        earlier = [quoted(TRIP, 40), quoted(SHANGHAI, 40), "I helped the user to book a hotel."]

        text = extract(SummaryRequest(60, (), earlier))

        assert "User: I'm planning a trip" in text
        assert "用户：" in text
        assert word_count(text) <= 60

    def test_a_summary_of_a_model_is_quoted_without_a_label(self):
        assert extract(SummaryRequest(60, (), ["I helped the user to book a hotel."])) == (
            "I helped the user to book a hotel."
        )

    @pytest.mark.parametrize(
        ("first", "later"),
        [
            (
                "User: I take the night train to Lisbon in May.\n"
                "User: For Lisbon I need a hotel near the station of the night train.\n"
                "User: The train to Lisbon leaves from the station at nine in the night.\n"
                "User: In May the hotel near the station costs ninety euros a night.",
                ["My sister Clara plays the cello.", "Peanuts make me ill.", "Rex is my old dog."],
            ),
            (
                "用户：我五月坐夜车去里斯本。\n用户：去里斯本要订火车站附近的酒店。\n"
                "用户：去里斯本的夜车晚上九点从火车站出发。\n"
                "用户：五月火车站附近的酒店一晚九十欧元。",
                ["我妹妹会拉大提琴。", "我对花生过敏。", "我养了一条老狗。"],
            ),
        ],
    )
    def test_what_came_later_is_not_lost_fold_after_fold(self, first, later):
        """By rank alone the summary that says most of one thing would stay for ever."""
        present, label = first, first[: first.index("：" if "：" in first else " ") + 1]

        for one in later:
            present = extract(SummaryRequest(25, (), [present, f"{label}{one}"]))

            assert one in present
            assert word_count(present) <= 25


class TestPort:
    async def test_summariser_costs_nothing_and_says_who_it_is(self):
        summariser = ExtractiveSummariser()

        summary = await summariser.summarise(SummaryRequest(100, TRIP))

        assert (summariser.name, summariser.model) == ("extractive/1", None)
        assert (summary.use.calls, summary.use.input_tokens) == (0, 0)

    async def test_a_long_conversation_does_not_hold_others_up(self):
        lines = [
            SummaryLine(
                "user", " ".join(f"word{(place * 7 + step) % 900}" for step in range(12)) + "."
            )
            for place in range(3 * MOST)
        ]
        longest = 0.0

        async def watch():
            nonlocal longest
            while True:
                before = time.thread_time()
                await asyncio.sleep(0.001)
                longest = max(longest, time.thread_time() - before)

        watching = asyncio.create_task(watch())
        started = time.process_time()
        text = (await ExtractiveSummariser().summarise(SummaryRequest(100, lines))).text
        whole = time.process_time() - started
        watching.cancel()

        assert 0 < word_count(text) <= 100
        # What the loop's thread did between two turns of others, whatever else the machine does.
        assert longest < whole / 2

    def test_nothing_is_fetched_when_it_is_imported_or_used(self):
        script = (
            "import socket\n"
            "def refuse(*_): raise SystemExit('it connects')\n"
            "socket.socket.connect = refuse\n"
            "from app.language.llm.extractive_summariser import extract\n"
            "from app.language.llm.summariser import SummaryLine, SummaryRequest\n"
            "print(extract(SummaryRequest(20, (SummaryLine('user', 'I live in Munich.'),))))\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )

        assert ran.stdout.strip() == "User: I live in Munich."
        assert socket.socket.connect is not None


def test_ranks_are_those_of_page_rank():
    """The figures are rustworkx's, for a path of four nodes and one that nothing leads to."""
    weights = np.zeros((5, 5))
    for one, other, weight in ((0, 1, 2.0), (1, 2, 1.0), (2, 3, 0.5)):
        weights[one, other] = weights[other, one] = weight

    ranks = page_ranks(weights, np.array([1, 1, 0.5, 1, 2]))

    expected = [0.247794034, 0.367624146, 0.207398, 0.098236451, 0.078947368]
    assert ranks == pytest.approx(expected, abs=1e-8)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_ranks_add_up_and_stay_as_they_are_after_one_more_step(count, seed):
    dice = np.random.default_rng(seed)
    weights = dice.random((count, count)) * (dice.random((count, count)) < 0.2)
    attention = dice.choice([0.5, 1.0, 2.0], count)

    ranks = page_ranks(weights, attention)

    leaving = weights.sum(axis=1)
    jumps = attention / attention.sum()
    steps = np.where(leaving[:, None] > 0, weights / np.maximum(leaving, 1e-300)[:, None], jumps)
    assert ranks.sum() == pytest.approx(1)
    assert ranks == pytest.approx(0.85 * (ranks @ steps) + 0.15 * jumps, abs=1e-8)
