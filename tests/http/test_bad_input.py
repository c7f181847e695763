"""Input nobody should send: each is a 4xx that names the field, and nothing is written."""

import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.platform.values.pagination import encode, note_list
from app.runtime import Runtime
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.world import World, build_world, rows_of

MESSAGE = {"role": "user", "content": "Hello."}
BODIES: dict[str, dict[str, Any]] = {
    "/agents": {"agent_name": "A"},
    "/blocks": {"label": "notes"},
    "/blocks/b/append": {"text": "She drinks tea."},
    "/blocks/b/replace": {"old": "tea", "new": "coffee"},
    "/blocks/b/insert": {"text": "She drinks tea."},
    "/users": {"user_id": "u"},
    "/projects": {"project_name": "P"},
    "/sessions": {"user_id": "u"},
    "/sessions/s/messages": {"user_id": "u", "messages": [MESSAGE]},
    "/sessions/s/messages/delete": {"oldest": 1},
    "/sessions/s/checkpoints": {"namespace": "planner"},
    "/sessions/s/approvals/c": {"decision": "approved"},
    "/messages/search": {"query": "tea", "user_id": "u"},
    "/memories": {"messages": "She drinks tea.", "user_id": "u", "infer": False},
    "/memories/validate": {"messages": "She drinks tea.", "user_id": "u"},
    "/memories/search": {"query": "tea", "user_id": "u"},
    "/memories/delete": {"user_id": "u", "confirm": True},
    "/memories/m/supersede": {"content": "She drinks tea."},
    "/memories?async=true": {"messages": "She drinks tea.", "user_id": "u"},
    "/memories/m/restore": {"history_id": "h"},
    "/memories/m/feedback": {"rating": "wrong"},
    "/sessions/s/context": {"query": "tea"},
    "/sessions/s/compact": {"force": True},
    "/users/u/memory-document": {"user": {"workContext": {"summary": "Pilot."}}},
    "/projects/p/transfer": {"to_user_id": "u"},
    "/folders": {"folder_name": "F", "scope": "user", "user_id": "u"},
    "/folders/f/passages": {"content": "She drinks tea."},
    "/passages/search": {"query": "tea", "user_id": "u"},
    "/files/f/extract": {"prompt": "Only prices."},
    "/graph/relations": {
        "source": "Ana",
        "relation": "lives_in",
        "destination": "Bonn",
        "user_id": "u",
    },
    "/graph/entities/e/aliases": {"alias": "Annie"},
    "/graph/entities/e/merge": {"entity_ids": ["other"]},
    "/graph/entities/e/split": {"name": "Another Ana"},
    "/forgetting/run": {"dry_run": True},
    "/sessions/s/extract": {"wait": False},
    "/webhooks": {"url": "https://kemem.invalid/hook"},
    "/keys": {"scopes": ["read"]},
}

FREE_TEXT = {
    "/blocks": ("label", "value", "description"),
    "/blocks/b/append": ("text",),
    "/blocks/b/replace": ("old", "new"),
    "/blocks/b/insert": ("text",),
    "/agents": ("agent_name", "agent_type", "description"),
    "/users": ("user_name", "user_type", "external_id"),
    "/projects": ("project_name", "description"),
    "/sessions": ("session_name", "session_type"),
    "/sessions/s/messages": ("content", "content_type", "tool_call_id", "name"),
    "/sessions/s/checkpoints": ("namespace", "source"),
    "/sessions/s/approvals/c": ("comment",),
    "/messages/search": ("query",),
    "/memories": ("messages", "source_error", "external_id"),
    "/memories/validate": ("messages",),
    "/memories/search": ("query",),
    "/memories/delete": ("reason",),
    "/memories/m/supersede": ("content", "reason"),
    "/memories?async=true": ("messages", "prompt"),
    "/memories/m/restore": ("reason",),
    "/memories/m/feedback": ("comment",),
    "/sessions/s/context": ("query",),
    "/users/u/memory-document": ("lastUpdated", "version"),
    "/folders": ("folder_name", "description", "folder_id"),
    "/folders/f/passages": ("content", "tags"),
    "/passages/search": ("query",),
    "/files/f/extract": ("prompt",),
    "/graph/relations": ("source", "destination", "relation", "source_type"),
    "/graph/entities/e/aliases": ("alias",),
    "/graph/entities/e/merge": ("reason",),
    "/graph/entities/e/split": ("name", "entity_type", "reason"),
    "/sessions/s/extract": ("prompt",),
    "/webhooks": ("url", "description"),
    "/keys": ("key_name",),
}
OBJECTS = {
    "/blocks": ("metadata",),
    "/agents": ("config",),
    "/users": ("profile",),
    "/projects": ("metadata",),
    "/sessions": ("context",),
    "/sessions/s/messages": ("metadata",),
    "/sessions/s/checkpoints": ("metadata",),
    "/sessions/s/approvals/c": ("arguments",),
    "/memories": ("metadata",),
    "/folders": ("metadata",),
    "/memories/m/supersede": ("metadata",),
    "/memories?async=true": ("metadata",),
}
IDS = {
    "/agents": ("agent_id",),
    "/blocks": ("block_id", "user_id", "agent_id"),
    "/users": ("user_id", "agent_id"),
    "/projects": ("project_id", "owner_id"),
    "/sessions": ("session_id", "user_id", "agent_id", "project_id"),
    "/sessions/s/messages": ("message_id", "parent_message_id"),
    "/sessions/s/checkpoints": ("parent_id",),
    "/memories": ("user_id", "agent_id", "session_id", "project_id", "source_id"),
    "/memories?async=true": ("user_id", "agent_id", "session_id", "project_id"),
    "/projects/p/transfer": ("to_user_id",),
    "/folders": ("folder_id", "user_id", "agent_id", "project_id"),
    "/passages/search": ("user_id", "agent_id", "project_id"),
    "/files/f/extract": ("user_id", "agent_id", "project_id"),
    "/graph/relations": ("user_id", "agent_id", "project_id", "source_id", "destination_id"),
    "/forgetting/run": ("agent_id",),
    "/memories/m/restore": ("history_id",),
    "/memories/search": ("user_id", "agent_id", "session_id", "run_id", "project_id"),
    "/memories/delete": ("user_id", "agent_id", "session_id", "run_id", "project_id"),
    "/keys": ("agent_id", "user_id"),
}
OWN_IDS = {
    "user_id", "agent_id", "project_id", "session_id", "run_id", "owner_id", "to_user_id",
}  # fmt: skip
"""In every script: see `test_caller_ids`."""
WORDS = {
    "/agents": ("status",),
    "/users": ("status",),
    "/sessions/s/messages": ("role",),
    "/sessions/s/approvals/c": ("decision",),
    "/memories": ("memory_type", "tier", "scope", "source", "visibility", "on_duplicate"),
    "/memories/search": ("memory_type", "tier", "scopes"),
    "/memories/delete": ("memory_type", "scope"),
    "/folders": ("scope",),
    "/files/f/extract": ("scope",),
    "/graph/relations": ("scope",),
    "/forgetting/run": ("steps", "eviction"),
    "/memories/m/supersede": ("memory_type",),
    "/memories/m/feedback": ("rating",),
    "/webhooks": ("events", "url"),
    "/keys": ("scopes",),
}
# A request without a body means the defaults.
WITHOUT_BODY = {"/sessions/s/extract", "/sessions/s/compact"}
# Reads, which nobody need ask for once only.
READS = {
    "/memories/validate", "/memories/search", "/messages/search", "/passages/search",
    "/sessions/s/context",
}  # fmt: skip

DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
TIMES = {
    "/memories": ("valid_from", "valid_to", "expires_at"),
    "/memories?async=true": ("expires_at",),
    "/graph/relations": ("valid_from", "valid_to"),
    "/memories/search": ("as_of", "known_at"),
    "/keys": ("expires_at",),
}


def pairs(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(path, field) for path, fields in table.items() for field in fields]


def with_field(path: str, field: str, value: Any) -> dict[str, Any]:
    """The body of `path` with one field replaced, in its message if that is where it lives."""
    body = BODIES[path]
    if path == "/sessions/s/messages":
        return body | {"messages": [MESSAGE | {field: value}]}
    return body | {field: value}


def named(response: Response, field: str, status: int = 422) -> None:
    """The answer is a problem document that names `field`."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert problem["code"]
    assert problem["request_id"] == response.headers["x-request-id"]
    parts = {part for error in problem["errors"] for part in error["location"]}
    assert field in parts, problem["errors"]


async def post(client: AsyncClient, path: str, body: Any) -> Response:
    """As a careless client writes it: NaN, lone surrogates and all."""
    return await client.post(
        path, content=json.dumps(body), headers={"Content-Type": "application/json"}
    )


@pytest.fixture(scope="module")
async def refusing(app: FastAPI, runtime: Runtime, dsn: str) -> AsyncIterator[AsyncClient]:
    """A client of a tenant in which nobody manages to write anything."""
    owner = await make_tenant(runtime)
    before = await rows_of(dsn, owner.tenant_id)
    async with client_of(app, owner.key) as client:
        yield client
    assert await rows_of(dsn, owner.tenant_id) == before


class TestRefused:
    @pytest.fixture
    def client(self, refusing: AsyncClient) -> AsyncClient:
        return refusing

    @for_each(("path", "field"), pairs(FREE_TEXT))
    @for_each("text", ["a\x00b", "a\ud800b", "\udfff"])
    async def test_text_that_cannot_be_stored(
        self, client: AsyncClient, path: str, field: str, text: str
    ) -> None:
        named(await post(client, path, with_field(path, field, text)), field)

    @for_each(("path", "field"), pairs(OBJECTS))
    @for_each(
        "value",
        [
            {"a": "\x00"},
            {"a": ["\ud800"]},
            {"\x00": 1},
            {"\ud800": 1},
            {"a": float("nan")},
            {"a": [float("inf")]},
            {"a": -float("inf")},
            {"a": 2**63},
            {"a": -(2**63) - 1},
            {"a": "x" * (64 * 1024)},
            {"a": [[] for _ in range(100_000)]},
            {"a": [None] * 100_000},
            {f"k{number}": 1 for number in range(101)},
            ["a"],
            "a",
        ],
    )  # fmt: skip
    async def test_objects_that_cannot_be_stored(
        self, client: AsyncClient, path: str, field: str, value: Any
    ) -> None:
        named(await post(client, path, with_field(path, field, value)), field)

    @for_each(("path", "field"), pairs(IDS))
    @for_each(
        "value",
        [
            "",
            "a/b",
            "x" * 65,
            "a\n",
            "a\x00",
            "a\ud800",
            " a",
            "..",
            "a\u200d",
            7,
            True,
            [],
        ],
    )
    async def test_ids_of_other_characters_or_lengths(
        self, client: AsyncClient, path: str, field: str, value: Any
    ) -> None:
        named(await post(client, path, with_field(path, field, value)), field)

    @for_each(("path", "field"), [pair for pair in pairs(IDS) if pair[1] not in OWN_IDS])
    @for_each("value", ["a b", "😀", "名", "-a", "a'b"])
    async def test_ids_of_what_is_no_subject_are_ascii(
        self, client: AsyncClient, path: str, field: str, value: str
    ) -> None:
        named(await post(client, path, with_field(path, field, value)), field)

    @for_each(("path", "field"), pairs(TIMES))
    @for_each(
        "value",
        [
            "2026-11-21", "2026-11-21T12:00:00", "yesterday", "", "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z", "2026-13-01T00:00:00Z", "2026-11-21T12:00:00+99:00",
            float("nan"), 10**30, "\ud800",
        ],
    )  # fmt: skip
    async def test_dates_without_a_zone_or_beyond_the_calendar(
        self, client: AsyncClient, path: str, field: str, value: Any
    ) -> None:
        named(await post(client, path, with_field(path, field, value)), field)

    @for_each(
        ("path", "field", "value"),
        [
            ("/memories", "confidence", float("nan")),
            ("/memories", "confidence", float("inf")),
            ("/memories", "confidence", 1.01),
            ("/memories", "confidence", -0.01),
            ("/memories/search", "threshold", float("nan")),
            ("/memories/search", "threshold", 2),
            ("/memories/search", "limit", 0),
            ("/memories/search", "limit", 101),
            ("/memories/search", "limit", 10**400),
            ("/memories/search", "filters", {"confidence": {"gte": float("nan")}}),
            ("/memories/search", "filters", {"confidence": {"gte": 10**400}}),
            ("/memories/search", "filters", {"content": {"eq": "\x00"}}),
            ("/memories/search", "filters", {"content": {"eq": "\ud800"}}),
            ("/memories/search", "filters", {"\ud800": 1}),
            ("/memories/search", "filters", {"use_count": {"gte": 2**63}}),
            ("/memories/search", "filters", {"create_time": {"gte": "0001-01-01T00:00:00+14:00"}}),
            ("/memories/delete", "filters", {"metadata.a\x00": "b"}),
            ("/sessions/s/messages/delete", "oldest", 0),
            ("/sessions/s/messages/delete", "oldest", 2**63),
            ("/sessions/s/messages/delete", "message_ids", []),
            ("/sessions/s/extract", "wait", None),
            ("/sessions/s/extract", "wait", 2),
            ("/sessions/s/extract", "wait", "soon"),
            ("/sessions/s/extract", "prompt", ""),
            ("/sessions/s/extract", "prompt", "x" * 8001),
            ("/memories?async=true", "prompt", "x" * 8001),
            ("/memories?async=true", "infer", "perhaps"),
            ("/memories/m/feedback", "comment", ""),
            ("/memories/m/feedback", "comment", "  "),
            ("/memories/m/feedback", "comment", "x" * 2001),
            ("/memories/m/restore", "reason", "x" * 20_000),
            ("/webhooks", "url", "ftp://kemem.invalid"),
            ("/webhooks", "url", "https://ana:secret@kemem.invalid"),
            ("/webhooks", "url", "https://kemem.invalid/#part"),
            ("/webhooks", "url", "https://kemem.invalid/" + "x" * 2000),
            ("/webhooks", "events", []),
            ("/webhooks", "events", ["memory.added"] * 21),
            ("/webhooks", "events", ["webhook.test"]),
            ("/webhooks", "enabled", "perhaps"),
            ("/keys", "scopes", []),
            ("/keys", "scopes", ["root"]),
        ],
    )
    async def test_values_out_of_bounds(
        self, client: AsyncClient, path: str, field: str, value: Any
    ) -> None:
        named(await post(client, path, BODIES[path] | {field: value}), field)

    @for_each(("path", "field"), pairs(WORDS))
    @for_each(
        "value",
        [{}, {"a": 1}, [], ["a"], 7, 1.5, True, "", "A", "\ud800", 10**400, DEEP],
    )
    async def test_words_that_are_none_of_ours(
        self, client: AsyncClient, path: str, field: str, value: Any
    ) -> None:
        named(await post(client, path, with_field(path, field, value)), field)

    @for_each("path", BODIES)
    @for_each("field", ["tenant_id", "extra", "\ud800", "\x00", "名"])
    async def test_unknown_fields(self, client: AsyncClient, path: str, field: str) -> None:
        response = await post(client, path, BODIES[path] | {field: 1})

        named(response, field if field != "\ud800" else "body")

    @for_each("path", BODIES)
    @for_each(
        "content",
        [b"", b"{", b"null", b"[]", b'"a"', b"\xff\xfe", b"{'a': 1}", b'{"a": 1} x', b"9" * 5000],
    )
    async def test_bodies_that_are_no_json_object(
        self, client: AsyncClient, path: str, content: bytes
    ) -> None:
        response = await client.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )

        if path in WITHOUT_BODY and content in {b"", b"null"}:
            assert (response.status_code, response.json()["code"]) == (404, "session_not_found")
        else:
            named(response, "body")

    @for_each("path", BODIES)
    @for_each("kind", ["text/plain", "application/x-www-form-urlencoded", "x"])
    async def test_bodies_of_another_kind(self, client: AsyncClient, path: str, kind: str) -> None:
        response = await client.post(
            path, content=json.dumps(BODIES[path]), headers={"Content-Type": kind}
        )

        named(response, "body")

    @for_each("levels", [9, 50, 300, 10_000])
    @for_each(
        ("path", "field"),
        [*pairs(OBJECTS), ("/memories/search", "filters"), ("/memories/delete", "filters")],
    )
    async def test_json_that_is_nested_too_deep(
        self, client: AsyncClient, path: str, field: str, levels: int
    ) -> None:
        inner = json.dumps(with_field(path, field, {"AND": "HERE"} if field == "filters" else "H"))
        deep = ('[{"AND":' if field == "filters" else '{"a":') * levels
        deep += '"x"' + ("}]" if field == "filters" else "}") * levels
        content = inner.replace('"HERE"' if field == "filters" else '"H"', deep)

        response = await client.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )

        # Python gives up on the whole body somewhere below a thousand levels.
        named(response, field if levels < 900 else "body")

    @for_each("path", BODIES)
    async def test_ten_megabytes_with_a_length(self, client: AsyncClient, path: str) -> None:
        response = await client.post(path, content=b'{"a": "' + b"x" * 10_000_000 + b'"}')

        named(response, "body", 413)
        assert response.json()["code"] == "body_too_large"

    @for_each("path", BODIES)
    async def test_ten_megabytes_in_chunks(self, client: AsyncClient, path: str) -> None:
        sent = 0

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(100):
                sent += 100_000
                yield b"x" * 100_000

        response = await client.post(path, content=chunks())

        named(response, "body", 413)
        assert sent < 10_000_000

    @for_each(
        ("path", "parameter"),
        [
            (path, parameter)
            for path in ("/agents", "/users", "/projects", "/sessions", "/memories", "/keys",
                         "/memories/decisions", "/jobs", "/extractions", "/webhooks")
            for parameter in ("limit=0", "limit=101", "limit=x", "limit=NaN", "limit=1e400",
                              "limit=" + "9" * 5000, "extra=1", "user=ana", "cursor=x",
                              "cursor=", "cursor=%00", "cursor=%F0%9F%98%80", "%00=1")
        ],
    )  # fmt: skip
    async def test_query_parameters(self, client: AsyncClient, path: str, parameter: str) -> None:
        response = await client.get(f"{path}?{parameter}")

        name = parameter.split("=", maxsplit=1)[0]
        named(response, name.replace("%00", "\x00"))

    @for_each(
        "query",
        [
            "user_id=a%2Fb", "user_id=", "status=none", "order=up", "filters=%7B", "filters=[]",
            "filters=%00", 'filters={"content":"%00"}', 'filters={"a":NaN}', "filters=1",
            "external_id=%00", "scope=tenant", "memory_type=secret", "filters=" + "[" * 7000,
            'filters={"use_count":{"gte":' + "9" * 5000 + "}}",
        ],
    )  # fmt: skip
    async def test_selections_of_memories(self, client: AsyncClient, query: str) -> None:
        response = await client.get(f"/memories?{query}")

        named(response, query.split("=", maxsplit=1)[0])

    @for_each(
        ("path", "query"),
        [
            ("/jobs", "status=none"), ("/jobs", "kind="), ("/jobs", "kind=" + "x" * 41),
            ("/jobs", "kind=%00"), ("/jobs", "user_id=a%2Fb"), ("/jobs", "session_id="),
            ("/extractions", "status=pending"), ("/extractions", "job_id=a%20b"),
            ("/extractions", "agent_id=%ED%A0%80"),
            ("/usage", "since=today"), ("/usage", "until=2026-13-01"), ("/usage", "since=%00"),
            ("/usage", "operation="), ("/usage", "model=%00"), ("/usage", "model=" + "x" * 256),
            ("/feedback/stats", "user_id=a%2Fb"), ("/feedback/stats", "rating=wrong"),
            ("/webhooks/w/deliveries", "status=none"),
            ("/webhooks/w/deliveries", "event_type=memory.none"),
            ("/memories", "known_at=yesterday"), ("/memories", "as_of=2026-11-21"),
            ("/memories/decisions", "run_id="), ("/memories/decisions", "extraction_id=a%20b"),
            ("/memories/decisions", "extraction_id=run_1&run_id=run_2"),
            ("/memories", "run_id=a%2Fb"), ("/memories/stats", "run_id="),
            ("/memories/decisions", "job_id=%00"),
        ],
    )  # fmt: skip
    async def test_selections_of_work(self, client: AsyncClient, path: str, query: str) -> None:
        response = await client.get(f"{path}?{query}")

        named(response, query.split("=", maxsplit=1)[0])

    @for_each("value", ["perhaps", "", "2", "%00", "null"])
    async def test_whether_to_wait_is_yes_or_no(self, client: AsyncClient, value: str) -> None:
        body = BODIES["/memories?async=true"]

        named(await post(client, f"/memories?async={value}", body), "async")
        named(await post(client, "/memories?wait=true", body), "wait")

    @for_each("since", ["2026-11-21", "x", "0001-01-01T00:00:00%2B14:00", "NaN"])
    async def test_times_in_a_query(self, client: AsyncClient, since: str) -> None:
        named(await client.get(f"/sessions/s/messages?since={since}"), "since")

    @for_each(
        "path",
        [
            "/users/{}",
            "/agents/{}",
            "/sessions/{}",
            "/memories/{}",
            "/projects/{}/members",
            "/jobs/{}",
            "/extractions/{}",
            "/webhooks/{}",
            "/webhooks/{}/deliveries",
            "/memories/{}/feedback",
            "/sessions/{}/messages",
        ],
    )
    @for_each("value", ["x" * 65, "%00", "%20", "%ED%A0%80", "%0A"])
    async def test_odd_ids_in_a_path(self, client: AsyncClient, path: str, value: str) -> None:
        response = await client.get(path.format(value))

        noun = path.split("/")[1][:-1]
        named(response, {"memorie": "memory"}.get(noun, noun) + "_id")

    @for_each("path", ["/memories/{}", "/jobs/{}", "/extractions/{}", "/webhooks/{}/deliveries"])
    @for_each("value", ["😀", "名", "a%20b"])
    async def test_ids_that_are_made_here_are_ascii(
        self, client: AsyncClient, path: str, value: str
    ) -> None:
        response = await client.get(path.format(value))

        noun = path.split("/")[1][:-1]
        named(response, {"memorie": "memory"}.get(noun, noun) + "_id")

    @for_each("value", ["a/b", "a%2Fb", "..", "%2E%2E", "//"])
    async def test_slashes_in_a_path_lead_nowhere(self, client: AsyncClient, value: str) -> None:
        response = await client.get(f"/users/{value}")

        assert response.status_code in {307, 404, 422}
        assert response.status_code == 307 or response.json()["request_id"]

    @for_each("version", ["x", '"x"', "-1", "1.5", "9" * 30, "1, 2", "\xff", ""])
    async def test_an_if_match_that_is_no_version(self, client: AsyncClient, version: str) -> None:
        response = await client.patch(
            "/users/u", json={"user_name": "A"}, headers={"If-Match": version.encode("latin-1")}
        )

        named(response, "If-Match")

    @for_each("key", ["", "x" * 256, "\xe9", "a\tb", "\x7f"])
    @for_each("path", [path for path in BODIES if path not in READS])
    async def test_an_idempotency_key_that_is_none(
        self, client: AsyncClient, path: str, key: str
    ) -> None:
        response = await client.post(
            path, json=BODIES[path], headers={"Idempotency-Key": key.encode("latin-1")}
        )

        named(response, "Idempotency-Key")

    @for_each("key", [b"\xff", b"kem_\xe9_x", b"kem__", b"a_b_c", b"kem_" + b"0" * 9999])
    async def test_a_key_that_is_none(self, client: AsyncClient, key: bytes) -> None:
        response = await client.get("/users", headers={"Authorization": b"Bearer " + key})

        assert (response.status_code, response.json()["code"]) == (401, "unknown_key")

    @for_each("path", ["/nowhere", "/users/u/x", "/memories/m/undo"])
    async def test_a_path_that_is_none(self, client: AsyncClient, path: str) -> None:
        response = await client.get(path)

        assert (response.status_code, response.json()["code"]) == (404, "path_not_found")
        assert response.headers["content-type"] == "application/problem+json"

    async def test_a_method_that_is_none(self, client: AsyncClient) -> None:
        response = await client.request("BREW", "/users")

        assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
        assert response.headers["content-type"] == "application/problem+json"

    async def test_what_was_sent_is_not_sent_back(self, client: AsyncClient) -> None:
        response = await client.post(
            "/memories", json={"messages": 4711, "user_id": ["my pin is 4711"]}
        )

        assert response.status_code == 422
        assert "4711" not in response.text


# By path, the name that the cursors of a list have.
LISTS = {
    "/agents": "agents", "/users": "users", "/projects": "projects", "/sessions": "sessions",
    "/memories": "memories", "/memories/decisions": "decisions", "/keys": "keys",
    "/sessions/talk/messages": "messages", "/memories/{memory_id}/history": "memory_history",
    "/projects/apollo/members": "project_members", "/jobs": "jobs",
    "/extractions": "extraction_runs", "/webhooks": "webhooks",
    "/webhooks/{webhook_id}/deliveries": "deliveries", "/memories/{memory_id}/feedback": "feedback",
    "/memories?known_at=2090-01-01T00:00:00Z": "memories",
}  # fmt: skip

made_up = st.sampled_from(list(LISTS)).flatmap(
    lambda path: st.tuples(
        st.just(path),
        st.one_of(
            st.text(max_size=60),
            st.binary(max_size=60).map(lambda raw: raw.hex()),
            # The right shape with a wrong content, which gets further.
            st.tuples(
                st.one_of(st.integers(), st.datetimes(), st.datetimes(timezones=st.timezones())),
                st.text(max_size=70),
            ),
        ),
    )
)


@pytest.fixture(scope="module")
async def listing(app: FastAPI, runtime: Runtime) -> AsyncIterator[tuple[AsyncClient, World]]:
    """A client of a tenant in which every list has something."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        yield client, await build_world(runtime, client, owner)


def cursor_of(path: str, world: World, place: Any, row_id: str) -> str:
    """A cursor as the list on this path gives out."""
    url, _, query = f"/v1{path.format(**world.ids)}".partition("?")
    note_list(query, world.owner.tenant_id, "", url)
    return encode(LISTS[path], place, row_id)


class TestCursors:
    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(made_up)
    async def test_a_made_up_cursor_is_refused_or_means_a_place(
        self, listing: tuple[AsyncClient, World], made: tuple[str, Any]
    ) -> None:
        path, cursor = made
        client, world = listing
        if isinstance(cursor, tuple):
            cursor = cursor_of(path, world, *cursor)
        response = await client.get(path.format(**world.ids), params={"cursor": cursor})

        if response.status_code != 200:
            named(response, "cursor")

    @for_each("path", LISTS)
    @for_each("place", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
    async def test_a_cursor_beyond_the_calendar_is_refused(
        self, listing: tuple[AsyncClient, World], path: str, place: str
    ) -> None:
        client, world = listing
        padded = cursor_of(path, world, datetime(2026, 1, 1, tzinfo=UTC), "x") + "=="
        parts = json.loads(base64.urlsafe_b64decode(padded))
        raw = base64.urlsafe_b64encode(json.dumps([parts[0], place, "x"]).encode()).decode()

        named(await client.get(path.format(**world.ids), params={"cursor": raw}), "cursor")

    async def test_a_cursor_of_another_list_is_refused(
        self, listing: tuple[AsyncClient, World]
    ) -> None:
        client, _ = listing
        page = (await client.get("/sessions/talk/messages?limit=1")).json()
        assert page["next_cursor"]

        named(await client.get("/users", params={"cursor": page["next_cursor"]}), "cursor")


async def accepted(response: Response) -> dict[str, Any]:
    assert response.is_success, response.text
    return response.json()


class TestLimits:
    """At, below and above."""

    @pytest.mark.parametrize(("length", "status"), [(1, 201), (63, 201), (64, 201), (65, 422)])
    async def test_ids_have_64_characters(
        self, client: AsyncClient, length: int, status: int
    ) -> None:
        wanted = "x" * length
        response = await client.post("/users", json={"user_id": wanted})

        assert response.status_code == status
        got = await client.get(f"/users/{wanted}")
        assert got.status_code == {201: 200, 422: 422}[status]

    @pytest.mark.parametrize("wanted", ["a", "Z9", "a.b_c:d@e|f+g=h~i-j", "0" * 64])
    async def test_ids_of_every_allowed_character(self, client: AsyncClient, wanted: str) -> None:
        await accepted(await client.post("/users", json={"user_id": wanted}))

        assert (await client.get(f"/users/{quote(wanted)}")).json()["user_id"] == wanted

    @for_each(("length", "status"), [(1, 201), (254, 201), (255, 201), (256, 422)])
    async def test_names_have_255_characters(
        self, client: AsyncClient, length: int, status: int
    ) -> None:
        response = await client.post("/agents", json={"agent_name": "名" * length})

        assert response.status_code == status
        if status == 422:
            named(response, "agent_name")

    @for_each("name", ["", "   "])
    async def test_names_are_not_blank(self, client: AsyncClient, name: str) -> None:
        named(await client.post("/agents", json={"agent_name": name}), "agent_name")

    @pytest.mark.parametrize(("count", "status"), [(1, 201), (99, 201), (100, 201), (101, 422)])
    async def test_a_batch_has_100_messages(
        self, client: AsyncClient, count: int, status: int
    ) -> None:
        body = {"user_id": "u", "messages": [MESSAGE] * count}
        response = await client.post("/sessions/s/messages", json=body)

        assert response.status_code == status
        if status == 422:
            named(response, "messages")
            assert (await client.get("/sessions/s")).status_code == 404

    async def test_a_batch_is_not_empty(self, client: AsyncClient) -> None:
        body = {"user_id": "u", "messages": []}

        named(await client.post("/sessions/s/messages", json=body), "messages")
        named(await client.post("/memories", json=body | {"infer": False}), "messages")

    @for_each(("count", "status"), [(1, 200), (100, 200), (101, 422)])
    async def test_a_batch_has_100_statements(
        self, client: AsyncClient, count: int, status: int
    ) -> None:
        said = [{"role": "user", "content": f"Fact number {number}."} for number in range(count)]
        body = {"user_id": "u", "messages": said, "infer": False, "on_duplicate": "allow"}
        response = await client.post("/memories", json=body)

        assert response.status_code == status
        if status == 422:
            named(response, "messages")

    @for_each(("limit", "status"), [(0, 422), (1, 200), (100, 200), (101, 422)])
    @for_each("path", ["/agents", "/users", "/sessions", "/memories", "/keys"])
    async def test_a_page_has_1_to_100_rows(
        self, client: AsyncClient, path: str, limit: int, status: int
    ) -> None:
        response = await client.get(path, params={"limit": limit})

        assert response.status_code == status

    @pytest.mark.parametrize(
        ("metadata", "status"),
        [
            ({"a": "x" * 16_000}, 201),
            ({"a": "x" * 16_384}, 422),
            ({"a": "名" * 5_400}, 201),
            ({"a": "名" * 5_500}, 422),
            ({f"k{number}": number for number in range(100)}, 201),
            ({f"k{number}": number for number in range(101)}, 422),
            ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}, 201),
            ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}, 422),
            ({"a": 2**63 - 1, "b": -(2**63) + 1, "c": 0.1, "d": None, "e": False}, 201),
            ({}, 201),
        ],
        ids=[
            "16,000 bytes", "16 KiB", "16,200 bytes of Chinese", "16,500 bytes of Chinese",
            "100 keys", "101 keys", "8 levels", "9 levels", "large numbers", "nothing",
        ],
    )  # fmt: skip
    async def test_metadata_has_16_kib_100_keys_and_8_levels(
        self, client: AsyncClient, metadata: dict[str, Any], status: int
    ) -> None:
        body = {"project_id": "p", "project_name": "P", "metadata": metadata}
        response = await client.post("/projects", json=body)

        assert response.status_code == status, response.text
        if status == 422:
            named(response, "metadata")
        else:
            assert (await client.get("/projects/p")).json()["metadata"] == metadata

    @for_each(("size", "status"), [(2 * 1024 * 1024, 422), (2 * 1024**2 + 1, 413)])
    async def test_a_request_has_2_mib(self, client: AsyncClient, size: int, status: int) -> None:
        content = b'{"agent_name": "' + b"x" * (size - 18) + b'"}'
        assert len(content) == size

        response = await client.post(
            "/agents", content=content, headers={"Content-Type": "application/json"}
        )

        assert response.status_code == status

    @for_each("moment", ["0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"])
    async def test_the_whole_calendar_is_accepted(self, client: AsyncClient, moment: str) -> None:
        body = BODIES["/memories"] | {"expires_at": moment}
        added = await accepted(await client.post("/memories", json=body))

        assert added["results"][0]["memory"]["expires_at"] == moment
