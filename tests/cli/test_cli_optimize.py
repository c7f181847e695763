"""`kemem optimize` beside a running service: what it shows, and what it does."""

import asyncpg
import pytest
from cli_support import kemem

from app.platform.embedded.attachment import attach

pytestmark = pytest.mark.slow

FILL = """
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding, embedding_model)
SELECT 'default', 'mem_' || n, 'ana', 'user', 'ana', 'x', convert_to(n::text, 'UTF8'),
    'fact', 'long', 'user', 1.0, 'members', (
        SELECT array_agg(sin(n * 7919 + d * 104729)::float4 / 16) FROM generate_series(1, 768) AS d
    )::vector, 'test/long:768'
FROM generate_series(1, 2001) AS n
"""

SHRINK = """
DELETE FROM memories WHERE memory_id IN (SELECT 'mem_' || n FROM generate_series(701, 2001) AS n)
"""


@pytest.fixture(scope="module")
def variables():
    """Nothing keeps house: the command is to find everything undone."""
    return {"MEMORY_WORKER_ENABLED": "false"}


async def execute(service, statement):
    connection = await asyncpg.connect((await attach(service.data_dir)).migration)
    try:
        await connection.execute("SET ROLE kemem_owner")
        return await connection.fetch(statement)
    finally:
        await connection.close()


def optimize(service, *arguments):
    done = kemem(
        "optimize",
        *arguments,
        "--data-dir",
        service.data_dir,
        cwd=service.data_dir.parent,
    )
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


async def test_large_buckets_are_shown_and_coded_and_small_ones_lose_their_codes(service):
    with service.client() as client:
        body = {"messages": "She drinks tea.", "user_id": "ana", "infer": False}
        assert client.post("/memories", json=body).status_code == 201
    await execute(service, FILL)

    shown = optimize(service, "--dry-run")
    assert "2001 to be made" in shown
    assert not await execute(service, "SELECT 1 FROM memory_buckets")

    assert "2001 made" in optimize(service, "--tenant", "default")
    [row] = await execute(service, "SELECT count(code) AS codes FROM memories")
    assert row["codes"] == 2001
    again = optimize(service)
    assert "1.000 │ yes" in again

    await execute(service, SHRINK)
    assert "700 cleared" in optimize(service)
    assert "small" in optimize(service)
