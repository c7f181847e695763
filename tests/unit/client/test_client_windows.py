"""Types and parameters of what goes to the model and of where an agent stands, held against the
service's schemas; and the requests that both clients make of them.
"""

import contextlib
import dataclasses
import inspect

import pytest

import kemem
from app.conversation.messages import schemas as window
from app.conversation.sessions import schemas as states
from app.prompting.blocks import schemas as blocks
from app.prompting.checkpoints import schemas as checkpoints
from app.prompting.compaction import schemas as compaction
from app.prompting.context import schemas as context
from app.prompting.tools import schemas as tools
from kemem import Memory, options
from tests.support.either_client import ask
from tests.support.flaky_server import hangs_up, says
from tests.support.rows import for_each

ANSWERS = [
    (kemem.Context, context.ContextAnswer),
    (kemem.ContextPart, context.Part),
    (kemem.UsedMemory, context.UsedMemory),
    (kemem.ShownWindow, context.ShownWindow),
    (kemem.InjectionState, context.InjectionState),
    (kemem.AskedQuery, context.AskedQuery),
    (kemem.Window, window.WindowRead),
    (kemem.WindowPolicy, window.WindowPolicyRead),
    (kemem.Trimmed, window.WindowTrimmed),
    (kemem.Compaction, compaction.CompactAnswer),
    (kemem.Evicted, compaction.EvictedRead),
    (kemem.Summary, compaction.SummaryRead),
    (kemem.State, states.StateRead),
    (kemem.Snapshot, states.SnapshotShown),
    (kemem.Checkpoint, checkpoints.CheckpointShown),
    (kemem.Contents, checkpoints.ContentsRead),
    (kemem.CheckpointRestored, checkpoints.CheckpointRestored),
    (kemem.Approval, checkpoints.ApprovalRead),
    (kemem.BlockChange, blocks.BlockHistoryRead),
    (kemem.BlockDeleted, blocks.BlockDeleted),
    (kemem.Tools, tools.ToolsShown),
    (kemem.ToolResult, tools.ToolAnswer),
]


def names(kind: type) -> set[str]:
    return {one.name for one in dataclasses.fields(kind)} - {"raw"}


@pytest.mark.parametrize(("ours", "theirs"), ANSWERS, ids=lambda kind: kind.__name__)
def test_answer_type_has_the_fields_of_the_service(ours, theirs) -> None:
    assert names(ours) == set(theirs.model_fields)


def test_block_has_the_fields_of_the_service() -> None:
    computed = set(blocks.BlockRead.model_computed_fields)

    assert names(kemem.Block) == set(blocks.BlockRead.model_fields) | computed


def taken(method, *others: type) -> set[str]:
    """What a method takes, with the keys of its options."""
    parameters = inspect.signature(method).parameters.items()
    own = {name for name, one in parameters if one.kind is not one.VAR_KEYWORD}
    return (own - {"self", "session_id", "version"}).union(*(it.__annotations__ for it in others))


@pytest.mark.parametrize(
    ("method", "further", "schema", "besides"),
    [
        (Memory.context, [options.ContextOptions], context.ContextRequest, set()),
        (Memory.trim, [], window.WindowTrim, set()),
        (Memory.summarize, [options.CompactOptions], compaction.CompactRequest, set()),
        (Memory.injections, [], context.InjectionQuery, {"cursor"}),
        # Pages are fetched as they are needed, so nobody bounds one by its tokens.
        (Memory.summaries, [], compaction.SummaryQuery, {"cursor", "max_tokens"}),
        (Memory.checkpoint, [options.CheckpointOptions], checkpoints.CheckpointCreate, set()),
        (Memory.checkpoints, [options.CheckpointListOptions], checkpoints.CheckpointQuery,
         {"cursor"}),
        (Memory.approvals, [], checkpoints.ApprovalQuery, {"cursor"}),
        (kemem.Blocks.create, [options.BlockOptions], blocks.BlockCreate, set()),
        (kemem.Blocks.list_blocks, [options.BlockListOptions], blocks.BlockQuery,
         {"cursor", "max_tokens"}),
    ],
)  # fmt: skip
def test_method_has_the_parameters_of_the_route(method, further, schema, besides) -> None:
    assert taken(method, *further) == set(schema.model_fields) - besides


def test_method_with_an_id_in_the_path_has_the_parameters_of_the_route() -> None:
    assert taken(Memory.decide) - {"tool_call_id"} == set(checkpoints.ApprovalDecision.model_fields)
    assert taken(kemem.Blocks.update, options.BlockChanges) - {"block_id"} == set(
        blocks.BlockPatch.model_fields
    )
    assert taken(kemem.Blocks.delete) - {"block_id"} == set(blocks.BlockDeleteQuery.model_fields)
    for method, schema in (
        (kemem.Blocks.append, blocks.BlockAppend),
        (kemem.Blocks.replace, blocks.BlockReplace),
        (kemem.Blocks.insert, blocks.BlockInsert),
        (kemem.Blocks.rewrite, blocks.BlockRewrite),
    ):
        assert taken(method) - {"block_id"} == set(schema.model_fields)
    assert taken(Memory.call_tool) - {"name"} == set(tools.ToolCall.model_fields) - {"session_id"}
    listed = {name for name in tools.ToolsQuery.model_fields if name != "session_id"}
    assert taken(Memory.tools) == listed


SESSION = "/v1/sessions/s%2F1"
PAGE = {"items": [], "next_cursor": None}


@for_each(
    ("call", "method", "path", "body"),
    [
        (lambda m: m.context("s/1", "tea?", 500, render="plain", context={"company": "Acme"}),
         "POST", "/context",
         {"query": "tea?", "max_memory_tokens": 500, "render": "plain",
          "context": {"company": "Acme"}}),
        (lambda m: m.window("s/1"), "GET", "/window", None),
        (lambda m: m.trim("s/1", "last_messages", 300), "POST", "/window/trim",
         {"strategy": {"name": "last_messages"}, "max_tokens": 300}),
        (lambda m: m.trim("s/1", {"name": "first_last", "keep": 2}), "POST", "/window/trim",
         {"strategy": {"name": "first_last", "keep": 2}}),
        (lambda m: m.summarize("s/1", force=True, keep_messages=4), "POST", "/compact",
         {"force": True, "dry_run": False, "keep_messages": 4}),
        (lambda m: m.summarize("s/1"), "POST", "/compact", {"force": False, "dry_run": False}),
        (lambda m: m.injections("s/1", 5, content_sha256="0" * 64), "GET",
         f"/injections?content_sha256={'0' * 64}&limit=5", None),
        (lambda m: m.summaries("s/1", 5, level=1), "GET", "/summaries?level=1&limit=5", None),
        (lambda m: m.summary("s/1", "sum_1"), "GET", "/summaries/sum_1", None),
        (lambda m: m.state("s/1"), "GET", "/state", None),
        (lambda m: m.set_state("s/1", {"goal": None}, version=0), "PUT", "/state", {"goal": None}),
        (lambda m: m.update_state("s/1", {"goal": None}, version="*"), "PATCH", "/state",
         {"goal": None}),
        (lambda m: m.snapshot("s/1"), "POST", "/state/snapshots", None),
        (lambda m: m.snapshots("s/1"), "GET", "/state/snapshots?limit=100", None),
        (lambda m: m.get_snapshot("s/1", "snp_1"), "GET", "/state/snapshots/snp_1", None),
        (lambda m: m.restore_snapshot("s/1", "snp_1", version=3), "POST",
         "/state/snapshots/snp_1/restore", None),
        (lambda m: m.checkpoint("s/1", {"agent_state": {"todo": []}}, step=2), "POST",
         "/checkpoints", {"contents": {"agent_state": {"todo": []}}, "step": 2}),
        (lambda m: m.checkpoints("s/1", 3, archived=True), "GET",
         "/checkpoints?archived=true&limit=3", None),
        (lambda m: m.get_checkpoint("s/1", "chk_1"), "GET", "/checkpoints/chk_1", None),
        (lambda m: m.restore_checkpoint("s/1", "chk_1"), "POST", "/checkpoints/chk_1/restore",
         None),
        (lambda m: m.delete_checkpoint("s/1", "chk_1"), "DELETE", "/checkpoints/chk_1", None),
        (lambda m: m.approvals("s/1", status="pending"), "GET",
         "/approvals?status=pending&limit=100", None),
        (lambda m: m.approval("s/1", "c1"), "GET", "/approvals/c1", None),
        (lambda m: m.decide("s/1", "c1", "modified", arguments={"seats": 2}), "POST",
         "/approvals/c1", {"decision": "modified", "arguments": {"seats": 2}}),
    ],
)  # fmt: skip
async def test_call_about_a_session_sends_its_request(server, memory, call, method, path, body):
    server.requests.clear()
    server.otherwise = says({"session_id": "s/1", **PAGE})

    with contextlib.suppress(kemem.UnexpectedAnswerError):
        await ask(lambda: call(memory))

    [request] = server.requests
    assert (request.method, request.path) == (method, SESSION + path)
    assert (request.json if request.body else None) == body
    versions = {"PUT": "0", "PATCH": "*", "POST": "3" if "snp_1" in path else None}
    assert request.headers.get("If-Match") == versions.get(method)
    assert ("Idempotency-Key" in request.headers) is (method == "POST")


@pytest.mark.parametrize(("version", "attempts"), [(1, 1), ("*", 2)])
@pytest.mark.parametrize("method", ["set_state", "update_state"])
async def test_change_of_state_with_version_is_not_retried(
    server, memory, method: str, version, attempts: int
) -> None:
    server.script(hangs_up, says({"session_id": "s1", "state": {}, "version": 2}))

    with contextlib.suppress(kemem.ConnectionFailedError):
        await ask(getattr(memory, method), "s1", {"goal": "Rome"}, version=version)

    assert len(server.requests) == attempts


async def test_context_is_read_with_all_its_parts(server, memory) -> None:
    server.script(
        says(
            {
                "session_id": "s1", "render": "openai", "prompt": "You help.",
                "messages": [{"role": "user", "content": "Tea?"}], "summary": None,
                "parts": [{"name": "window", "tokens": 5, "budget": 90, "shown": 1, "dropped": 0}],
                "used": [{"memory_id": "mem_1", "part": "memories", "score": 0.5}],
                "window": {"messages": 1, "fits": True, "waiting": []},
                "pressure": {"level": "warn", "tokens": 80, "budget_tokens": 100, "share": 0.8,
                             "notice": "Nearly full."},
                "tokens": 9, "memory_tokens": 4, "counter": "estimate/v1",
                "content_sha256": "00", "query": {"source": "request"},
                "injection": {"enabled": True, "off_by": None}, "news": 1,
            }
        )
    )  # fmt: skip

    context = await ask(memory.context, "s1")

    assert str(context) == "You help."
    assert context.messages[0] == {"role": "user", "content": "Tea?"}
    assert (context.parts[0].name, context.used[0].memory_id) == ("window", "mem_1")
    assert (context.pressure.level, context.pressure.notice) == ("warn", "Nearly full.")
    assert (context.query.source, context.raw["news"]) == ("request", 1)
