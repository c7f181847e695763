"""`memory.export` and `memory.import_`: whole or an error, in parts that the service takes."""

import hashlib
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from kemem.errors import ConflictError, NotFoundError
from kemem.exports import PART_BYTES, BrokenExportError
from tests.support.either_client import ask
from tests.support.flaky_server import cuts_off, hangs_up, refuses, says, sends

MANIFEST = b'{"format":1,"type":"manifest"}\n'
REPORT = {"unchanged": {}, "skipped": {}, "conflicts": [], "dry_run": False}


def row(content: str) -> bytes:
    told = {"row": {"content": content}, "type": "memory"}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def export_of(*rows: bytes) -> list[bytes]:
    """Rows as an export has them, between its manifest and its end."""
    lines = [MANIFEST, *(row + b"\n" for row in rows)]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return [*lines, b'{"sha256":"%s","type":"end"}\n' % digest.encode()]


LINES = export_of(row("She keeps bees."), row("她养蜜蜂。"))


async def read(stream: Iterator[bytes] | AsyncIterator[bytes]) -> list[bytes]:
    if isinstance(stream, Iterator):
        return list(stream)
    return [line async for line in stream]


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({}, ""),
        ({"user_id": "ana"}, "?user_id=ana"),
        ({"agent_id": "a"}, "?agent_id=a"),
        ({"project_id": "p", "vectors": False}, "?project_id=p&vectors=false"),
    ],
)
async def test_export_sends_its_filters(server, memory, arguments, query) -> None:
    server.otherwise = sends(b"".join(LINES))

    assert await read(memory.export(**arguments)) == LINES

    [request] = server.requests
    assert (request.method, request.path) == ("GET", f"/v1/export{query}")


@pytest.mark.parametrize(
    "told",
    [
        LINES[:-1],
        [*LINES[:-1], LINES[-1][:-1]],
        [LINES[0], *LINES[2:]],
        [*LINES, LINES[1]],
        LINES[1:],
        [b"nonsense\n"],
        [],
    ],
    ids=range(7),
)
async def test_incomplete_export_is_an_error(server, memory, told) -> None:
    server.otherwise = sends(b"".join(told))

    with pytest.raises(BrokenExportError):
        await read(memory.export())


async def test_broken_connection_during_an_export_is_an_error(server, memory) -> None:
    server.otherwise = cuts_off

    with pytest.raises(BrokenExportError):
        await read(memory.export())


async def test_refused_export_raises_before_the_first_line(server, memory) -> None:
    server.otherwise = refuses(404, "user_not_found")

    with pytest.raises(NotFoundError) as caught:
        await read(memory.export(user_id="nobody"))

    assert caught.value.code == "user_not_found"


async def test_export_is_retried_when_the_service_is_busy(server, memory) -> None:
    server.script(hangs_up, refuses(503, "exports_busy", Retry_After="0"))
    server.otherwise = sends(b"".join(LINES))

    assert await read(memory.export()) == LINES
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({}, "on_conflict=fail&dry_run=false"),
        ({"on_conflict": "skip", "dry_run": True}, "on_conflict=skip&dry_run=true"),
        ({"restore_erased": True}, "on_conflict=fail&dry_run=false&restore_erased=true"),
    ],
)
async def test_import_sends_its_options_and_lines(server, memory, arguments, query) -> None:
    server.otherwise = says(REPORT | {"inserted": {"memory": 2}})

    done = await ask(memory.import_, LINES, **arguments)

    [request] = server.requests
    assert (request.method, request.path) == ("POST", f"/v1/import?{query}")
    assert request.headers["Content-Type"] == "application/x-ndjson"
    assert request.body == b"".join(LINES[:-1])
    assert done.inserted == {"memory": 2}


async def test_large_import_is_sent_in_parts_after_the_manifest(server, memory) -> None:
    rows = [row(f"{number} " + "x" * (PART_BYTES // 3)) for number in range(7)]
    server.otherwise = says(REPORT | {"inserted": {"memory": 1}})
    sent: list[int] = []

    done = await ask(memory.import_, export_of(*rows), sent=sent.append)

    bodies = [request.body for request in server.requests]
    assert len(bodies) > 2
    assert all(body.startswith(MANIFEST) for body in bodies)
    assert all(len(body) <= PART_BYTES + len(MANIFEST) for body in bodies)
    assert b"".join(body[len(MANIFEST) :] for body in bodies) == b"".join(
        one + b"\n" for one in rows
    )
    assert sum(sent) == len(rows)
    assert done.inserted == {"memory": len(bodies)}
    keys = {request.headers["Idempotency-Key"] for request in server.requests}
    assert len(keys) == len(bodies)


async def test_part_whose_answer_was_lost_is_repeated_with_the_same_key(server, memory) -> None:
    server.script(hangs_up)
    server.otherwise = says(REPORT | {"inserted": {"memory": 2}})

    await ask(memory.import_, LINES)

    first, second = server.requests
    assert first.body == second.body
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


@pytest.mark.parametrize("code", ["import_conflict", "erased"])
async def test_refused_part_stops_the_import(server, memory, code) -> None:
    server.otherwise = refuses(409, code)

    with pytest.raises(ConflictError) as caught:
        await ask(memory.import_, LINES)

    assert caught.value.code == code
    assert len(server.requests) == 1


async def test_import_of_a_cut_off_file_is_an_error(server, memory) -> None:
    server.otherwise = says(REPORT | {"inserted": {}})

    with pytest.raises(BrokenExportError):
        await ask(memory.import_, LINES[:-1])
