"""A person with a word of their own in every text there is; erased, and looked for in every
column of the whole database.
"""

import hashlib
import hmac
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.privacy.privacy_support import OF_SESSIONS, OF_THE_USER, SECRET, fill, fill_window
from tests.support.api import execute, ok, problem, save
from tests.support.tenants import Caller

CHINESE = "桑给巴尔夜莺"
MARKS = (SECRET, CHINESE)

OF_ROOMS = {
    "graph_entities", "graph_aliases", "graph_relations", "graph_changes", "profiles",
    "profile_values", "profile_history", "folders", "files", "file_chunks", "passages",
}  # fmt: skip
"""Where `fill_tables` leaves words."""

EVERYWHERE = OF_SESSIONS | OF_THE_USER | OF_ROOMS | {
    "memories", "memory_history", "gate_decisions", "memory_feedback", "idempotency_keys", "jobs",
    "api_keys", "users",
}  # fmt: skip


def readings(held: bytes) -> Iterator[bytes]:
    """What bytes say as they are, and unpacked."""
    yield held
    with suppress(zlib.error):
        yield zlib.decompress(held)


def says(value: Any, words: str) -> bool:
    """Whether a value of any column says something, however it is packed."""
    if isinstance(value, list):
        return any(says(one, words) for one in value)
    if isinstance(value, bytes):
        return any(words.encode() in one for one in readings(value))
    text = str(value)
    # JSON may spell any letter by its number.
    return words in text or words.encode("unicode_escape").decode() in text


async def tables_that_say(dsn: str, tenant_id: str, words: str) -> set[str]:
    """Tables of the schema in which a row of any tenant says so, in any column."""
    names = await execute(
        dsn,
        "SELECT DISTINCT c.relname AS name FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE n.nspname = 'public' AND c.relkind = 'r' AND a.attname = 'tenant_id'",
    )
    found = set()
    for name in (row["name"] for row in names):
        columns = await execute(
            dsn,
            "SELECT attname, atttypid::regtype::text AS kind FROM pg_attribute "
            "WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped",
            name,
        )
        shown = ", ".join(
            row["attname"]
            if row["kind"] in {"bytea", "bytea[]"}
            else f'"{row["attname"]}"::text AS "{row["attname"]}"'
            for row in columns
        )
        rows = await execute(dsn, f'SELECT {shown} FROM "{name}" WHERE tenant_id = $1', tenant_id)
        if any(says(value, words) for row in rows for value in row.values()):
            found.add(name)
    return found


async def insert(dsn: str, table: str, **values: Any) -> None:
    columns = ", ".join(values)
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await execute(dsn, f"INSERT INTO {table} ({columns}) VALUES ({places})", *values.values())


async def fill_tables(dsn: str, caller: Caller, memory_id: str) -> None:
    """Rows of the graph, the profile and documents: Ana's, and what a project has of hers."""
    own = {"tenant_id": caller.tenant_id}
    placed = own | {"scope": "user", "scope_id": "ana", "user_id": "ana"}
    shared = own | {"scope": "project", "scope_id": "apollo", "project_id": "apollo"}
    for bucket, mark in ((placed, "u"), (shared | {"user_id": "ana"}, "p")):
        for number, words in enumerate(MARKS):
            await insert(
                dsn, "graph_entities", **bucket, entity_id=f"{mark}{number}", name=words,
                name_key=f"{words}{mark}", entity_type="animal",
            )  # fmt: skip
        await insert(
            dsn, "graph_aliases", **own, entity_id=f"{mark}0", alias=CHINESE, alias_key=SECRET
        )
        relation = {"relation": "sees", "confidence": 0.9, "reason": f"{SECRET} {CHINESE}"}
        await insert(
            dsn, "graph_relations", **bucket, **relation, relation_id=f"r{mark}", version=1,
            source_id=f"{mark}0", destination_id=f"{mark}1", memory_ids=[memory_id],
        )  # fmt: skip
        await insert(dsn, "graph_mentions", **own, memory_id=memory_id, entity_id=f"{mark}0")
        await insert(
            dsn, "graph_changes", **bucket, change_id=f"c{mark}", event="MERGE",
            entity_ids=[f"{mark}0"], before=f'{{"name": "{SECRET}"}}',
            after=f'{{"name": "{CHINESE}"}}',
        )  # fmt: skip
    # The project's own: one relation stands on what she said, one does not.
    for number in (0, 1):
        await insert(
            dsn, "graph_entities", **shared, entity_id=f"team{number}", name=f"Team {number}",
            name_key=f"team {number}", entity_type="team",
        )  # fmt: skip
    for number, ids, reason in ((0, [memory_id], SECRET), (1, ["mem_other"], "Said by Ben.")):
        await insert(
            dsn, "graph_relations", **shared, relation=f"knows_{number}", confidence=0.9,
            relation_id=f"shared{number}", version=1, source_id="team0",
            destination_id="team1", memory_ids=ids, reason=reason,
        )  # fmt: skip
    await fill_profiles(dsn, own, memory_id)
    await insert(dsn, "folders", **placed, folder_id="fol", folder_name=CHINESE, description=SECRET)
    await insert(
        dsn, "files", **own, folder_id="fol", file_id="fil", file_name=f"{SECRET}{CHINESE}.txt",
        content_type="text/plain", size=1, sha256=b"",
    )  # fmt: skip
    content = zlib.compress(f"{SECRET} {CHINESE}".encode())
    await insert(dsn, "file_chunks", **own, file_id="fil", number=0, content=content)
    await insert(
        dsn, "passages", **own, folder_id="fol", file_id="fil", passage_id="pas",
        content=f"{SECRET} {CHINESE}",
    )  # fmt: skip
    await insert(
        dsn, "jobs", **own, job_id="job_ingest", kind="ingest", key="fil", status="dead",
        payload=f'{{"file_id": "fil", "note": "{SECRET} {CHINESE}"}}',
        finished_at=datetime.now(UTC),
    )  # fmt: skip


async def fill_profiles(dsn: str, own: dict[str, Any], memory_id: str) -> None:
    """Hers, and of the project a value that stands on what she said beside one that does not."""
    for owner, mark in (({"user_id": "ana"}, "u"), ({"project_id": "apollo"}, "p")):
        told = f"{SECRET} {CHINESE}" if mark == "u" else "Be brief."
        await insert(dsn, "profiles", **own, **owner, profile_id=f"pro{mark}", instructions=told)
        of_profile = own | {"profile_id": f"pro{mark}", "slot": "sections.work_context"}
        value = f'"{SECRET} {CHINESE}"'
        derived = {"origin": "derived", "memory_ids": [memory_id]}
        await insert(dsn, "profile_values", **of_profile, **derived, value=value)
        for number, (before, after) in enumerate(((None, value), (value, '"Short."'))):
            # The later line stands on something else, and still tells what there was.
            stands_on = [memory_id] if number == 0 else ["mem_other"]
            await insert(
                dsn, "profile_history", **of_profile, history_id=f"{mark}{number}", event="SET",
                before=before, after=after, origin="derived", memory_ids=stands_on, version=1,
            )  # fmt: skip
    await insert(
        dsn, "profile_values", **own, profile_id="prop", slot="slots.team", value='"Five people."',
        origin="derived", memory_ids=["mem_other"],
    )  # fmt: skip


async def fill_all(
    runtime: Runtime, client: AsyncClient, caller: Caller, dsn: str
) -> dict[str, Any]:
    """Everything of Ana's; her last saved memory."""
    words = f"{SECRET} {CHINESE}"
    body = {"user_id": "ana", "user_name": words, "profile": {"likes": words}}
    ok(await client.post("/users", json=body), 201)
    await fill(client)
    await fill_window(runtime, client, caller, dsn)
    project = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=project), 201)
    for place in ({}, {"project_id": "apollo", "scope": "project"}):
        saved = await save(client, f"她看见了{CHINESE}。", **place)
        path = f"/memories/{saved['memory_id']}"
        ok(await client.patch(path, json={"content": f"她常常看见{CHINESE}和{SECRET}。"}))
        comment = {"rating": "wrong", "comment": f"{SECRET} {CHINESE}"}
        ok(await client.post(f"{path}/feedback", json=comment), 201)
    said = {"role": "user", "content": f"我看见了{CHINESE}。"}
    body = {"user_id": "ana", "messages": [said]}
    ok(await client.post("/sessions/s9/messages", json=body), 201)
    asked = {"prompt": f"Look for {SECRET} {CHINESE}."}
    ok(await client.post("/sessions/s9/extract", json=asked), 202)
    key = {"key_name": f"{SECRET} {CHINESE}", "scopes": ["read"], "user_id": "ana"}
    ok(await client.post("/keys", json=key), 201)
    await fill_tables(dsn, caller, saved["memory_id"])
    return saved


async def test_nothing_in_the_whole_database_says_it(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await fill_all(runtime, client, acme, dsn)
    # A test that finds nothing before could find nothing ever.
    assert await tables_that_say(dsn, acme.tenant_id, SECRET) >= EVERYWHERE
    in_chinese = await tables_that_say(dsn, acme.tenant_id, CHINESE)
    assert in_chinese >= OF_ROOMS | {"memories", "memory_history", "messages", "memory_feedback"}
    counted = ok(await client.delete("/users/ana", params={"dry_run": True}))

    receipt = ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))

    assert receipt["deleted"] == counted["deleted"]
    for words in (*MARKS, "user:ana"):
        assert await tables_that_say(dsn, acme.tenant_id, words) == set()
    named = await execute(
        dsn,
        "SELECT count(*) FROM api_keys WHERE tenant_id = $1 AND user_id = 'ana'",
        acme.tenant_id,
    )
    assert named[0][0] == 0
    # What others said of the same project stays.
    [left] = await execute(
        dsn, "SELECT reason FROM graph_relations WHERE tenant_id = $1", acme.tenant_id
    )
    assert left["reason"] == "Said by Ben."
    [value] = await execute(
        dsn, "SELECT value FROM profile_values WHERE tenant_id = $1", acme.tenant_id
    )
    assert "Five people" in value["value"]


class TestReceipts:
    async def test_a_receipt_stays_that_names_nobody(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await fill(client)
        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))
        ok(await client.post("/users", json={"user_id": "ben"}), 201)
        ok(await client.delete("/users/ben"))

        found = ok(await client.get("/erasures", params={"kind": "user", "id": "ana"}))["items"]

        assert [one["erasure_id"] for one in found] == [receipt["erasure_id"]]
        assert found[0]["deleted"] == receipt["deleted"]
        assert "ana" not in str(found[0]).split("'deleted'")[0].replace("create", "")
        assert len(ok(await client.get("/erasures"))["items"]) == 2
        page = ok(await client.get("/erasures", params={"limit": 1}))
        rest = ok(await client.get("/erasures", params={"cursor": page["next_cursor"]}))
        assert [one["erasure_id"] for one in rest["items"]] == [receipt["erasure_id"]]
        assert ok(await stranger.get("/erasures"))["items"] == []

    async def test_one_person_is_another_at_every_tenant(
        self, client: AsyncClient, stranger: AsyncClient, acme: Caller
    ) -> None:
        hashes = []
        for caller in (client, client, stranger):
            ok(await caller.post("/users", json={"user_id": "ana"}), 201)
            ok(await caller.delete("/users/ana"))
            found = ok(await caller.get("/erasures", params={"kind": "user", "id": "ana"}))["items"]
            hashes.append(found[0]["subject_hash"])

        assert hashes[0] == hashes[1] != hashes[2]
        told = b"user\x1fana"
        assert hashes[0] == hmac.new(acme.tenant_id.encode(), told, "sha256").hexdigest()
        # A table of hashes of all likely ids, made beforehand, holds neither.
        assert hashlib.sha256(told).hexdigest() not in hashes

    async def test_a_dry_run_leaves_none(self, client: AsyncClient) -> None:
        await fill(client)

        counted = ok(await client.delete("/users/ana", params={"dry_run": True}))

        assert counted["erasure_id"] is None
        assert ok(await client.get("/erasures"))["items"] == []

    @pytest.mark.parametrize(
        ("path", "params"), [("/erasures", {"id": "ana"}), ("/erasures", {"kind": "tenant"})]
    )
    async def test_an_id_alone_says_nothing(
        self, client: AsyncClient, path: str, params: dict[str, str]
    ) -> None:
        problem(await client.get(path, params=params), 422, "invalid_request")

    async def test_half_an_erasure_is_none(self, client: AsyncClient) -> None:
        await fill(client)

        body = problem(
            await client.delete("/users/ana", params={"hard": False}), 422, "invalid_request"
        )

        assert body["errors"][0]["location"] == ["query", "hard"]
