"""What the context of a memory adds: who, beside what, when, and how each is switched off."""

import pytest
from httpx import AsyncClient

from tests.support.api import ok, save
from tests.support.hits import boosts, hits, save_all, texts

QUIET = dict.fromkeys(
    ("near", "far", "adjacent", "answer", "session", "speaker", "date", "when", "question"), 0.0
)
"""Every signal off."""

SIGNALS = {
    "near", "adjacent", "answer", "session", "speaker", "date", "when", "question", "graph",
}  # fmt: skip
"""What `explain` shows: `near` of the turns one and two away."""


def only(**weights: float) -> dict[str, float]:
    """These signals and no other."""
    return QUIET | weights


class TestExplained:
    async def test_every_signal_is_shown_and_without_any_words_and_vectors_decide(
        self, client: AsyncClient
    ) -> None:
        await save_all(
            client,
            {"content": "When did you buy the kayak last summer?", "metadata": {"name": "Mia"}},
            {"content": "We paddled to the island.", "metadata": {"name": "Noah"}},
            session_id="s1",
        )
        query = "When did Mia buy a kayak in summer 2025?"

        loud, quiet = await boosts(client, query), await boosts(client, query, boosts=QUIET)

        assert {name for one in loud.values() for name in one} == SIGNALS
        first = loud["When did you buy the kayak last summer?"]
        assert first["speaker"] > 0
        assert first["when"] > 0
        assert first["question"] < 0
        assert first["session"] > 0
        for one in quiet.values():
            assert one == pytest.approx(dict.fromkeys(SIGNALS, 0.0), abs=1e-6)

    async def test_relevance_is_the_sum_of_its_parts_cut_and_scaled(
        self, client: AsyncClient
    ) -> None:
        await save_all(client, *(f"Her locker {n} has a red door." for n in range(20)))
        await save_all(client, "The red door squeaks.", "It was painted in May.", session_id="s1")

        found = await hits(client, "When was the red door painted?")

        for hit in found.values():
            assert 0 <= hit["relevance"] <= 1
            assert hit["explain"]["fused"] == hit["relevance"]
        assert max(hit["relevance"] for hit in found.values()) <= 1


class TestSpeaker:
    @pytest.mark.parametrize("key", ["name", "speaker", "subject"])
    async def test_who_is_asked_about_comes_first(self, client: AsyncClient, key: str) -> None:
        for name, sport in (("Caroline", "tennis"), ("Melanie", "chess")):
            await save(client, f"I play {sport} every week.", metadata={key: name})

        for name, sport in (("Caroline", "tennis"), ("Melanie", "chess"), ("melanie", "chess")):
            assert sport in (await texts(client, f"What does {name} play?"))[0]

    async def test_a_name_in_small_letters_is_one_too(self, client: AsyncClient) -> None:
        await save(client, "I play tennis every week.", metadata={"name": "Will Smith"})
        await save(client, "I play chess every week.", metadata={"name": "Rose"})

        added = await boosts(client, "what does rose play")

        assert added["I play chess every week."]["speaker"] == pytest.approx(0.6)
        assert added["I play tennis every week."]["speaker"] == 0

    @pytest.mark.parametrize("query", ["王小明喜欢做什么?", "王小明喜歡做什麼?", "小明喜欢做什么?"])
    async def test_a_chinese_name_is_found_in_a_sentence(
        self, client: AsyncClient, query: str
    ) -> None:
        name = "小明" if query.startswith("小") else "王小明"
        await save(client, "我喜欢爬山和游泳。", metadata={"name": name})
        await save(client, "我喜欢下棋和唱歌。", metadata={"name": "李芳"})

        added = await boosts(client, query)

        assert next(iter(added)) == "我喜欢爬山和游泳。"
        assert added["我喜欢爬山和游泳。"]["speaker"] > 0
        assert added["我喜欢下棋和唱歌。"]["speaker"] == 0

    async def test_switched_off_it_adds_nothing_and_the_order_changes(
        self, client: AsyncClient
    ) -> None:
        await save_all(
            client,
            {"content": "I like swimming in the lake.", "metadata": {"name": "Caroline"}},
            {"content": "A nice lake, I like swimming there.", "metadata": {"name": "Mel"}},
        )
        query = "Does Caroline like the nice lake there?"

        on = await boosts(client, query, boosts=only(speaker=1.0))
        off = await boosts(client, query, boosts=QUIET)

        assert list(on) == list(off)[::-1]
        assert [one["speaker"] for one in on.values()] == [1, 0]
        assert [one["speaker"] for one in off.values()] == [0, 0]

    async def test_a_name_in_the_metadata_that_is_none_is_no_harm(
        self, client: AsyncClient
    ) -> None:
        for number, name in enumerate(({"a": 1}, ["Caroline"], 7, None, "", "  ")):
            await save(client, f"Thing {number} stands here.", metadata={"name": name})

        assert len(await texts(client, "Where does the thing of Caroline stand?")) == 6


class TestNeighbours:
    TALK = (
        "We drove to the coast on Saturday.",
        "My sister collects stamps from Norway.",
        "She keeps all of them in a blue album.",
        "Our dog had to see the vet.",
        "Dinner was late because of the rain.",
    )
    ANSWER = TALK[2]
    ELSEWHERE = "He has an album of photographs."

    @pytest.fixture(autouse=True)
    async def talk(self, client: AsyncClient) -> None:
        await save_all(client, self.ELSEWHERE, "The river froze in winter.")
        await save_all(client, *self.TALK, session_id="s1")

    async def test_a_turn_is_found_by_words_of_the_one_beside_it(self, client: AsyncClient) -> None:
        query = "Norway stamps album"

        on = await boosts(client, query, boosts=only(near=0.5, adjacent=0.1))
        off = await boosts(client, query, boosts=QUIET)

        assert on[self.ANSWER]["near"] > 0
        assert on[self.ANSWER]["adjacent"] > 0
        assert list(on).index(self.ANSWER) < list(on).index(self.ELSEWHERE)
        assert off[self.ANSWER]["near"] == pytest.approx(0, abs=1e-6)
        assert off[self.ANSWER]["adjacent"] == 0

    @pytest.mark.parametrize(
        ("weight", "signal", "raised"),
        [
            ("near", "near", {TALK[1], TALK[3]}),
            ("far", "near", {TALK[0], TALK[4]}),
            ("adjacent", "adjacent", {TALK[1], TALK[3]}),
        ],
    )
    async def test_each_distance_is_a_weight_of_its_own(
        self, client: AsyncClient, weight: str, signal: str, raised: set[str]
    ) -> None:
        weights = only(**{weight: 0.5, "dense_latin": 0.0})

        added = await boosts(client, "blue", mode="hybrid", boosts=weights)

        assert {text for text, one in added.items() if one[signal] > 1e-6} == raised
        others = SIGNALS - {signal}
        assert {round(one[name], 6) for one in added.values() for name in others} == {0.0}

    async def test_a_turn_of_another_session_is_no_neighbour(self, client: AsyncClient) -> None:
        other = "The last words of another talk."
        await save_all(client, other, session_id="s2")

        added = await boosts(client, "dinner rain", boosts=only(near=0.5, far=0.5, adjacent=0.5))

        for signal in ("near", "adjacent"):
            assert added[self.TALK[3]][signal] > 0
            assert abs(added[other][signal]) <= abs(added[self.ELSEWHERE][signal]) + 1e-6

    async def test_what_answers_a_question_is_raised_by_it(self, client: AsyncClient) -> None:
        await save_all(
            client,
            {"content": "Where did you buy the kayak?", "role": "assistant"},
            "At the market in Bergen, on sale.",
            "It took us hours.",
            session_id="s3",
        )
        weights = only(answer=0.5)

        added = await boosts(client, "Where did she buy the kayak?", boosts=weights)

        assert added["At the market in Bergen, on sale."]["answer"] > 0.1
        assert added["It took us hours."]["answer"] == pytest.approx(0, abs=1e-6)


class TestSession:
    async def test_the_session_that_is_about_it_raises_its_turns(self, client: AsyncClient) -> None:
        trip = ("We packed tents for Norway.", "The fjords in Norway are deep.", "It rained a lot.")
        work = ("The printer jammed again.", "Somebody ate my lunch.", "It was a long day.")
        await save_all(client, *work, session_id="work")
        await save_all(client, *trip, session_id="trip")

        on = await boosts(client, "tents and fjords in Norway", boosts=only(session=0.4))
        off = await boosts(client, "tents and fjords in Norway", boosts=QUIET)

        assert [on[text]["session"] for text in trip] == pytest.approx([0.4] * 3)
        assert [on[text]["session"] for text in work] == [0] * 3
        assert set(list(on)[:3]) == set(trip)
        assert {one["session"] for one in off.values()} == {0}

    async def test_a_memory_of_no_session_has_no_part_in_it(self, client: AsyncClient) -> None:
        await save_all(client, "The fjords in Norway are deep.", "The printer jammed again.")

        added = await boosts(client, "fjords in Norway")

        assert {one["session"] for one in added.values()} == {0}


class TestDates:
    AT = "2023-05-10T12:00:00Z"

    @pytest.fixture(autouse=True)
    async def days(self, client: AsyncClient) -> None:
        for day in ("2023-05-09", "2023-04-12", "2022-05-09"):
            await save(
                client,
                f"She went swimming, entry {day[2:4]}/{day[5:7]}.",
                valid_from=f"{day}T09:00:00Z",
                on_duplicate="allow",
            )

    @pytest.mark.parametrize(
        ("query", "entry"),
        [
            ("What did she do yesterday?", "23/05"),
            ("她昨天做了什么?", "23/05"),
            ("她昨天做了什麼?", "23/05"),
            ("What did she do on 9 May 2023?", "23/05"),
            ("What did she do last month?", "23/04"),
            ("她上个月做了什么?", "23/04"),
            ("What did she do in May 2022?", "22/05"),
            ("2022年5月她做了什么?", "22/05"),
            ("她去年5月做了什么?", "22/05"),
        ],
    )
    async def test_what_happened_then_comes_first(
        self, client: AsyncClient, query: str, entry: str
    ) -> None:
        found = await texts(client, query, reference_time=self.AT)

        assert entry in found[0]

    async def test_what_was_said_then_comes_first_where_nothing_says_when_it_happened(
        self, client: AsyncClient
    ) -> None:
        said = {"content": "She went diving.", "said_at": "2021-02-03T09:00:00Z"}
        await save(client, said, on_duplicate="allow")

        added = await boosts(client, "What did she do in February 2021?", boosts=only(date=1.0))

        assert [text for text, one in added.items() if one["date"] == 1] == ["She went diving."]

    async def test_relative_dates_move_with_the_reference(self, client: AsyncClient) -> None:
        query = "What did she do yesterday?"

        now = await boosts(client, query)
        then = await boosts(client, query, reference_time=self.AT)
        zoned = await boosts(client, query, reference_time="2022-05-10T23:00:00+02:00")

        assert {one["date"] for one in now.values()} == {0.0}
        assert max(one["date"] for one in then.values()) == pytest.approx(0.4)
        assert "22/05" in next(iter(zoned))

    async def test_switched_off_it_adds_nothing(self, client: AsyncClient) -> None:
        query = "What did she do last month?"

        on = await boosts(client, query, reference_time=self.AT, boosts=only(date=1.0))
        off = await boosts(client, query, reference_time=self.AT, boosts=QUIET)

        assert on["She went swimming, entry 23/04."]["date"] == 1
        assert {one["date"] for one in off.values()} == {0.0}
        assert next(iter(on)) == "She went swimming, entry 23/04."


class TestWhen:
    async def test_who_asks_when_is_told_what_names_a_time(self, client: AsyncClient) -> None:
        timed, bare = "She moved house last spring.", "She moved house with friends."
        await save_all(client, bare, timed)
        for query in ("When did she move house?", "她什么时候搬家?"):
            on = await boosts(client, query, boosts=only(when=0.5))
            off = await boosts(client, query, boosts=QUIET)

            assert on[timed]["when"] == pytest.approx(0.5)
            assert on[bare]["when"] == 0
            assert next(iter(on)) == timed
            assert {one["when"] for one in off.values()} == {0.0}

        other = await boosts(client, "Where did she move?", boosts=only(when=0.5))
        assert {one["when"] for one in other.values()} == {0.0}

    async def test_a_chinese_time_is_one_too(self, client: AsyncClient) -> None:
        timed, bare = "她去年春天搬到上海。", "她和朋友一起搬家。"
        await save_all(client, bare, timed)

        added = await boosts(client, "她什么时候搬家的?", boosts=only(when=0.5))

        assert added[timed]["when"] == pytest.approx(0.5)
        assert added[bare]["when"] == 0


class TestQuestions:
    @pytest.mark.parametrize(
        ("question", "statement", "query"),
        [
            ("Do you like green tea?", "I do like green tea.", "likes green tea"),
            ("你喜欢喝绿茶吗?", "我喜欢喝绿茶的。", "喜欢喝绿茶"),
        ],
    )
    async def test_a_short_question_gives_way_to_a_statement(
        self, client: AsyncClient, question: str, statement: str, query: str
    ) -> None:
        await save_all(client, question, statement)

        on = await boosts(client, query, boosts=only(question=0.5))
        off = await boosts(client, query, boosts=QUIET)

        assert list(on) == [statement, question]
        assert on[question]["question"] == pytest.approx(-0.5)
        assert on[statement]["question"] == 0
        assert {one["question"] for one in off.values()} == {0.0}

    async def test_a_long_one_does_not(self, client: AsyncClient) -> None:
        long = " ".join(f"and thing{n}" for n in range(20)) + ", would you carry them all for me?"
        await save_all(client, f"Today I bought {long}")

        added = await boosts(client, "thing4", boosts=only(question=0.5))

        assert [one["question"] for one in added.values()] == [0]


class TestWeights:
    async def test_a_search_may_weigh_the_arms_itself(self, client: AsyncClient) -> None:
        word = "The beverages list of the hotel hangs beside the lift, next to the mirror."
        sense = "He drinks coffee, tea, milk and juice."
        await save_all(client, word, sense, *(f"Shelf number {n} is free." for n in range(9)))
        query = "coffeehouse beverages"

        by_words = await texts(client, query, boosts=only(dense_latin=0.0))
        by_vectors = await texts(client, query, boosts=only(dense_latin=1.0))

        assert by_words[0] == word
        assert by_vectors[0] == sense

    async def test_weights_of_a_search_hold_for_it_alone(self, client: AsyncClient) -> None:
        await save(client, "I play chess.", metadata={"name": "Rose"})
        query = "What does Rose play?"
        before = await boosts(client, query)

        await boosts(client, query, boosts=QUIET)

        assert await boosts(client, query) == before
        ok(await client.get("/memories/stats"))
