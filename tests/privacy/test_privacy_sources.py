"""What stays when its source is deleted says so: files of projects and agents, and sessions."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, execute, ok, problem, save
from tests.support.working import extracted, working

SAID = "我搬到慕尼黑了。"


async def people(client: AsyncClient) -> None:
    """Ana and Ben, who share a project, and an agent that neither is at home with."""
    for user in ("ana", "ben"):
        ok(await client.post("/users", json={"user_id": user}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.post("/agents", json={"agent_id": "coach", "agent_name": "Coach"}), 201)


async def uploaded(client: AsyncClient, folder_id: str, **owner: str) -> str:
    """A folder with one file; the file's id."""
    body = {"folder_id": folder_id, "folder_name": folder_id} | owner
    ok(await client.post("/folders", json=body), 201)
    upload = await client.post(
        f"/folders/{folder_id}/files", params={"file_name": "a.txt"}, content=folder_id.encode()
    )
    return str(ok(upload, 202)["file"]["file_id"])


async def read_from(client: AsyncClient, dsn: str, text: str, source_id: str, **place: Any) -> str:
    """A memory that was made of a file; its id."""
    saved = await save(client, text, **place)
    return await became(dsn, saved["memory_id"], "knowledge_base", source_id)


async def became(dsn: str, memory_id: str, source: str, source_id: str, *evidence: str) -> str:
    """Write where a memory is from, as the one that read it would have."""
    await execute(
        dsn,
        "UPDATE memories SET source = $2, source_id = $3, evidence = $4 WHERE memory_id = $1",
        memory_id, source, source_id, list(evidence),
    )  # fmt: skip
    return memory_id


async def without_source(client: AsyncClient, *memory_ids: str) -> list[bool]:
    """Whether each memory says that its source is gone."""
    rows = [ok(await client.get(f"/memories/{one}")) for one in memory_ids]
    return [row["source_deleted_at"] is not None for row in rows]


@pytest.mark.parametrize(
    ("owner", "path"),
    [
        ({"scope": "project", "project_id": "apollo"}, "/projects/apollo"),
        ({"scope": "agent", "agent_id": "coach"}, "/agents/coach"),
    ],
)
async def test_what_was_read_from_the_files_of_what_goes_says_so_elsewhere(
    client: AsyncClient, stranger: AsyncClient, dsn: str, owner: dict[str, str], path: str
) -> None:
    await people(client)
    gone = await uploaded(client, "shelf", **owner)
    left = await uploaded(client, "mine", scope="user", user_id="ben")
    mine = await read_from(client, dsn, "The deadline is in May.", gone, user_id="ben")
    hers = await read_from(client, dsn, "截止日期是五月。", gone, user_id="ana")
    other = await read_from(client, dsn, "The rent is due in June.", left, user_id="ben")
    own = await save(client, "Ben likes maps very much.", user_id="ben")
    await became(dsn, own["memory_id"], "user", gone)
    ok(await stranger.post("/users", json={"user_id": "ana"}), 201)
    foreign = await read_from(stranger, dsn, "Their deadline is in May.", gone, user_id="ana")
    ids = (mine, hers, other, own["memory_id"])
    assert await without_source(client, *ids) == [False] * 4

    counted = ok(await client.delete(path, params={"dry_run": True}))
    assert await without_source(client, *ids) == [False] * 4
    receipt = ok(await client.delete(path, params={"confirm": True}))

    assert receipt["deleted"] == counted["deleted"]
    assert await without_source(client, *ids) == [True, True, False, False]
    assert await without_source(stranger, foreign) == [False]


async def test_what_it_was_read_for_goes_and_needs_no_source(client: AsyncClient, dsn: str) -> None:
    await people(client)
    file_id = await uploaded(client, "shelf", scope="project", project_id="apollo")
    shared = {"scope": "project", "project_id": "apollo"}
    one = await read_from(client, dsn, "Apollo ships in March.", file_id, **shared)

    ok(await client.delete("/projects/apollo", params={"confirm": True}))

    problem(await client.get(f"/memories/{one}"), 404, "memory_not_found")


async def heard(client: AsyncClient, dsn: str, text: str, session_id: str, *evidence: str) -> str:
    """A memory of Ana's as if a session had been read; its id."""
    saved = await save(client, text, session_id=session_id)
    return await became(dsn, saved["memory_id"], "ai", session_id, *evidence)


async def talk(client: AsyncClient, session_id: str, **more: Any) -> str:
    """A session of Ana's in which something is said; the message's id."""
    told = await append(client, session_id, SAID, **more)
    return str(told["messages"][0]["message_id"])


@pytest.mark.parametrize("path", ["/sessions/talk", "/agents/coach"])
async def test_what_was_extracted_from_the_messages_of_a_session_alone_says_so(
    client: AsyncClient, dsn: str, path: str
) -> None:
    await people(client)
    here = await talk(client, "talk", agent_id="coach")
    there = await talk(client, "chat")
    of_both = await heard(client, dsn, "She moved to Munich.", "talk", here, there)
    alone = await heard(client, dsn, "她搬到慕尼黑了。", "talk", here, "msg_long_gone")
    elsewhere = await heard(client, dsn, "The stove is broken.", "chat", there)
    # What a client saved and called a model's stands on no message, or on none of ours.
    without = await heard(client, dsn, "A horse in the garden.", "talk")
    foreign = await save(client, "A newt in the pond.", source="ai", source_id="thread-7")
    ids = (alone, of_both, elsewhere, without, foreign["memory_id"])

    ok(await client.delete(path, params={"confirm": True}))

    assert await without_source(client, *ids) == [True, False, False, False, False]


async def test_real_extraction_leaves_what_says_so(
    runtime: Runtime, client: AsyncClient, dsn: str
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    await append(client, "talk", "I live in Munich.", {"role": "assistant", "content": "I see."})
    async with working(runtime, dsn):
        await extracted(client, "talk")
    [row] = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
    assert row["evidence"]

    ok(await client.delete("/sessions/talk", params={"confirm": True}))

    assert await without_source(client, row["memory_id"]) == [True]
