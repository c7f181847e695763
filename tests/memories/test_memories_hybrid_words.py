"""Words that find their memory: stems, numbers, identifiers, Chinese of both scripts, and modes."""

import math
import random
from collections import Counter
from itertools import product

import pytest
from httpx import AsyncClient

from app.language.ranking.packing import LONGEST_QUERY, MOST_OFTEN
from app.language.text.terms import terms
from tests.support.api import fields, problem, save
from tests.support.hits import asked, hits, save_all, texts
from tests.support.rows import for_each

ENGLISH = (
    "Her brother repairs old bicycles in Leipzig.",
    "The backup runs every night at 02:30 on db-prod-3.",
    "She migrated the billing service to Python 3.11.4 last spring.",
    "Call parse_config() before startServer(), else it fails.",
    "The parcel 1Z-999-AA1 weighs 2.5 kg and cost $49.90.",
    "Ticket KEM-4711 is about the login page.",
    "They are allergic to peanuts and shellfish.",
    "He was born on 8 May 1990 in Oslo.",
    "She plays the cello in an amateur orchestra.",
    "The garden needs water twice a week in July.",
)
CHINESE = (
    "她每天早上喝一杯绿茶。",
    "我們上週換了一個資料庫,叫做雲端。",
    "王小明在北京大学学习建筑。",
    "他说做事不要画蛇添足。",
    "她的房间号是3702。",
    "會議改到2023年5月8日下午。",
    "他用 Python 3.12 写爬虫。",
    "奶奶喜欢在院子里种番茄。",
    "她對花生過敏,不能吃堅果。",
    "我的猫叫做豆豆。",
)


@pytest.fixture
async def english(client: AsyncClient) -> None:
    await save_all(client, *ENGLISH)


@pytest.fixture
async def chinese(client: AsyncClient) -> None:
    await save_all(client, *CHINESE)


@pytest.mark.usefixtures("english")
class TestEnglish:
    @for_each(
        ("query", "text"),
        [
            ("repairing a bicycle", ENGLISH[0]),
            ("BICYCLES", ENGLISH[0]),
            ("allergy: peanut?", ENGLISH[6]),
            ("migration of billing", ENGLISH[2]),
            ("orchestras", ENGLISH[8]),
            ("3.11.4", ENGLISH[2]),
            ("python 3.11.4", ENGLISH[2]),
            ("v3.11.4", ENGLISH[2]),
            ("02:30", ENGLISH[1]),
            ("db-prod-3", ENGLISH[1]),
            ("parse_config", ENGLISH[3]),
            ("parseConfig", ENGLISH[3]),
            ("startServer", ENGLISH[3]),
            ("start server", ENGLISH[3]),
            ("1Z-999-AA1", ENGLISH[4]),
            ("49.90", ENGLISH[4]),
            ("KEM-4711", ENGLISH[5]),
            ("4711", ENGLISH[5]),
            ("kem 4711", ENGLISH[5]),
            ("Who was born in May 1990?", ENGLISH[7]),
            ("1990-05-08", ENGLISH[7]),
        ],
    )
    async def test_a_word_finds_its_memory_in_any_form(
        self, client: AsyncClient, query: str, text: str
    ) -> None:
        for mode in ("hybrid", "lexical"):
            assert (await texts(client, query, mode=mode))[0] == text

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("green door", "The door to the cellar is stuck."),
            ("AI models", "Talks about AI bore him."),
            ("deep sea diving", "They spent a week by the sea."),
            ("Dan Brown novels", "Dan called from Boston."),
            ("CI pipeline", "The CI is red again."),
            ("OS upgrade", "The laptop got a new OS."),
        ],
    )
    async def test_a_word_is_kept_that_is_grammar_elsewhere(
        self, client: AsyncClient, query: str, text: str
    ) -> None:
        await save_all(client, text)

        assert await texts(client, query, mode="lexical") == [text]

    async def test_words_of_every_text_find_nothing_by_themselves(
        self, client: AsyncClient
    ) -> None:
        found = await hits(client, "What is she to the of and?", mode="lexical")

        assert found == {}


@pytest.mark.usefixtures("chinese")
class TestChinese:
    @for_each(
        ("query", "text"),
        [
            ("绿茶", CHINESE[0]),
            ("綠茶", CHINESE[0]),
            ("她早上喝什么?", CHINESE[0]),
            ("资料库", CHINESE[1]),
            ("資料庫", CHINESE[1]),
            ("云端", CHINESE[1]),
            ("王小明", CHINESE[2]),
            ("小明", CHINESE[2]),
            ("建築", CHINESE[2]),
            ("畫蛇添足", CHINESE[3]),
            ("画蛇添足是谁说的?", CHINESE[3]),
            ("3702", CHINESE[4]),
            ("３７０２", CHINESE[4]),
            ("会议", CHINESE[5]),
            ("2023年5月8日", CHINESE[5]),
            ("2023-05-08", CHINESE[5]),
            ("5月有什么安排?", CHINESE[5]),
            ("python", CHINESE[6]),
            ("3.12", CHINESE[6]),
            ("爬蟲", CHINESE[6]),
            ("番茄", CHINESE[7]),
            ("过敏", CHINESE[8]),
            ("坚果", CHINESE[8]),
            ("豆豆", CHINESE[9]),
            ("貓", CHINESE[9]),
        ],
    )
    async def test_a_word_of_either_script_finds_its_memory(
        self, client: AsyncClient, query: str, text: str
    ) -> None:
        for mode in ("hybrid", "lexical"):
            assert (await texts(client, query, mode=mode))[0] == text

    @for_each(
        ("simplified", "traditional"),
        [
            ("她对花生过敏吗", "她對花生過敏嗎"),
            ("建筑和资料库", "建築和資料庫"),
            ("坚果", "堅果"),
        ],
    )
    async def test_both_scripts_are_scored_the_same(
        self, client: AsyncClient, simplified: str, traditional: str
    ) -> None:
        one, other = [
            {text: hit["explain"]["lexical"] for text, hit in (await hits(client, query)).items()}
            for query in (simplified, traditional)
        ]

        assert one == other


@pytest.mark.usefixtures("english")
class TestModes:
    async def test_the_mode_is_told_and_is_hybrid_unless_asked(self, client: AsyncClient) -> None:
        assert (await asked(client, "cello"))["mode"] == "hybrid"
        for mode in ("semantic", "lexical", "hybrid"):
            assert (await asked(client, "cello", mode=mode))["mode"] == mode

    async def test_in_lexical_mode_nothing_comes_without_a_shared_word(
        self, client: AsyncClient
    ) -> None:
        assert await texts(client, "cello", mode="lexical") == [ENGLISH[8]]
        assert await texts(client, "violin", mode="lexical") == []
        assert await texts(client, "?!", mode="lexical") == []
        assert len(await texts(client, "violin", mode="hybrid")) == len(ENGLISH)
        assert len(await texts(client, "violin", mode="semantic")) == len(ENGLISH)

    async def test_each_mode_says_what_it_looked_at(self, client: AsyncClient) -> None:
        for mode in ("semantic", "lexical", "hybrid"):
            for hit in (await hits(client, "cello", mode=mode)).values():
                parts = hit["explain"]
                lexical = parts["lexical"]
                assert (lexical is None) == (mode == "semantic")
                expected = {"semantic": hit["similarity"], "lexical": lexical}.get(mode)
                assert expected in {None, hit["relevance"]}
                assert bool(parts["boosts"]) == (mode == "hybrid")
                assert lexical is None or 0 <= lexical <= 1

    async def test_similarity_is_the_same_cosine_in_each_mode_that_has_one(
        self, client: AsyncClient
    ) -> None:
        query = "She plays the cello."
        by_mode = {mode: await hits(client, query, mode=mode) for mode in ("semantic", "hybrid")}

        for text, hit in by_mode["semantic"].items():
            assert by_mode["hybrid"][text]["similarity"] == pytest.approx(
                hit["similarity"], abs=1e-6
            )
        for hit in (await hits(client, query, mode="lexical")).values():
            assert (hit["similarity"], hit["explain"]["cosine"]) == (None, None)

    @pytest.mark.parametrize(
        ("mode", "judged"),
        [("semantic", "similarity"), ("hybrid", "similarity"), ("lexical", "lexical")],
    )
    async def test_a_threshold_takes_its_own_value_in(
        self, client: AsyncClient, mode: str, judged: str
    ) -> None:
        query = "Who plays in Leipzig in the garden in July?"
        every = await hits(client, query, mode=mode)
        values = sorted(
            hit["similarity"] if judged == "similarity" else hit["explain"]["lexical"]
            for hit in every.values()
        )
        middle = values[len(values) // 2]
        at_least = sum(value >= middle for value in values)

        below = await texts(client, query, mode=mode, threshold=math.nextafter(middle, 0))
        at = await texts(client, query, mode=mode, threshold=middle)
        above = await texts(client, query, mode=mode, threshold=math.nextafter(middle, 1))

        assert len(values) > at_least > 0
        assert (len(below), len(at), len(above)) == (at_least, at_least, at_least - 1)

    async def test_without_reranking_the_raw_score_decides(self, client: AsyncClient) -> None:
        await save(client, "Oslo.", confidence=0.7)
        await save(client, "She plays in Oslo.", scope="session", session_id="s1")
        named = {"user_id": "ana", "session_id": "s1"}

        for mode in ("semantic", "hybrid", "lexical"):
            plain = await hits(client, "Oslo", mode=mode, rerank=False, **named)
            judged = [
                hit["explain"]["lexical"] if mode == "lexical" else hit["similarity"]
                for hit in plain.values()
            ]
            assert judged == sorted(judged, reverse=True)
            scored = [hit["score"] for hit in plain.values()]
            assert scored != sorted(scored, reverse=True)

    @for_each(
        ("wrong", "place"),
        [
            ({"mode": "fuzzy"}, "body.mode"),
            ({"boosts": {"colour": 0.5}}, "body.boosts"),
            ({"boosts": {"speaker": -0.01}}, "body.boosts.speaker"),
            ({"boosts": {"speaker": 1.01}}, "body.boosts.speaker"),
            ({"boosts": {"speaker": "much"}}, "body.boosts.speaker"),
            ({"reference_time": "yesterday"}, "body.reference_time"),
            ({"reference_time": "2023-05-08"}, "body.reference_time"),
        ],
    )
    async def test_what_nobody_can_ask_is_refused_by_its_place(
        self, client: AsyncClient, wrong: dict, place: str
    ) -> None:
        body = {"query": "tea", "user_id": "ana"} | wrong

        document = problem(await client.post("/memories/search", json=body), 422, "invalid_request")

        assert fields(document) == [place]

    async def test_an_unknown_weight_is_told_beside_those_there_are(
        self, client: AsyncClient
    ) -> None:
        body = {"query": "tea", "user_id": "ana", "boosts": {"colour": 0.5}}

        document = problem(await client.post("/memories/search", json=body), 422, "invalid_request")

        assert "colour" in document["errors"][0]["detail"]
        assert "speaker" in document["errors"][0]["detail"]


def plain_bm25(texts: list[str], query: str) -> dict[str, float]:
    """The textbook's, by the same analysis: 1 is each word of the query once in a mean row."""
    documents = {text: Counter(terms(text)) for text in texts}
    mean = sum(sum(one.values()) for one in documents.values()) / len(documents)
    worth = {
        term: math.sqrt(times) * math.log(1 + (len(documents) - held + 0.5) / (held + 0.5))
        for term, times in Counter(terms(query)).items()
        for held in [sum(term in one for one in documents.values())]
    }
    return {
        text: min(
            1.0,
            sum(
                weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * sum(one.values()) / mean))
                for term, weight in worth.items()
                if (often := min(one[term], MOST_OFTEN))
            )
            / sum(worth.values()),
        )
        for text, one in documents.items()
    }


VOCABULARIES = {
    "english": "tea coffee garden bicycle orchestra server backup winter python 3702 kettle",
    "chinese": "绿茶 咖啡 花园 自行车 乐团 服务器 備份 冬天 建築 發票 3702 水壺",
}


class TestExact:
    """Through HTTP, PostgreSQL and packed vectors comes what the formula says."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("language", VOCABULARIES)
    async def test_the_lexical_score_is_bm25_over_the_bucket(
        self, client: AsyncClient, language: str, seed: int
    ) -> None:
        chance = random.Random(seed)
        words = VOCABULARIES[language].split()
        glue = " " if language == "english" else "，"
        corpus = list(
            dict.fromkeys(
                glue.join(["note", *chance.choices(words, k=chance.randint(3, 40))])
                for _ in range(60)
            )
        )
        await save_all(client, *corpus)

        for size in (1, 2, 5, 12):
            query = glue.join(chance.choices(words, k=size))
            expected = plain_bm25(corpus, query)
            found = await hits(client, query, mode="lexical", limit=100)
            assert found.keys() == {text for text, score in expected.items() if score > 0}
            for text, hit in found.items():
                assert hit["explain"]["lexical"] == pytest.approx(expected[text], abs=1e-5)

    async def test_a_query_of_very_many_words_is_exact_too(self, client: AsyncClient) -> None:
        # Words that no language has, so that nothing is stemmed or left out.
        made = ("".join(signs) for signs in product("bcdfghkmnpvw", "aeiou", "rtvxzkgd", "q"))
        words = list(made)[: LONGEST_QUERY + 1]
        assert terms(" ".join(words)) == words
        corpus = [" ".join(words[start : start + 60]) for start in range(0, 330, 17)]
        await save_all(client, *corpus)

        for size in (6, 7, 192, 193, LONGEST_QUERY, LONGEST_QUERY + 1):
            query = " ".join(words[:size])
            found = await hits(client, query, mode="lexical", limit=100)
            # Of a longer one, what came last is asked.
            expected = plain_bm25(corpus, " ".join(words[:size][-LONGEST_QUERY:]))
            assert found.keys() == {text for text, score in expected.items() if score > 0}
            for text, hit in found.items():
                assert hit["explain"]["lexical"] == pytest.approx(expected[text], abs=1e-5)
