"""What saves and appends read, with the plans that their connections keep."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pytest
import pytest_asyncio
from pgvector import Vector
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.append_repository import COLUMNS, AppendRepository, Mentioned
from app.conversation.sessions.repository import Participants
from app.identity.tenants.access import Access
from app.memory.memories.candidates import SaveCandidate
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.save_repository import SaveRepository
from app.platform.database.engine import driver_of
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.orders import Order
from app.settings import Settings
from tests.support.patience import PATIENCE
from tests.support.plans import (
    PEOPLE,
    Crowd,
    filled_crowd,
    generic_plans,
    nodes,
)

MODEL: Final = "wordllama/l2_supercat:256"
MEMORIES: Final = 20
"""Of each user."""

CROWD: Final = f"""{PEOPLE}, talks AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no)
    SELECT $1, user_id || '-talk' || n, user_id, agent_id, 20
    FROM crowd, generate_series(1, 2) AS n RETURNING session_id, user_id, agent_id
), said AS (
    INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
        sequence_no)
    SELECT $1, session_id || '/' || n, session_id, user_id, agent_id, 'user', 'x', n
    FROM talks, generate_series(1, 20) AS n
), ordered AS (
    INSERT INTO jobs (tenant_id, job_id, kind, key, session_id, due_at)
    SELECT $1, 'job-' || session_id, 'extract', session_id, session_id, now() FROM talks
)
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding, embedding_model)
SELECT $1, user_id || '/' || n, user_id, 'user', user_id, 'x',
    sha256(convert_to(user_id || n, 'UTF8')), 'fact', 'long', 'user', 1, 'members',
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256'
FROM crowd, generate_series(1, CAST($2 AS int)) AS n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["analysed", "new"])
async def crowded(
    postgres: EmbeddedPostgres, settings: Settings, request: pytest.FixtureRequest
) -> AsyncIterator[Crowd]:
    """A tenant with 200 users, 4,000 memories, and 8,000 messages in 400 sessions."""
    known = ("agents", "users", "sessions", "messages", "memories", "jobs")
    tables = known if request.param == "analysed" else ()
    name = f"hot_plans_{request.param}"
    async with filled_crowd(postgres, settings, name, tables, CROWD, MEMORIES) as crowd:
        yield crowd


async def overhear(db: AsyncSession) -> asyncio.Queue[Any]:
    """What of the tenant's is read and written from now on, with vectors as numbers."""
    sent: asyncio.Queue[Any] = asyncio.Queue()

    def note(query: Any) -> None:
        # The driver itself asks for types that it meets for the first time.
        if "tenant_id" in query.query:
            sent.put_nowait((query.query, tuple(map(_read, query.args))))

    (await driver_of(db)).add_query_logger(note)
    return sent


async def plans_of(db: AsyncSession, sent: asyncio.Queue[Any], count: int) -> list[dict[str, Any]]:
    """The plans of the first `count` statements overheard."""
    async with asyncio.timeout(PATIENCE):
        # The driver tells of a statement when the loop has turned.
        statements = [await sent.get() for _ in range(count)]
    return await generic_plans(db, statements)


def _read(value: Any) -> Any:
    """A parameter with its vectors as numbers; hashes have 32 bytes."""
    if isinstance(value, list):
        return list(map(_read, value))
    if isinstance(value, bytes) and len(value) > 32:
        return Vector.from_binary(value).to_numpy()
    return value


def reads(plan: dict[str, Any]) -> dict[str, float]:
    """By table, how many rows are looked at; none may be read from end to end."""
    read: dict[str, float] = {}
    for node in nodes(plan):
        assert node["Node Type"] != "Seq Scan", node
        table = node.get("Relation Name")
        if table is not None and "Actual Rows" in node and node["Node Type"] != "ModifyTable":
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            read[table] = read.get(table, 0) + rows * node["Actual Loops"]
    return read


async def test_a_save_compares_with_the_memories_of_its_bucket_alone(crowded: Crowd) -> None:
    owner = MemoryOwner("user", "agent7-user3", "agent7-user3", None, None, None)
    candidate = SaveCandidate(0, "x", {}, content_hash=bytes(32), vector=np.full(256, 0.0625))
    async with crowded.runtime.database.begin(crowded.tenant_id, hot=True) as db:
        sent = await overhear(db)
        repository = SaveRepository(db, Access(crowded.tenant_id))
        stored = await repository.read(owner, [candidate], MODEL, [0.9])
        [plan] = await plans_of(db, sent, 1)

    read = reads(plan)
    assert stored.near
    assert stored.owner_is_there
    assert MEMORIES <= read.pop("memories") <= 2 * MEMORIES
    assert max(read.values()) <= 1, read


async def test_an_append_reads_its_own_session_alone(crowded: Crowd) -> None:
    session_id = "agent7-user3-talk1"
    asked = Mentioned([f"{session_id}/3"], [f"{session_id}/4"], ["call"])
    extract = Order(
        "extract", session_id, session_id=session_id, user_id="agent7-user3", creator="key",
        signals=frozenset({"goal"}), delay=timedelta(seconds=30),
    )  # fmt: skip
    async with crowded.runtime.database.begin(crowded.tenant_id, hot=True) as db:
        sent = await overhear(db)
        repository = AppendRepository(db, Access(crowded.tenant_id))
        session = await repository.open(
            session_id, Participants(None, None, None), asked, create=False, creator="key"
        )
        row = dict.fromkeys(COLUMNS) | {
            "message_id": "new", "role": "user", "content": "x", "content_type": "text",
            "metadata": {}, "captured": True, "token_count": 1,
            "sequence_no": session.last_sequence_no + 1, "create_time": session.now,
        }  # fmt: skip
        session.last_sequence_no += 1
        session.last_message_time = session.now
        await repository.add(session, [row], [extract])
        opening, adding = await plans_of(db, sent, 2)

    read = reads(opening)
    # The newest message, those that are named, and the newest that may have called a tool.
    assert read.pop("messages") <= 3 + 20
    # The session as it is locked, and as it was when the statement began.
    assert max(read.values()) <= 2, read
    read = reads(adding)
    assert max(read.values()) <= 2, read
