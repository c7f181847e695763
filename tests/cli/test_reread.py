"""`kemem reread` beside a running service: what it shows, and what it leaves when it is killed."""

import asyncio
import signal
import subprocess

import asyncpg
import pytest
from cli_support import KEMEM, Service, environment, kemem
from typer.testing import CliRunner

from app.cli.main import cli
from app.platform.embedded.attachment import attach

SESSIONS = 40
CITIES = ("Lisbon", "Porto", "Faro", "Braga", "Munich", "Hamburg", "Bremen", "Kiel")


async def query(service: Service, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect((await attach(service.data_dir)).migration)
    try:
        await connection.execute("SET ROLE kemem_owner")
        return await connection.fetch(statement)
    finally:
        await connection.close()


REREAD = (
    "SELECT session_id, count(*) FROM extraction_runs WHERE trigger = 'reread' "
    "AND status = 'committed' GROUP BY session_id"
)
ACTIVE = (
    "SELECT user_id, content, metadata->>'extractor' AS extractor FROM memories "
    "WHERE status = 'active' ORDER BY user_id, content"
)


@pytest.fixture
async def read_before(service: Service) -> None:
    """Sessions of as many users, as an older reader left them."""
    with service.client() as client:
        for number in range(SESSIONS):
            said = f"My name is Ana and I live in {CITIES[number % len(CITIES)]}."
            body = {"user_id": f"u{number}", "messages": [{"role": "user", "content": said}]}
            assert client.post(f"/sessions/s{number}/messages", json=body).is_success
            done = client.post(f"/sessions/s{number}/extract", json={"wait": True})
            assert done.status_code == 200, done.text
    await query(service, "UPDATE extraction_runs SET extractor = 'rules/0'")
    await query(
        service, """UPDATE memories SET metadata = metadata || '{"extractor": "rules/0"}'"""
    )


def test_choice_of_a_user_needs_a_tenant() -> None:
    done = CliRunner().invoke(cli, ["reread", "--user", "ana"])

    assert done.exit_code == 2
    assert "--tenant" in done.stderr


def test_model_that_reads_is_not_passed_over() -> None:
    env = {"MEMORY_EXTRACTION_MODEL": "openai/x", "OPENAI_BASE_URL": "http://127.0.0.1:1"}
    done = CliRunner().invoke(cli, ["reread"], env=env)

    assert done.exit_code == 1
    assert "read by openai/x here" in done.stderr
    assert "MEMORY_EXTRACTION_MODEL=rules" in done.stderr


@pytest.mark.slow
async def test_killed_command_goes_on_where_it_was(service: Service, read_before: None) -> None:
    before = await query(service, ACTIVE)
    assert {row["extractor"] for row in before} == {"rules/0"}
    where = ("--data-dir", service.data_dir)
    shown = kemem("reread", "--dry-run", *where, cwd=service.data_dir.parent)
    assert shown.returncode == 0, shown.stderr
    assert f"  - {before[0]['content']}" in shown.stdout
    assert "The keyless reader of this release is rules/" in shown.stdout
    assert f"would be archived was made {len(before)} by rules/0." in shown.stdout
    assert await query(service, ACTIVE) == before

    process = await asyncio.create_subprocess_exec(
        *KEMEM, "reread", *map(str, where), cwd=service.data_dir.parent, env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while len(await query(service, REREAD)) < 3:
            assert process.returncode is None, "it ended before it could be killed"
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    half = len(await query(service, REREAD))
    assert 3 <= half < SESSIONS
    done = kemem("reread", *where, cwd=service.data_dir.parent)
    assert done.returncode == 0, done.stderr
    assert f" {SESSIONS - half} " in done.stdout

    assert {row["count"] for row in await query(service, REREAD)} == {1}
    after = await query(service, ACTIVE)
    assert "rules/0" not in {row["extractor"] for row in after}
    assert {row["user_id"] for row in after} == {row["user_id"] for row in before}
    assert len(set(map(tuple, after))) == len(after)
    again = kemem("reread", *where, cwd=service.data_dir.parent)
    assert "Every conversation was read" in again.stdout
    assert await query(service, ACTIVE) == after
