"""Long messages have pieces behind them: made with the append, in a job, or of what is stored."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from alembic import command
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.builders.factory import Factory
from app.conversation.messages.jobs import MessageBackfill
from app.conversation.messages.message_index import INDEXED_AT_ONCE
from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.identity.usage.ledger import EmbeddingLedger
from app.language.text.pieces import piece_ends
from app.language.text.terms import ANALYSER_VERSION
from app.memory.memories.backfill import ReembedService
from app.platform.database.migrate import alembic_config, upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.exports.exports_support import exported, imported, rows_in, send, with_row
from tests.support.api import append, every_page, execute, fields, ok, problem
from tests.support.databases import migrated_database, new_database, served
from tests.support.excerpts import context, excerpt_lines, opened, said
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import USAGE_FLUSH, client_of, service
from tests.support.tenants import Caller, make_tenant
from tests.support.working import over, working

LOCAL = "wordllama/l2_supercat:256"
REMOTE = "openai/alpha:64"

SHORT = "My daughter has started to play the piano."
LONG = (
    "My sister has a bakery in the old town, where she bakes rye bread and poppy seed cakes. "
    "The ferry to the cabin leaves Lindau at nine and takes forty minutes in calm weather. "
    "Our dentist has moved to the second floor of the new house behind the railway station. "
    "In winter we heat the kitchen with beech wood that a farmer brings on his small tractor."
)
CHINESE = (
    "我上周三搬到了慕尼黑，住在城北的一个小公寓里，房租每个月一千二百欧元。"
    "去小屋的渡轮早上九点从林道出发，天气好的时候要四十分钟才能到对岸的码头。"
    "我们的牙医搬到了火车站后面那栋新楼的二层，预约要提前两个星期打电话才行。"
)
MIXED = f"{LONG[:180]} {CHINESE[:72]} We met at the river."
CODE = "How is this?\n```python\n" + "".join(
    f"def step_{number}(parcel: Parcel) -> int:\n    return weigh(parcel) + {number}\n"
    for number in range(12)
) + "```\n"  # fmt: skip
SPARSE = "{1:1}/1000000000"
QUERY = "When does the ferry to the cabin leave?"

PIECES = """
SELECT content, states_wish, piece_ends AS ends, cardinality(piece_terms) AS terms,
    cardinality(piece_term_counts) AS counts, cardinality(piece_embeddings) AS vectors,
    CAST(piece_term_counts AS text) AS words, embedding_model AS model
FROM messages WHERE tenant_id = $1 ORDER BY session_id, sequence_no
"""

# As the release before pieces left a message.
WITHOUT = (
    "UPDATE messages SET states_wish = NULL, piece_ends = NULL, piece_terms = NULL, "
    "piece_term_counts = NULL, piece_embeddings = NULL, analyser = NULL, embedding = NULL, "
    "embedding_model = NULL WHERE tenant_id = $1"
)


async def stored(dsn: str, caller: Caller) -> list[dict[str, Any]]:
    return [dict(row) for row in await execute(dsn, PIECES, caller.tenant_id)]


def whole(row: dict[str, Any]) -> bool:
    """Whether a row has words, a count and a vector for each of its pieces."""
    ends = row["ends"]
    expected = piece_ends(row["content"].strip())
    if len(expected) == 1:
        return [row["ends"], row["terms"], row["counts"], row["vectors"]] == [None] * 4
    return ends == expected and row["terms"] == row["counts"] == row["vectors"] == len(ends)


class TestAppend:
    @pytest.mark.parametrize(
        ("text", "several"),
        [
            ("word " * 30, False),
            ("word " * 46, True),
            (SHORT, False),
            (LONG, True),
            (CHINESE, True),
            (MIXED, True),
            (CODE, True),
            ("x", False),
        ],
    )
    async def test_a_text_of_several_pieces_has_them_at_once(
        self, client: AsyncClient, acme: Caller, dsn: str, text: str, several: bool
    ) -> None:
        await append(client, "talk", text)

        [row] = await stored(dsn, acme)
        assert whole(row)
        assert (row["ends"] is not None) == several
        assert row["model"] == LOCAL

    async def test_calls_of_tools_and_hidden_messages_have_none(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        await append(
            client,
            "talk",
            said("user", LONG, metadata={"hidden": True}),
            said("assistant", LONG, tool_calls=[call]),
            said("tool", LONG, tool_call_id="c1"),
        )

        *none, result = await stored(dsn, acme)
        for row in none:
            assert {**row, "content": None} == dict.fromkeys(row)
        # A search may ask for results of tools.
        assert whole(result)

    async def test_a_wish_is_noted(self, client: AsyncClient, acme: Caller, dsn: str) -> None:
        await append(client, "talk", "Please always answer in French.", SHORT)

        assert [row["states_wish"] for row in await stored(dsn, acme)] == [True, False]

    @pytest.mark.parametrize(
        ("text", "query", "words"),
        [
            (f"{LONG} {SHORT} " * 3, QUERY, "The ferry to the cabin"),
            (CHINESE, "去小屋的渡轮几点出发？", "去小屋的渡轮"),
            (CODE, "What does step_7 return?", "def step_7("),
        ],
    )
    async def test_the_piece_that_fits_is_shown(
        self, client: AsyncClient, text: str, query: str, words: str
    ) -> None:
        await append(client, "talk", text)
        await opened(client)

        answer = await context(client, query=query, excerpts={"tokens": 190, "limit": 1})

        [used] = answer["used_excerpts"]
        assert used["of_pieces"] > len(used["pieces"])
        assert used["similarity"] > 0
        assert any(words in line for line in excerpt_lines(answer)[1:])


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(autouse=True)
def well(provider: OpenAIServer) -> None:
    provider.reset()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far_dsn(postgres: EmbeddedPostgres) -> str:
    return await migrated_database(postgres, "pieces")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far_runtime(far_dsn: str, provider: OpenAIServer) -> AsyncIterator[Runtime]:
    async with open_runtime(far_settings(provider), served(far_dsn), usage_flush=USAGE_FLUSH) as at:
        yield at


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far(far_dsn: str, provider: OpenAIServer) -> AsyncIterator[FastAPI]:
    """A service whose embedder is at the provider."""
    async with service(far_dsn, **remote(provider)) as app:
        yield app


@pytest_asyncio.fixture(loop_scope="session")
async def ours(far_runtime: Runtime) -> Caller:
    return await make_tenant(far_runtime)


@pytest_asyncio.fixture(loop_scope="session")
async def ana(far: FastAPI, ours: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(far, ours.key) as opened_client:
        yield opened_client


def remote(provider: OpenAIServer) -> dict[str, Any]:
    return {
        "openai_base_url": provider.base_url,
        "embedding_model": "openai/alpha",
        "embedding_dim": 64,
        "model_retries": 0,
        "model_timeout_seconds": 60,
    }


def far_settings(provider: OpenAIServer) -> Settings:
    return Settings(_env_file=None, **remote(provider))


class TestLater:
    async def test_the_job_embeds_message_and_pieces_in_one_call(
        self,
        ana: AsyncClient,
        ours: Caller,
        far_runtime: Runtime,
        far_dsn: str,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "talk", LONG, SHORT)
        before = await stored(far_dsn, ours)
        assert [(row["terms"], row["vectors"]) for row in before] == [(4, None), (None, None)]
        assert provider.requests == []
        # Found by its words until then, in pieces.
        await opened(ana)
        early = await context(ana, query=QUERY, excerpts={"tokens": 120})
        assert "The ferry to the cabin" in excerpt_lines(early)[1]
        assert early["used_excerpts"][0]["similarity"] is None

        provider.requests.clear()
        async with working(far_runtime, far_dsn):
            await indexed(ana)

        after = await stored(far_dsn, ours)
        assert [row["vectors"] for row in after] == [4, None]
        assert {row["model"] for row in after} == {REMOTE}
        assert provider.batch_sizes == [1 + 4 + 1]

    async def test_what_is_over_the_bound_of_a_batch_is_read_by_the_job(
        self, ana: AsyncClient, ours: Caller, far_runtime: Runtime, far_dsn: str
    ) -> None:
        await append(ana, "talk", "word " * (INDEXED_AT_ONCE // 5), LONG)
        assert [row["ends"] is None for row in await stored(far_dsn, ours)] == [False, True]

        async with working(far_runtime, far_dsn):
            await indexed(ana)

        assert all(whole(row) for row in await stored(far_dsn, ours))

    async def test_reembedding_makes_pieces_too(
        self,
        ana: AsyncClient,
        ours: Caller,
        far_runtime: Runtime,
        far_dsn: str,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "talk", LONG, SHORT, CHINESE)
        await execute(far_dsn, WITHOUT, ours.tenant_id)
        ledger = EmbeddingLedger(far_runtime.database)
        reembedding = ReembedService(far_runtime.database, far_runtime.catalogue, ledger)

        plan = await reembedding.plan(ours.tenant_id)
        moved = await reembedding.reembed(ours.tenant_id, plan, batch=2, moved=lambda _: None)

        assert (plan.waiting, moved) == (3, 3)
        rows = await stored(far_dsn, ours)
        assert all(whole(row) for row in rows)
        assert {row["model"] for row in rows} == {REMOTE}
        assert (await reembedding.plan(ours.tenant_id)).waiting == 0


async def indexed(client: AsyncClient) -> None:
    """Wait until the session's messages are embedded."""
    [job, *_] = await every_page(client, "/jobs", kind="index_messages", session_id="talk")
    assert (await over(client, job["job_id"]))["status"] == "succeeded"


OWNERS = """
WITH tenant AS (
    INSERT INTO tenants (tenant_id, tenant_name) VALUES ('t', 'T') RETURNING tenant_id
), agent AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name) SELECT tenant_id, 'a', 'A' FROM tenant
    RETURNING tenant_id, agent_id
), person AS (
    INSERT INTO users (tenant_id, user_id, agent_id) SELECT tenant_id, 'u', agent_id FROM agent
    RETURNING tenant_id, user_id, agent_id
)
INSERT INTO sessions (tenant_id, session_id, agent_id, user_id)
SELECT tenant_id, 's', agent_id, user_id FROM person
"""

MESSAGE = """
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    content_parts, sequence_no, terms, term_count, analyser, embedding, embedding_model)
VALUES ('t', $1, 's', 'u', 'a', 'user', $2, CAST($3 AS jsonb), $4, '{1:1}/1000000000', 1, $5,
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256')
"""


class TestOfBefore:
    async def test_messages_of_the_release_before_get_pieces_by_housekeeping(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "before_pieces")
        await asyncio.to_thread(command.upgrade, alembic_config(dsn), "initial_schema")
        await execute(dsn, OWNERS)
        parts = json.dumps([{"type": "text", "text": LONG}])
        told = [(LONG, None), (CHINESE, None), (SHORT, None), ("I prefer tea.", None), ("", parts)]
        for number, (content, given) in enumerate(told, 1):
            await execute(dsn, MESSAGE, f"m{number}", content, given, number, ANALYSER_VERSION)
        await upgrade(dsn)
        # The release before still serves, and knows no pieces.
        await execute(dsn, MESSAGE, "m6", LONG, None, 6, ANALYSER_VERSION)

        async with open_runtime(Settings(_env_file=None), served(dsn)) as runtime:
            house = Housekeeping(
                runtime.database,
                Retention(deleted=timedelta(days=9)),
                messages=Factory(runtime).get(MessageBackfill),
            )
            await house.run("t")

        rows = await stored(dsn, Caller("t", "", ""))
        assert all(whole(row) for row in rows[:4])
        assert [row["vectors"] for row in rows] == [4, 3, None, None, 4, 4]
        assert [row["states_wish"] for row in rows] == [False] * 3 + [True, False, False]
        # What has one piece keeps the vector it had, which a provider may have been paid for.
        kept = "SELECT message_id FROM messages WHERE CAST(embedding AS text) LIKE '[0.0625,%'"
        assert {row["message_id"] for row in await execute(dsn, kept)} == {"m3", "m4"}


class TestExports:
    @pytest.mark.parametrize("vectors", [True, False])
    async def test_pieces_come_back_with_an_import(
        self,
        client: AsyncClient,
        stranger: AsyncClient,
        runtime: Runtime,
        acme: Caller,
        other: Caller,
        dsn: str,
        vectors: bool,
    ) -> None:
        await append(client, "talk", LONG, SHORT, CHINESE, "Please always answer in French.")
        before = await stored(dsn, acme)

        await imported(stranger, await exported(client, vectors=vectors))

        after = await stored(dsn, other)
        if not vectors:
            assert [row["vectors"] for row in after] == [None] * 4
            await reembed(runtime, other)
            after = await stored(dsn, other)
        assert after == before
        await opened(stranger)
        answer = await context(stranger, query=QUERY, excerpts={"tokens": 120, "limit": 1})
        assert "The ferry to the cabin" in excerpt_lines(answer)[1]

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"piece_ends": None}, ["piece_terms", "piece_term_counts", "piece_embeddings"]),
            ({"piece_ends": [9, 3, -2, 1]}, ["piece_ends"]),
            ({"piece_ends": [9, 20, 20, 30]}, ["piece_ends"]),
            ({"piece_ends": [0, 9, 20, 30]}, ["piece_ends"]),
            ({"piece_terms": [SPARSE]}, ["piece_terms"]),
            ({"piece_terms": None}, ["piece_terms"]),
            ({"piece_terms": ["{1:1}/7"] * 4}, ["piece_terms"]),
            ({"piece_terms": [*[SPARSE] * 3, "{1:1}/7"]}, ["piece_terms"]),
            ({"terms": "{1:1}/7"}, ["terms"]),
            ({"piece_term_counts": [1, 2, 3]}, ["piece_term_counts"]),
            ({"piece_term_counts": None}, ["piece_term_counts"]),
            ({"piece_embeddings": ["[1]"]}, ["piece_embeddings", "piece_embeddings"]),
            ({"piece_embeddings": ["[1,2]"] * 4}, ["piece_embeddings"]),
            ({"piece_embeddings": ["[1,2]"] * 4, "embedding": None}, ["piece_embeddings"]),
        ],
    )
    async def test_pieces_that_no_search_could_read_are_refused_by_name(
        self,
        client: AsyncClient,
        stranger: AsyncClient,
        changes: dict[str, Any],
        named: list[str],
    ) -> None:
        answer, row = await changed(client, stranger, **changes)

        found = fields(problem(answer, 422, "invalid_import"))
        assert found == [f"{row}.{name}" for name in named]
        assert rows_in(await exported(stranger)) == []

    @pytest.mark.parametrize("count", [0, 1])
    async def test_fewer_than_two_pieces_are_refused(
        self, client: AsyncClient, stranger: AsyncClient, count: int
    ) -> None:
        answer, row = await changed(client, stranger, **pieces(count))

        found = fields(problem(answer, 422, "invalid_import"))
        assert found == [f"{row}.piece_ends"]

    async def test_the_least_pieces_that_are_taken_are_shown(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        answer, _ = await changed(client, stranger, **pieces(2))

        ok(answer)
        await opened(stranger)
        shown = await context(stranger, query=QUERY)
        assert LONG[:2] in excerpt_lines(shown)[1]


async def changed(
    client: AsyncClient, stranger: AsyncClient, **changes: Any
) -> tuple[Response, str]:
    """What an import answers in which the only message is changed, and where that is named."""
    await append(client, "talk", LONG)
    lines = await exported(client)
    [at] = [at for at, line in enumerate(lines) if b'"type":"message"' in line]
    [_, lines[at]] = with_row("message", lines, **changes)
    return await send(stranger, lines[:-1]), f"body.{at + 1}.row"


def pieces(count: int) -> dict[str, Any]:
    """Columns of a message of so many pieces, the last of one character."""
    return {
        "piece_ends": list(range(1, count + 1)),
        "piece_terms": [SPARSE] * count,
        "piece_term_counts": [1] * count,
        "piece_embeddings": None,
    }


async def reembed(runtime: Runtime, caller: Caller) -> None:
    ledger = EmbeddingLedger(runtime.database)
    reembedding = ReembedService(runtime.database, runtime.catalogue, ledger)
    plan = await reembedding.plan(caller.tenant_id)
    await reembedding.reembed(caller.tenant_id, plan, batch=10, moved=lambda _: None)
