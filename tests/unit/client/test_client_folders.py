"""`memory.folders`: the requests it makes, and waiting for a file."""

from urllib.parse import parse_qs

import pytest

from kemem import JobFailedError, TimedOutError
from tests.support.either_client import ask
from tests.support.flaky_server import says
from tests.support.rows import for_each

FILE = {"file_id": "fil_1", "folder_id": "f", "file_name": "plan.txt", "job_id": "job_1"}
UPLOADED = {"outcome": "created", "job_id": "job_1", "file": FILE | {"state": "pending"}}
ANSWER = UPLOADED | {
    "folder_id": "f", "folder_name": "Plans", "file_id": "fil_1", "items": [], "next_cursor": None,
    "passage_id": "psg_1",
}  # fmt: skip


@for_each(
    ("call", "method", "path", "body", "version"),
    [
        (lambda f: f.create("Plans", "agent", agent_id="a"), "POST", "/folders",
         {"folder_name": "Plans", "scope": "agent", "agent_id": "a"}, None),
        (lambda f: f.list_folders(5, user_id="ana"), "GET", "/folders?user_id=ana&limit=5", None,
         None),
        (lambda f: f.get("f/1"), "GET", "/folders/f%2F1", None, None),
        (lambda f: f.update("f", version=2, description=None), "PATCH", "/folders/f",
         {"description": None}, "2"),
        (lambda f: f.delete("f", confirm=True), "DELETE", "/folders/f?confirm=true", None, None),
        (lambda f: f.attach("f", "a"), "PUT", "/folders/f/agents/a", None, None),
        (lambda f: f.detach("f", "a"), "DELETE", "/folders/f/agents/a", None, None),
        (lambda f: f.file("f", "fil_1"), "GET", "/folders/f/files/fil_1", None, None),
        (lambda f: f.files("f", state="error"), "GET", "/folders/f/files?state=error&limit=100",
         None, None),
        (lambda f: f.delete_file("f", "fil_1", dry_run=True), "DELETE",
         "/folders/f/files/fil_1?dry_run=true", None, None),
        (lambda f: f.reingest("f", "fil_1"), "POST", "/folders/f/files/fil_1/reingest", None, None),
        (lambda f: f.extract("fil_1"), "POST", "/files/fil_1/extract", {}, None),
        (lambda f: f.extract("fil_1", scope="user", user_id="ana"), "POST", "/files/fil_1/extract",
         {"scope": "user", "user_id": "ana"}, None),
        (lambda f: f.add_text("f", "Bees.", ["b"]), "POST", "/folders/f/passages",
         {"content": "Bees.", "tags": ["b"]}, None),
        (lambda f: f.passages("f"), "GET", "/folders/f/passages?limit=100", None, None),
        (lambda f: f.passages("f", "fil_1", 3), "GET", "/folders/f/files/fil_1/passages?limit=3",
         None, None),
        (lambda f: f.delete_passage("f", "psg_1"), "DELETE", "/folders/f/passages/psg_1", None,
         None),
        (lambda f: f.search("bees", 3, tags=("b",)), "POST", "/passages/search",
         {"query": "bees", "limit": 3, "tags": ["b"]}, None),
    ],
)  # fmt: skip
async def test_call_sends_its_request(server, memory, call, method, path, body, version) -> None:
    server.requests.clear()
    server.otherwise = says(ANSWER)

    await ask(lambda: call(memory.folders))

    [request] = server.requests
    assert (request.method, request.path) == (method, "/v1" + path)
    assert (request.json if request.body else None) == body
    assert request.headers.get("If-Match") == version


async def test_path_is_uploaded_under_its_name(server, memory, tmp_path) -> None:
    server.otherwise = says(UPLOADED)
    path = tmp_path / "plan.txt"
    path.write_bytes(b"Hello.")

    await ask(
        memory.folders.upload, "f", path, on_same_name="skip", tags=["a", "b"], metadata={"x": 1}
    )

    [request] = server.requests
    assert (request.method, request.body) == ("POST", b"Hello.")
    path, _, query = request.path.partition("?")
    assert path == "/v1/folders/f/files"
    assert parse_qs(query) == {
        "file_name": ["plan.txt"], "on_same_name": ["skip"], "metadata": ['{"x": 1}'],
        "tags": ["a", "b"],
    }  # fmt: skip
    assert request.headers["Content-Type"] == "application/octet-stream"
    assert request.headers["Idempotency-Key"]


async def test_upload_waits_until_the_file_is_ingested(server, memory) -> None:
    server.script(
        says(UPLOADED),
        says(FILE | {"state": "parsing"}),
        says(FILE | {"state": "embedding", "passage_count": 3, "passages_expected": 9}),
        says(FILE | {"state": "completed", "passage_count": 9, "passages_expected": 9}),
    )
    seen: list[str] = []

    uploaded = await ask(
        memory.folders.upload, "f", b"Hello.", file_name="plan.txt", wait=True,
        progress=lambda file: seen.append(file.state),
    )  # fmt: skip

    assert (uploaded.outcome, uploaded.file.passage_count) == ("created", 9)
    assert seen == ["parsing", "embedding", "completed"]


async def test_upload_that_cannot_be_ingested_raises(server, memory) -> None:
    server.script(says(UPLOADED), says(FILE | {"state": "error", "error_code": "unreadable"}))

    with pytest.raises(JobFailedError) as raised:
        await ask(memory.folders.upload, "f", b"Hello.", file_name="plan.txt", wait=True)

    assert (raised.value.code, raised.value.job_id) == ("unreadable", "job_1")


async def test_upload_is_not_waited_for_beyond_the_time(server, memory) -> None:
    server.script(says(UPLOADED))
    server.otherwise = says(FILE | {"state": "parsing"})

    with pytest.raises(TimedOutError, match="parsing"):
        await ask(
            memory.folders.upload, "f", b"Hello.", file_name="plan.txt", wait=True, timeout=0.1
        )
