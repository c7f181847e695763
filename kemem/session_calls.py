"""The calls about where a session stands: its context, its window, its state and its tools."""

from collections.abc import Mapping
from typing import Any

from kemem.contexts import Compaction, Context, Summary, Trimmed, Window
from kemem.states import Approval, Checkpoint, CheckpointRestored, Snapshot, State
from kemem.tools import Processors, ToolResult, Tools
from kemem.writing import Call, Page, Version, change, fetch, fetch_pages, if_match, post, remove


def context(session_id: str, **fields: Any) -> Call[Context]:
    return post(Context, "sessions", session_id, "context", body=fields)


def window(session_id: str) -> Call[Window]:
    return fetch(Window, "sessions", session_id, "window")


def trim(session_id: str, **fields: Any) -> Call[Trimmed]:
    return post(Trimmed, "sessions", session_id, "window", "trim", body=fields)


def summarize(session_id: str, **fields: Any) -> Call[Compaction]:
    return post(Compaction, "sessions", session_id, "compact", body=fields)


def summaries(session_id: str, *, limit: int | None, **params: Any) -> Call[Page[Summary]]:
    return fetch_pages(Summary, "sessions", session_id, "summaries", limit=limit, **params)


def summary(session_id: str, summary_id: str) -> Call[Summary]:
    return fetch(Summary, "sessions", session_id, "summaries", summary_id)


def state(session_id: str) -> Call[State]:
    return fetch(State, "sessions", session_id, "state")


def set_state(session_id: str, document: Mapping[str, Any], version: Version) -> Call[State]:
    return change("PUT", State, "sessions", session_id, "state", body=document, version=version)


def update_state(session_id: str, changes: Mapping[str, Any], version: Version) -> Call[State]:
    return change("PATCH", State, "sessions", session_id, "state", body=changes, version=version)


def snapshot(session_id: str) -> Call[Snapshot]:
    return post(Snapshot, "sessions", session_id, "state", "snapshots")


def snapshots(session_id: str, *, limit: int | None) -> Call[Page[Snapshot]]:
    return fetch_pages(Snapshot, "sessions", session_id, "state", "snapshots", limit=limit)


def get_snapshot(session_id: str, snapshot_id: str) -> Call[Snapshot]:
    return fetch(Snapshot, "sessions", session_id, "state", "snapshots", snapshot_id)


def restore_snapshot(session_id: str, snapshot_id: str, version: Version | None) -> Call[State]:
    return post(
        State,
        "sessions", session_id, "state", "snapshots", snapshot_id, "restore",
        headers=if_match(version),
    )  # fmt: skip


def checkpoint(session_id: str, **fields: Any) -> Call[Checkpoint]:
    return post(Checkpoint, "sessions", session_id, "checkpoints", body=fields)


def checkpoints(session_id: str, *, limit: int | None, **params: Any) -> Call[Page[Checkpoint]]:
    return fetch_pages(Checkpoint, "sessions", session_id, "checkpoints", limit=limit, **params)


def get_checkpoint(session_id: str, checkpoint_id: str) -> Call[Checkpoint]:
    return fetch(Checkpoint, "sessions", session_id, "checkpoints", checkpoint_id)


def restore_checkpoint(session_id: str, checkpoint_id: str) -> Call[CheckpointRestored]:
    return post(CheckpointRestored, "sessions", session_id, "checkpoints", checkpoint_id, "restore")


def delete_checkpoint(session_id: str, checkpoint_id: str) -> Call[None]:
    return remove("sessions", session_id, "checkpoints", checkpoint_id)


def approvals(session_id: str, *, limit: int | None, **params: Any) -> Call[Page[Approval]]:
    return fetch_pages(Approval, "sessions", session_id, "approvals", limit=limit, **params)


def approval(session_id: str, tool_call_id: str) -> Call[Approval]:
    return fetch(Approval, "sessions", session_id, "approvals", tool_call_id)


def decide(session_id: str, tool_call_id: str, **fields: Any) -> Call[Approval]:
    return post(Approval, "sessions", session_id, "approvals", tool_call_id, body=fields)


def tools(**params: Any) -> Call[Tools]:
    return fetch(Tools, "tools", **params)


def processors() -> Call[Processors]:
    return fetch(Processors, "processors")


def call_tool(name: str, session_id: str, **fields: Any) -> Call[ToolResult]:
    return post(ToolResult, "tools", name, "call", body={"session_id": session_id, **fields})
