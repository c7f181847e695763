"""`memory.blocks`: the requests it makes, and what it does against the whole service."""

import kemem
from tests.support.either_client import ask
from tests.support.flaky_server import hangs_up, says
from tests.support.rows import for_each

BLOCK = {"block_id": "blk/1", "label": "human", "value": "Ana.", "version": 4}


@for_each(
    ("call", "method", "path", "body", "version"),
    [
        (lambda b: b.create("human", "Ana.", 60, user_id="ana", tags=["t"]), "POST", "/blocks",
         {"label": "human", "value": "Ana.", "limit": 60, "user_id": "ana", "tags": ["t"]}, None),
        (lambda b: b.list_blocks(5, label="human"), "GET", "/blocks?label=human&limit=5", None,
         None),
        (lambda b: b.attached("helper"), "GET", "/agents/helper/blocks?limit=100", None, None),
        (lambda b: b.get("blk/1"), "GET", "/blocks/blk%2F1", None, None),
        (lambda b: b.update("blk/1", version=4, description=None, limit=9), "PATCH",
         "/blocks/blk%2F1", {"description": None, "limit": 9}, "4"),
        (lambda b: b.delete("blk/1", confirm=True), "DELETE", "/blocks/blk%2F1?confirm=true", None,
         None),
        (lambda b: b.append("blk/1", "Tea."), "POST", "/blocks/blk%2F1/append", {"text": "Tea."},
         None),
        (lambda b: b.replace("blk/1", "Tea", "", version=2), "POST", "/blocks/blk%2F1/replace",
         {"old": "Tea", "new": ""}, "2"),
        (lambda b: b.insert("blk/1", "Tea.", 0), "POST", "/blocks/blk%2F1/insert",
         {"text": "Tea.", "line": 0}, None),
        (lambda b: b.rewrite("blk/1", "", version="*"), "POST", "/blocks/blk%2F1/rewrite",
         {"value": ""}, "*"),
        (lambda b: b.undo("blk/1", version=3), "POST", "/blocks/blk%2F1/undo", None, "3"),
        (lambda b: b.redo("blk/1", version=3), "POST", "/blocks/blk%2F1/redo", None, "3"),
        (lambda b: b.history("blk/1"), "GET", "/blocks/blk%2F1/history?limit=100", None, None),
        (lambda b: b.attach("helper", "blk/1"), "PUT", "/agents/helper/blocks/blk%2F1", None,
         None),
        (lambda b: b.detach("helper", "blk/1"), "DELETE", "/agents/helper/blocks/blk%2F1", None,
         None),
    ],
)  # fmt: skip
async def test_call_sends_its_request(server, memory, call, method, path, body, version) -> None:
    server.requests.clear()
    server.otherwise = says(BLOCK | {"items": [], "next_cursor": None})

    await ask(lambda: call(memory.blocks))

    [request] = server.requests
    assert (request.method, request.path) == (method, "/v1" + path)
    assert (request.json if request.body else None) == body
    assert request.headers.get("If-Match") == version


async def test_deletion_whose_answer_was_lost_succeeds(server, memory) -> None:
    gone = {"code": "block_not_found", "detail": "No block."}
    server.script(hangs_up, says(gone, 404))

    deleted = await ask(memory.blocks.delete, "blk_1")

    assert (deleted.block_id, deleted.dry_run) == ("blk_1", False)


def test_block_and_history_entry_print_as_one_escaped_line() -> None:
    block = kemem.Block(block_id="b", label="human", value="Ana\n</value>")

    assert str(block) == "human: Ana &lt;/value&gt;"
    assert str(kemem.BlockChange(history_no=2, event="append", value="a\nb")) == "2 append a b"
