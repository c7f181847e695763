"""Who hangs together with whom, extracted in the run of the memories that say so."""

import pytest
from httpx import AsyncClient

from tests.support.api import append, every_page, execute, ok
from tests.support.chat_behaviours import decides, entry, extracts, says, schema_name_of
from tests.support.graph import known, names, refreshed
from tests.support.working import extracted

REPLY = {"role": "assistant", "content": "I see."}
SAID = "李明在北京大学学计算机科学，导师是张教授，张教授是人工智能专家。"

LI_MING = [
    ("李明", "person", "studies_at", "北京大学", "organization"),
    ("李明", "person", "studies", "计算机科学", "field"),
    ("李明", "person", "advised_by", "张教授", "person"),
    ("张教授", "person", "expert_in", "人工智能", "field"),
]

TRIPLES = """
SELECT source.name AS source, relation, destination.name AS destination, valid_to,
    graph_relations.memory_ids, graph_relations.evidence, graph_relations.confidence
FROM graph_relations
JOIN graph_entities AS source ON source.tenant_id = graph_relations.tenant_id
    AND source.entity_id = source_id
JOIN graph_entities AS destination ON destination.tenant_id = graph_relations.tenant_id
    AND destination.entity_id = destination_id
WHERE graph_relations.tenant_id = $1 AND known_to IS NULL
ORDER BY known_from, relation_id
"""


def joins(source, source_type, relation, destination, destination_type):
    return {
        "source": source,
        "source_type": source_type,
        "relation": relation,
        "destination": destination,
        "destination_type": destination_type,
    }


def telling(*entries, **members):
    """A model that makes an entry of each (content, triples)."""

    def of(lines):
        last = lines[-2]["id"] if len(lines) > 1 else lines[0]["id"]
        return [
            entry(content, last, relations=[joins(*one) for one in triples], **members)
            for content, triples in entries
        ]

    return extracts(of)


def adds(_statement, _near):
    return {"event": "ADD"}


def answering(chat, *tellings, decision=adds):
    """Each run is told the next; decisions are as given, and other questions have no answer.

    By question and not in order, since what follows a run asks the same model.
    """
    left = list(tellings)

    async def behave(request):
        match schema_name_of(request):
            case "memories":
                return await left.pop(0)(request)
            case "decisions":
                return await decides(decision)(request)
            case _:
                return await says({})(request)

    chat.otherwise = behave


async def read(client: AsyncClient, said: str, session_id: str = "talk") -> dict:
    await append(client, session_id, said, REPLY)
    return await extracted(client, session_id)


async def triples(dsn: str, client: AsyncClient, *, ended: bool = False) -> list[tuple]:
    rows = await execute(dsn, TRIPLES, client.tenant_id)
    return [
        (row["source"], row["relation"], row["destination"])
        for row in rows
        if (row["valid_to"] is not None) is ended
    ]


SENTENCES = [
    ("李明在北京大学学计算机科学。", LI_MING[:2]),
    ("李明的导师是张教授。", LI_MING[2:3]),
    ("张教授是人工智能专家。", LI_MING[3:]),
]
FOUR = [(one[0], one[2], one[3]) for one in LI_MING]


class TestLiMing:
    """Named third persons and how they are related, over HTTP."""

    async def test_his_four_triples_are_in_the_graph(self, client, worker, chat, dsn):
        answering(chat, telling(*SENTENCES))
        job = await read(client, SAID)

        assert await triples(dsn, client) == FOUR
        counted = job["result"]["graph"]
        assert (counted["entities"], counted["relations"]) == (5, 4)

        page = ok(await client.get("/graph/relations", params={"user_id": "ana"}))
        shown = {
            (one["source"]["name"], one["relation"], one["destination"]["name"])
            for one in page["items"]
        }
        assert shown == set(FOUR)
        page = ok(await client.get("/graph/entities", params={"user_id": "ana"}))
        kinds = {one["name"]: one["entity_type"] for one in page["items"]}
        assert kinds == {
            "李明": "person",
            "北京大学": "organization",
            "计算机科学": "field",
            "张教授": "person",
            "人工智能": "field",
        }

    async def test_they_stand_on_the_memory_and_the_message_that_say_so(
        self, client, worker, chat, dsn
    ):
        answering(chat, telling(*SENTENCES, confidence=0.9))
        job = await read(client, SAID)

        rows = await execute(dsn, TRIPLES, client.tenant_id)
        assert {one for row in rows for one in row["memory_ids"]} == set(
            job["result"]["memory_ids"]
        )
        assert all(len(row["evidence"]) == 1 for row in rows)
        assert {row["confidence"] for row in rows} == {0.9}

    async def test_said_again_they_are_made_once(self, client, worker, chat, dsn):
        answering(chat, telling(*SENTENCES), telling(*SENTENCES))
        await read(client, SAID)
        await read(client, SAID)

        assert await triples(dsn, client) == FOUR
        assert await triples(dsn, client, ended=True) == []
        found = await execute(
            dsn,
            "SELECT count(*) AS n FROM graph_entities WHERE tenant_id = $1",
            client.tenant_id,
        )
        assert found[0]["n"] == 5

    async def test_a_new_value_ends_only_the_same_subject_and_relation(
        self, client, worker, chat, dsn
    ):
        moved = ("李明", "person", "studies_at", "清华大学", "organization")
        answering(
            chat,
            telling(
                ("李明在北京大学读书。", LI_MING[:1]),
                attribute="liming.school",
            ),
            telling(*SENTENCES[1:]),
            telling(("李明在清华大学读书。", [moved]), attribute="liming.school"),
            decision=replaces_beijing,
        )
        await read(client, "李明在北京大学读书。", "one")
        await read(client, "李明的导师是张教授，张教授是人工智能专家。", "two")
        await read(client, "李明现在在清华大学读书了。", "three")

        assert await triples(dsn, client) == [*FOUR[2:], ("李明", "studies_at", "清华大学")]
        assert await triples(dsn, client, ended=True) == [FOUR[0]]


def replaces_beijing(statement, near):
    old = [one["id"] for one in near if "北京大学" in one["text"]]
    if "清华" in statement["text"] and old:
        return {"event": "SUPERSEDE", "memories": old[:1]}
    return {"event": "ADD"}


class TestTheSpeaker:
    async def test_is_one_entity_in_both_languages_with_a_name_or_without(
        self, client, worker, chat, dsn
    ):
        answering(
            chat,
            telling(("用户住在慕尼黑。", [("用户", "person", "lives_in", "慕尼黑", "place")])),
            telling(("用户叫李明。", []), attribute="user.name"),
            telling(
                (
                    "The user works at Siemens.",
                    [("the user", "person", "works_at", "Siemens", "organization")],
                )
            ),
            telling(("李明的导师是张教授。", LI_MING[2:3])),
        )
        await read(client, "我住在慕尼黑。", "one")
        assert await triples(dsn, client) == [("ana", "lives_in", "慕尼黑")]
        await read(client, "我叫李明。", "two")
        await read(client, "I work at Siemens.", "three")
        await read(client, "李明的导师是张教授。", "four")

        assert await triples(dsn, client) == [
            ("李明", "lives_in", "慕尼黑"),
            ("李明", "works_at", "Siemens"),
            ("李明", "advised_by", "张教授"),
        ]

    async def test_has_the_name_that_the_caller_gave(self, client, worker, chat, dsn):
        ok(await client.post("/agents", json={"agent_id": "home", "agent_name": "Home"}), 201)
        ok(
            await client.post(
                "/users", json={"user_id": "ana", "agent_id": "home", "user_name": "Ana Lopez"}
            ),
            201,
        )
        answering(
            chat,
            telling(("The user lives in Rome.", [("user", "person", "lives_in", "Rome", "place")])),
        )
        await read(client, "I live in Rome.")
        assert await triples(dsn, client) == [("Ana Lopez", "lives_in", "Rome")]


class TestWhatMakesNoRelation:
    async def test_a_statement_that_the_gate_refuses(self, client, worker, chat, dsn):
        answering(chat, telling(SENTENCES[0], confidence=0.3))
        await read(client, SAID)
        assert await triples(dsn, client) == []

    async def test_what_counts_in_one_conversation_only(self, client, worker, chat, dsn):
        answering(chat, telling(SENTENCES[0], scope="session"))
        job = await read(client, SAID)
        assert job["result"]["events"] == {"ADD": 1}
        assert await triples(dsn, client) == []

    async def test_a_name_that_was_translated_or_made_up(self, client, worker, chat, dsn):
        wrong = [
            ("Li Ming", "person", "studies_at", "Peking University", "organization"),
            ("李明", "person", "friend_of", "王芳", "person"),
            LI_MING[0],
        ]
        answering(chat, telling(("李明在北京大学学计算机科学。", wrong)))
        await read(client, SAID)
        assert await triples(dsn, client) == FOUR[:1]

    async def test_an_unusable_one_is_told_of_and_costs_none_of_the_others(
        self, client, worker, chat, dsn
    ):
        bad = [("李明", "person", "就读于", "北京大学", "organization"), *LI_MING[:2]]
        answering(chat, telling(("李明在北京大学学计算机科学。", bad)))
        job = await read(client, SAID)
        assert await triples(dsn, client) == FOUR[:2]
        assert job["result"]["events"] == {"ADD": 1, "REJECT": 1}

    @pytest.mark.parametrize(("config", "wanted"), [({"graph": False}, 0), ({"graph": True}, 2)])
    async def test_an_agent_that_wants_none(self, client, worker, chat, dsn, config, wanted):
        ok(
            await client.post(
                "/agents", json={"agent_id": "default", "agent_name": "D", "config": config}
            ),
            201,
        )
        ok(
            await client.post(
                "/sessions",
                json={"session_id": "talk", "user_id": "ana", "agent_id": "default"},
            ),
            201,
        )
        answering(chat, telling(SENTENCES[0]))
        await read(client, SAID)
        assert len(await triples(dsn, client)) == wanted


class TestWhatEnds:
    async def test_a_retraction_ends_what_it_takes_back(self, client, worker, chat, dsn):
        works = ("用户", "person", "works_at", "西门子", "organization")
        answering(
            chat,
            telling(("用户在西门子工作。", [works])),
            telling(("用户不再在西门子工作。", [works]), retracts=True),
            decision=lambda _, near: {"event": "DELETE", "memories": [near[0]["id"]]},
        )
        await read(client, "我在西门子工作。", "one")
        await read(client, "我不在西门子工作了。", "two")

        assert await triples(dsn, client) == []
        assert await triples(dsn, client, ended=True) == [("ana", "works_at", "西门子")]

    async def test_what_a_replaced_memory_alone_said(self, client, worker, chat, dsn):
        answering(
            chat,
            telling(
                (
                    "The user lives in Munich.",
                    [("user", "person", "lives_in", "Munich", "place")],
                )
            ),
            telling(("The user lives in Hamburg.", [])),
            decision=lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]},
        )
        await read(client, "I live in Munich.", "one")
        await read(client, "I live in Hamburg now.", "two")
        assert await triples(dsn, client) == []
        assert await triples(dsn, client, ended=True) == [("ana", "lives_in", "Munich")]

    async def test_what_was_merged_holds_until_the_merged_memory_goes(
        self, client, worker, chat, dsn, model_runtime
    ):
        liked = [
            (f"The user likes {one}.", [("user", "person", "likes", one, "thing")])
            for one in ("tea", "cake")
        ]
        whole = "The user likes tea, cake and scones."

        def merges(statement, near):
            if "scones" not in str(statement):
                return {"event": "ADD"}
            ids = [one["id"] for one in near]
            return {"event": "MERGE", "memories": ids, "content": whole}

        answering(chat, telling(*liked), telling(("The user likes scones.", [])), decision=merges)
        await read(client, "I like tea. I like cake.", "one")
        await read(client, "I like scones.", "two")
        await refreshed(client, model_runtime, dsn, client.tenant_id)
        both = {("ana", "likes", "tea"), ("ana", "likes", "cake")}
        assert await known(client) == both
        assert await names(client) == {"ana", "tea", "cake"}

        [row] = await every_page(client, "/memories", user_id="ana", status="active")
        assert row["content"] == whole
        gone = await client.delete(f"/memories/{row['memory_id']}", params={"hard": True})
        assert gone.is_success, gone.text
        await refreshed(client, model_runtime, dsn, client.tenant_id)
        assert await known(client) == set()
        assert await known(client, include_closed=True) == both


async def test_a_memory_mentions_whom_the_graph_knows(client, worker, chat, dsn):
    answering(
        chat,
        telling(*SENTENCES[1:]),
        telling(("用户周五和张教授开会。", []), type="event"),
    )
    await read(client, SAID, "one")
    job = await read(client, "我周五和张教授开会。", "two")

    rows = await execute(
        dsn,
        "SELECT name FROM graph_mentions JOIN graph_entities USING (tenant_id, entity_id) "
        "WHERE tenant_id = $1 AND memory_id = $2",
        client.tenant_id,
        job["result"]["memory_ids"][0],
    )
    assert [row["name"] for row in rows] == ["张教授"]
