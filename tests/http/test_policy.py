"""Every operation of the published document, against everybody who must not come in.

The walk reads the document and not the router, so that a route cannot be forgotten: one
without an entry in `OPERATIONS` fails the first test below.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.main import create_app
from app.runtime import Runtime
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant, tenants
from tests.support.world import World, build_world, rows_of

# Operations anyone may call. Adding one here is a decision about security.
OPEN_TO_ANYONE = {"GET /livez", "GET /readyz", "GET /metrics"}

SCOPES = ("read", "write", "admin", "operator")


@dataclass(frozen=True)
class Call:
    """How the walk calls an operation; `{user_id}` stands for the id of a row.

    Args:
        scope: the least scope that may.
        body: a complete request.
        creates: whether a new id is welcome, so that a foreign one is simply the caller's own.

    """

    scope: str
    body: dict[str, Any] | None = None
    query: dict[str, str] = field(default_factory=dict)
    creates: bool = False
    headers: dict[str, str] = field(default_factory=dict)


SAVED = {"messages": "She keeps bees.", "infer": False, "on_duplicate": "allow"}
READ = {"messages": "I moved to Bonn last year."}
# Nothing is remembered of it, so that searches do not find it under somebody's id.
NOTHING = {"messages": "What time is it?"}

# What a task of a graph wrote.
WRITTEN = {"index": 0, "channel": "topic", "type": "null", "data": ""}

# A moment at which all rows are there.
THEN = {"known_at": "2090-01-01T00:00:00Z"}

# An export without rows.
MANIFEST = {"type": "manifest", "format": 1}

# For what is not written without the version that was read.
ANY_VERSION = {"If-Match": "*"}

OPERATIONS = {
    "POST /v1/tenants": Call("operator", {"tenant_name": "Acme"}),
    "GET /v1/tenants": Call("operator"),
    "GET /v1/tenants/{tenant_id}": Call("operator"),
    "PATCH /v1/tenants/{tenant_id}": Call("operator", {"tenant_name": "Renamed"}),
    "POST /v1/tenants/{tenant_id}/keys": Call("operator", {"scopes": ["read"]}),
    "GET /v1/tenants/{tenant_id}/keys": Call("operator"),
    "DELETE /v1/tenants/{tenant_id}/keys/{key_id}": Call("operator"),
    "POST /v1/keys": Call("admin", {"scopes": ["read"], "user_id": "{user_id}"}, creates=True),
    "GET /v1/keys": Call("admin"),
    "DELETE /v1/keys/{key_id}": Call("admin"),
    "POST /v1/agents": Call("write", {"agent_id": "{agent_id}", "agent_name": "A"}, creates=True),
    "GET /v1/agents": Call("read"),
    "GET /v1/agents/{agent_id}": Call("read"),
    "GET /v1/processors": Call("admin"),
    "DELETE /v1/agents/{agent_id}": Call("admin", query={"confirm": "true"}),
    "PATCH /v1/agents/{agent_id}": Call("write", {"status": "disabled"}),
    "POST /v1/users": Call(
        "write", {"user_id": "{user_id}", "agent_id": "{agent_id}"}, creates=True
    ),
    "GET /v1/users": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/users/{user_id}": Call("read"),
    "DELETE /v1/users/{user_id}": Call("admin", query={"confirm": "true"}),
    "GET /v1/erasures": Call("admin"),
    "GET /v1/forgetting": Call("admin"),
    "POST /v1/forgetting/run": Call("admin", {"dry_run": False}),
    "PATCH /v1/users/{user_id}": Call("write", {"status": "disabled"}),
    "GET /v1/users/{user_id}/profile": Call("read"),
    "PATCH /v1/users/{user_id}/profile": Call(
        "write", {"attributes": {"profession": "pilot"}}, creates=True, headers=ANY_VERSION
    ),
    "PUT /v1/users/{user_id}/profile": Call(
        "write", {"attributes": {"profession": "pilot"}}, creates=True, headers=ANY_VERSION
    ),
    "GET /v1/users/{user_id}/profile/history": Call("read"),
    "POST /v1/users/{user_id}/profile/derive": Call("write"),
    "GET /v1/users/{user_id}/memory-document": Call("read"),
    "POST /v1/users/{user_id}/memory-document": Call(
        "write", {"user": {"workContext": {"summary": "Pilot."}}}, creates=True
    ),
    "GET /v1/projects/{project_id}/profile": Call("read"),
    "PATCH /v1/projects/{project_id}/profile": Call(
        "write", {"attributes": {"current_phase": "alpha"}}, headers=ANY_VERSION
    ),
    "PUT /v1/projects/{project_id}/profile": Call(
        "write", {"attributes": {"current_phase": "alpha"}}, headers=ANY_VERSION
    ),
    "GET /v1/projects/{project_id}/profile/history": Call("read"),
    "POST /v1/projects/{project_id}/profile/derive": Call("write"),
    "GET /v1/agents/{agent_id}/profile-context": Call("read", query={"user_id": "{user_id}"}),
    "POST /v1/projects": Call("admin", {"project_name": "P", "owner_id": "{user_id}"}),
    "GET /v1/projects": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/projects/{project_id}": Call("read"),
    "DELETE /v1/projects/{project_id}": Call("admin", query={"confirm": "true"}),
    "PATCH /v1/projects/{project_id}": Call("admin", {"project_name": "Renamed"}),
    "GET /v1/projects/{project_id}/members": Call("read"),
    "PUT /v1/projects/{project_id}/members/{user_id}": Call("admin", {"role": "viewer"}),
    "DELETE /v1/projects/{project_id}/members/{user_id}": Call("admin"),
    "POST /v1/projects/{project_id}/transfer": Call("admin", {"to_user_id": "{user_id}"}),
    "GET /v1/projects/{project_id}/memories": Call("read"),
    "POST /v1/sessions": Call(
        "write", {"session_id": "{session_id}", "user_id": "{user_id}"}, creates=True
    ),
    "GET /v1/sessions": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/sessions/{session_id}": Call("read"),
    "DELETE /v1/sessions/{session_id}": Call("write", query={"confirm": "true"}),
    "PATCH /v1/sessions/{session_id}": Call("write", {"session_name": "Renamed"}),
    "POST /v1/sessions/{session_id}/end": Call("write"),
    "POST /v1/sessions/{session_id}/reopen": Call("write"),
    "POST /v1/sessions/{session_id}/messages": Call(
        "write", {"messages": [{"role": "user", "content": "Hello."}]}
    ),
    "GET /v1/sessions/{session_id}/window": Call("read"),
    "POST /v1/sessions/{session_id}/window/trim": Call("read", {"max_tokens": 100}),
    "GET /v1/sessions/{session_id}/messages": Call("read"),
    "DELETE /v1/sessions/{session_id}/messages": Call("write", query={"confirm": "true"}),
    "GET /v1/sessions/{session_id}/messages/{message_id}": Call("read"),
    "DELETE /v1/sessions/{session_id}/messages/{message_id}": Call("write"),
    "POST /v1/sessions/{session_id}/messages/delete": Call(
        "write", {"message_ids": ["{message_id}"]}
    ),
    "GET /v1/sessions/{session_id}/state": Call("read"),
    "PUT /v1/sessions/{session_id}/state": Call("write", {"goal": "Rome"}, headers=ANY_VERSION),
    "PATCH /v1/sessions/{session_id}/state": Call("write", {"goal": "Rome"}, headers=ANY_VERSION),
    "POST /v1/sessions/{session_id}/state/snapshots": Call("write"),
    "GET /v1/sessions/{session_id}/state/snapshots": Call("read"),
    "GET /v1/sessions/{session_id}/state/snapshots/{snapshot_id}": Call("read"),
    "POST /v1/sessions/{session_id}/state/snapshots/{snapshot_id}/restore": Call("write"),
    "POST /v1/sessions/{session_id}/compact": Call("write", {"force": True}),
    "GET /v1/sessions/{session_id}/summaries": Call("read"),
    "GET /v1/sessions/{session_id}/summaries/{summary_id}": Call("read"),
    "POST /v1/sessions/{session_id}/checkpoints": Call("write", {"namespace": "planner"}),
    "GET /v1/sessions/{session_id}/checkpoints": Call("read"),
    "GET /v1/sessions/{session_id}/checkpoints/{checkpoint_id}": Call("read"),
    "DELETE /v1/sessions/{session_id}/checkpoints/{checkpoint_id}": Call("write"),
    "POST /v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore": Call("write"),
    "GET /v1/sessions/{session_id}/approvals": Call("read"),
    "GET /v1/sessions/{session_id}/approvals/{tool_call_id}": Call("read"),
    "POST /v1/sessions/{session_id}/approvals/{tool_call_id}": Call(
        "write", {"decision": "approved"}
    ),
    "PUT /v1/sessions/{session_id}/saver/checkpoints/{checkpoint_id}": Call(
        "write",
        {"parent_id": "{checkpoint_id}", "checkpoint": {"type": "null", "data": ""}},
    ),
    "PUT /v1/sessions/{session_id}/saver/checkpoints/{checkpoint_id}/writes": Call(
        "write", {"task_id": "t", "writes": [WRITTEN]}
    ),
    "GET /v1/sessions/{session_id}/saver/checkpoints": Call("read"),
    "GET /v1/saver/checkpoints": Call("read", query={"checkpoint_id": "{checkpoint_id}"}),
    "DELETE /v1/sessions/{session_id}/saver": Call("write"),
    "POST /v1/sessions/{session_id}/saver/copy": Call("write", {"target_session_id": "copy"}),
    "POST /v1/saver/prune": Call("write", {"session_ids": ["{session_id}"], "strategy": "delete"}),
    "POST /v1/saver/runs/delete": Call("write", {"run_ids": ["{run_id}"]}),
    "POST /v1/blocks": Call("write", {"label": "notes", "user_id": "{user_id}"}),
    "GET /v1/blocks": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/blocks/{block_id}": Call("read"),
    "PATCH /v1/blocks/{block_id}": Call("write", {"value": "Rome."}, headers=ANY_VERSION),
    "DELETE /v1/blocks/{block_id}": Call("write", query={"confirm": "true"}),
    "POST /v1/blocks/{block_id}/append": Call("write", {"text": "Rome."}),
    "POST /v1/blocks/{block_id}/replace": Call("write", {"old": "Munich", "new": "Rome"}),
    "POST /v1/blocks/{block_id}/insert": Call("write", {"text": "Rome."}),
    "POST /v1/blocks/{block_id}/rewrite": Call("write", {"value": "Rome."}, headers=ANY_VERSION),
    "POST /v1/blocks/{block_id}/undo": Call("write", headers=ANY_VERSION),
    "POST /v1/blocks/{block_id}/redo": Call("write", headers=ANY_VERSION),
    "GET /v1/blocks/{block_id}/history": Call("read"),
    "POST /v1/folders": Call(
        "write", {"folder_name": "F", "scope": "user", "user_id": "{user_id}"}
    ),
    "GET /v1/folders": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/folders/{folder_id}": Call("read"),
    "PATCH /v1/folders/{folder_id}": Call("write", {"folder_name": "Renamed"}),
    "DELETE /v1/folders/{folder_id}": Call("write", query={"confirm": "true"}),
    "PUT /v1/folders/{folder_id}/agents/{agent_id}": Call("admin"),
    "DELETE /v1/folders/{folder_id}/agents/{agent_id}": Call("admin"),
    "POST /v1/folders/{folder_id}/files": Call("write", {"x": 1}, {"file_name": "x.json"}),
    "GET /v1/folders/{folder_id}/files": Call("read"),
    "GET /v1/folders/{folder_id}/files/{file_id}": Call("read"),
    "GET /v1/folders/{folder_id}/files/{file_id}/content": Call("read"),
    "POST /v1/folders/{folder_id}/files/{file_id}/reingest": Call("write"),
    "DELETE /v1/folders/{folder_id}/files/{file_id}": Call("write"),
    "GET /v1/folders/{folder_id}/files/{file_id}/passages": Call("read"),
    "POST /v1/folders/{folder_id}/passages": Call("write", {"content": "Words."}),
    "GET /v1/folders/{folder_id}/passages": Call("read"),
    "GET /v1/folders/{folder_id}/passages/{passage_id}": Call("read"),
    "DELETE /v1/folders/{folder_id}/passages/{passage_id}": Call("write"),
    "POST /v1/passages/search": Call("read", {"query": "rent", "folder_ids": ["{folder_id}"]}),
    "POST /v1/files/{file_id}/extract": Call("write", {}),
    "GET /v1/graph/entities": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/graph/entities/{entity_id}": Call("read"),
    "GET /v1/graph/entities/{entity_id}/memories": Call("read"),
    "PATCH /v1/graph/entities/{entity_id}": Call("write", {"entity_type": "person"}),
    "POST /v1/graph/entities/{entity_id}/aliases": Call("write", {"alias": "Annie"}),
    "DELETE /v1/graph/entities/{entity_id}/aliases": Call("write", query={"alias": "Ana Maria"}),
    "POST /v1/graph/entities/{entity_id}/merge": Call(
        "write", {"entity_ids": ["{other_entity_id}"]}
    ),
    "POST /v1/graph/entities/{entity_id}/split": Call("write", {"name": "Another Ana"}),
    "GET /v1/graph/changes": Call("read"),
    "POST /v1/graph/changes/{change_id}/undo": Call("write"),
    "GET /v1/graph/relations": Call("read", query={"user_id": "{user_id}"}),
    "POST /v1/graph/relations": Call(
        "write",
        {"source_id": "{entity_id}", "relation": "knows", "destination": "Ben"},
    ),
    "GET /v1/graph/relations/{relation_id}/history": Call("read"),
    "PATCH /v1/graph/relations/{relation_id}": Call("write", {"confidence": 0.5}),
    "DELETE /v1/graph/relations/{relation_id}": Call("write"),
    "GET /v1/graph/neighbours": Call("read", query={"entity_id": "{entity_id}"}),
    "GET /v1/graph/paths": Call("read", query={"from": "{entity_id}", "to": "{other_entity_id}"}),
    "GET /v1/graph/search": Call("read", query={"q": "Where is Ana?", "user_id": "{user_id}"}),
    "GET /v1/agents/{agent_id}/blocks": Call("read"),
    "PUT /v1/agents/{agent_id}/blocks/{block_id}": Call("write"),
    "DELETE /v1/agents/{agent_id}/blocks/{block_id}": Call("write"),
    "POST /v1/sessions/{session_id}/context": Call("read", {"query": "Munich"}),
    "POST /v1/messages/search": Call(
        "read", {"query": "Munich", "user_id": "{user_id}", "session_id": "{session_id}"}
    ),
    "POST /v1/memories": Call("write", SAVED | {"user_id": "{user_id}"}, creates=True),
    "GET /v1/memories": Call("read", query={"user_id": "{user_id}"}),
    "DELETE /v1/memories": Call("write", query={"user_id": "{user_id}", "confirm": "true"}),
    "POST /v1/memories/validate": Call("read", SAVED | {"user_id": "{user_id}"}, creates=True),
    "POST /v1/memories/search": Call(
        "read", {"query": "Munich", "user_id": "{user_id}", "session_id": "{session_id}"}
    ),
    "GET /v1/memories/stats": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/memories/decisions": Call("read", query={"user_id": "{user_id}"}),
    "POST /v1/memories/delete": Call("write", {"user_id": "{user_id}", "confirm": True}),
    "GET /v1/memories/{memory_id}": Call("read"),
    "PATCH /v1/memories/{memory_id}": Call("write", {"content": "She moved to Bonn."}),
    "DELETE /v1/memories/{memory_id}": Call("write", query={"hard": "true"}),
    "POST /v1/memories/{memory_id}/supersede": Call("write", {"content": "She moved to Bonn."}),
    "GET /v1/memories/{memory_id}/history": Call("read"),
    "POST /v1/memories/{memory_id}/restore": Call("write", {"history_id": "{history_id}"}),
    "POST /v1/memories/{memory_id}/feedback": Call("write", {"rating": "wrong"}),
    "GET /v1/memories/{memory_id}/feedback": Call("read"),
    "GET /v1/feedback/stats": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/tools": Call("read", query={"session_id": "{session_id}"}),
    "POST /v1/tools/{name}/call": Call(
        # The tool decides; those that write ask for more.
        "read",
        {"session_id": "{session_id}", "arguments": {"content": "She keeps bees."}},
    ),
    "POST /v1/sessions/{session_id}/extract": Call("write", {"prompt": "Only what she eats."}),
    "GET /v1/extractions": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/extractions/{run_id}": Call("read"),
    "GET /v1/usage": Call("read"),
    "GET /v1/jobs": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/jobs/stats": Call("read"),
    "GET /v1/jobs/{job_id}": Call("read"),
    "POST /v1/jobs/{job_id}/retry": Call("write"),
    "POST /v1/jobs/{job_id}/cancel": Call("write"),
    "POST /v1/webhooks": Call("admin", {"url": "https://kemem.invalid/new"}),
    "GET /v1/webhooks": Call("admin"),
    "GET /v1/webhooks/{webhook_id}": Call("admin"),
    "PATCH /v1/webhooks/{webhook_id}": Call("admin", {"enabled": False}),
    "DELETE /v1/webhooks/{webhook_id}": Call("admin"),
    "POST /v1/webhooks/{webhook_id}/rotate-secret": Call("admin"),
    "POST /v1/webhooks/{webhook_id}/test": Call("admin"),
    "GET /v1/webhooks/{webhook_id}/deliveries": Call("admin"),
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": Call("admin"),
    "GET /v1/export": Call("admin", query={"user_id": "{user_id}"}),
    "POST /v1/import": Call("admin", MANIFEST),
}

# More ids for the same operations: each is a way to somebody else's rows.
FURTHER = {
    "POST /v1/sessions (project)": Call(
        "write", {"user_id": "own-user", "project_id": "{project_id}"}
    ),
    "PATCH /v1/sessions/own-session (project)": Call("write", {"project_id": "{project_id}"}),
    "PATCH /v1/users/own-user (agent)": Call("write", {"agent_id": "{agent_id}"}),
    "POST /v1/sessions/own-session/messages (parent)": Call(
        "write",
        {"messages": [{"role": "user", "content": "Hi.", "parent_message_id": "{message_id}"}]},
    ),
    "GET /v1/sessions/own-session/messages (branch)": Call(
        "read", query={"branch": "{message_id}"}
    ),
    "GET /v1/sessions/own-session/summaries/{summary_id}": Call("read"),
    "GET /v1/sessions/own-session/state/snapshots/{snapshot_id}": Call("read"),
    "POST /v1/sessions/own-session/state/snapshots/{snapshot_id}/restore": Call("write"),
    "GET /v1/sessions/{session_id}/checkpoints/{archived_checkpoint_id}": Call("read"),
    "GET /v1/sessions/own-session/checkpoints/{archived_checkpoint_id}": Call("read"),
    "POST /v1/sessions/{session_id}/checkpoints/{archived_checkpoint_id}/restore": Call("write"),
    "POST /v1/sessions/own-session/checkpoints/{archived_checkpoint_id}/restore": Call("write"),
    "POST /v1/sessions/own-session/checkpoints (parent)": Call(
        "write", {"parent_id": "{checkpoint_id}"}
    ),
    "GET /v1/sessions/own-session/checkpoints (before)": Call(
        "read", query={"before": "{checkpoint_id}"}
    ),
    "GET /v1/sessions/own-session/checkpoints/{checkpoint_id}": Call("read"),
    "DELETE /v1/sessions/own-session/checkpoints/{checkpoint_id}": Call("write"),
    "POST /v1/sessions/own-session/checkpoints/{checkpoint_id}/restore": Call("write"),
    "GET /v1/sessions/own-session/approvals/{tool_call_id}": Call("read"),
    "POST /v1/sessions/own-session/approvals/{tool_call_id}": Call(
        "write", {"decision": "approved"}
    ),
    "GET /v1/sessions/own-session/saver/checkpoints (one)": Call(
        "read", query={"checkpoint_id": "{checkpoint_id}"}
    ),
    "PUT /v1/sessions/own-session/saver/checkpoints/{checkpoint_id}/writes": Call(
        "write", {"task_id": "t", "writes": [WRITTEN]}
    ),
    "POST /v1/sessions/own-session/saver/copy (target)": Call(
        "write", {"target_session_id": "{session_id}"}, creates=True
    ),
    "GET /v1/sessions/own-session/messages/{message_id}": Call("read"),
    "DELETE /v1/sessions/own-session/messages/{message_id}": Call("write"),
    "POST /v1/messages/search (user)": Call("read", {"query": "Munich", "user_id": "{user_id}"}),
    "POST /v1/messages/search (session)": Call(
        "read", {"query": "Munich", "session_id": "{session_id}"}
    ),
    "POST /v1/messages/search (agent)": Call("read", {"query": "Munich", "agent_id": "{agent_id}"}),
    "GET /v1/blocks (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/blocks (template)": Call("read", query={"template_id": "{block_id}"}),
    "POST /v1/folders (project)": Call(
        "write", {"folder_name": "F", "scope": "project", "project_id": "{project_id}"}
    ),
    "GET /v1/folders (project)": Call("read", query={"project_id": "{project_id}"}),
    "GET /v1/folders (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "POST /v1/passages/search (user)": Call("read", {"query": "rent", "user_id": "{user_id}"}),
    "POST /v1/passages/search (project)": Call(
        "read", {"query": "rent", "project_id": "{project_id}"}
    ),
    "POST /v1/passages/search (agent)": Call("read", {"query": "rent", "agent_id": "{agent_id}"}),
    "PUT /v1/agents/rival/blocks/{block_id}": Call("write"),
    "DELETE /v1/agents/rival/blocks/{block_id}": Call("write"),
    "POST /v1/agents (blocks)": Call("write", {"agent_name": "A", "block_ids": ["{block_id}"]}),
    "GET /v1/tools (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "POST /v1/tools/core_memory_append/call": Call(
        "write",
        {"session_id": "{session_id}", "arguments": {"label": "human", "content": "She has bees."}},
    ),
    **{
        f"POST /v1/tools/memory_delete/call ({kind})": Call(
            "write", {"session_id": "own-session", "arguments": {"memory_id": f"{{{kind}}}"}}
        )
        for kind in ("memory_id", "session_memory_id", "project_memory_id")
    },
    "POST /v1/memories (project)": Call(
        "write",
        SAVED | {"user_id": "own-user", "project_id": "{project_id}", "scope": "project"},
    ),
    "POST /v1/memories (inferred)": Call("write", READ | {"user_id": "{user_id}"}, creates=True),
    "POST /v1/memories (inferred, agent)": Call(
        "write", NOTHING | {"user_id": "own-user", "agent_id": "{agent_id}"}
    ),
    "POST /v1/memories (inferred, project)": Call(
        "write", READ | {"user_id": "own-user", "project_id": "{project_id}"}
    ),
    "POST /v1/memories (inferred, session)": Call(
        "write", READ | {"user_id": "own-user", "session_id": "{session_id}"}, creates=True
    ),
    "POST /v1/memories (ordered)": Call(
        "write", READ | {"user_id": "{user_id}"}, {"async": "true"}, creates=True
    ),
    "POST /v1/memories (ordered, session)": Call(
        "write",
        READ | {"user_id": "own-user", "session_id": "{session_id}"},
        {"async": "true"},
        creates=True,
    ),
    "GET /v1/jobs (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/jobs (session)": Call("read", query={"session_id": "{session_id}"}),
    "GET /v1/extractions (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/extractions (session)": Call("read", query={"session_id": "{session_id}"}),
    "GET /v1/extractions (job)": Call("read", query={"job_id": "{job_id}"}),
    "GET /v1/memories/decisions (run)": Call("read", query={"run_id": "{run_id}"}),
    "GET /v1/memories/decisions (job)": Call("read", query={"job_id": "{job_id}"}),
    "GET /v1/feedback/stats (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/memories (known_at)": Call("read", query={"user_id": "{user_id}"} | THEN),
    "POST /v1/memories/search (known_at)": Call(
        "read", {"query": "Munich", "user_id": "{user_id}"} | THEN
    ),
    "POST /v1/memories/search (known_at, session)": Call(
        "read", {"query": "train", "user_id": "own-user", "session_id": "{session_id}"} | THEN
    ),
    "POST /v1/memories/search (project)": Call(
        "read", {"query": "Apollo", "user_id": "own-user", "project_id": "{project_id}"}
    ),
    "POST /v1/memories/search (session)": Call(
        "read", {"query": "train", "user_id": "own-user", "session_id": "{session_id}"}
    ),
    "POST /v1/memories/search (session alone)": Call(
        "read", {"query": "train", "session_id": "{session_id}"}
    ),
    "POST /v1/memories/search (agent)": Call("read", {"query": "fee", "agent_id": "{agent_id}"}),
    "GET /v1/memories (project)": Call("read", query={"project_id": "{project_id}"}),
    "GET /v1/memories (session)": Call("read", query={"session_id": "{session_id}"}),
    "GET /v1/memories (agent)": Call("read", query={"agent_id": "{agent_id}"}),
    "GET /v1/memories (filter)": Call("read", query={"filters": '{"user_id": "{user_id}"}'}),
    "GET /v1/memories/stats (project)": Call("read", query={"project_id": "{project_id}"}),
    "POST /v1/memories/delete (filter)": Call(
        "write", {"filters": {"user_id": "{user_id}"}, "confirm": True}
    ),
    "POST /v1/memories/delete (project)": Call(
        "write", {"project_id": "{project_id}", "confirm": True, "hard": True}
    ),
    "DELETE /v1/memories (session)": Call(
        "write", query={"session_id": "{session_id}", "confirm": "true"}
    ),
    "PUT /v1/projects/own-project/members/{user_id}": Call("admin", {"role": "viewer"}),
    "DELETE /v1/projects/own-project/members/{user_id}": Call("admin"),
    **{
        f"{operation.replace('{memory_id}', f'{{{kind}_memory_id}}')}": OPERATIONS[operation]
        for kind in ("session", "project", "agent")
        for operation in OPERATIONS
        if "{memory_id}" in operation
    },
}


DOCUMENT = create_app(nullcontext()).openapi()
DOCUMENTED = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
WITH_BODY = sorted(name for name, one in DOCUMENTED.items() if "requestBody" in one)
GUARDED = sorted(DOCUMENTED.keys() - OPEN_TO_ANYONE)
WAYS_IN = {
    name: call
    for name, call in (OPERATIONS | FURTHER).items()
    if call.scope != "operator"
    and re.search(r"\{\w+\}", name + json.dumps([call.body, call.query]))
}


def filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(one, ids) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, ids) for one in value]
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], value)
    return value


async def make(client: AsyncClient, name: str, call: Call, ids: dict[str, str]) -> Response:
    method, path, *_ = name.split(" ")
    return await client.request(
        method,
        filled(path.removeprefix("/v1"), ids),
        json=filled(call.body, ids),
        params=filled(call.query, ids),
        headers=call.headers,
    )


def blurred(response: Response, ids: dict[str, str]) -> tuple[int, Any]:
    """An answer without what may differ: the ids asked for, new ids, the request, the time,
    and how often something was found, which is counted behind the answer.
    """
    text = re.sub(r'"(use_count|last_used_at)":[^,}]+', r'"\1":0', response.text)
    for name, value in sorted(ids.items(), key=lambda one: -len(one[1])):
        text = text.replace(value, f"<{name}>")
    text = re.sub(r"\b([a-z]{3})_[0-9a-f]{32}(_\d+)?\b", r"<new \1>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)
    text = re.sub(r"kem_\w+|(?<=\")[0-9a-f]{16}(?=\")", "<key>", text)
    text = re.sub(r'"duration_ms":\d+', '"duration_ms":0', text)
    body = json.loads(text) if text else None
    if isinstance(body, dict):
        body.pop("request_id", None)
    return response.status_code, body


def never_seen(ids: dict[str, str]) -> dict[str, str]:
    """Ids nobody has used before, not even an earlier test."""
    return {name: f"missing-{uuid4().hex}" for name in ids}


@pytest.fixture(scope="module")
async def world(app: FastAPI, runtime: Runtime) -> World:
    """A tenant with a row of every kind; nobody here may change any of them."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner)


@pytest.fixture(scope="module")
async def keys(runtime: Runtime, world: World) -> dict[str, str | None]:
    """Keys of `world` that nobody may use any more, and strings that never were one."""
    expired = await make_key(
        runtime, world.owner.tenant_id, *SCOPES, expires_at=datetime.now(UTC) - timedelta(seconds=1)
    )
    revoked = await make_key(runtime, world.owner.tenant_id, *SCOPES)
    await tenants(runtime).revoke_key(world.owner.tenant_id, revoked.key_id)
    known = world.owner.key
    return {
        "missing_key": None,
        "unknown_key": known[:-1] + ("0" if known[-1] != "0" else "1"),
        "expired_key": expired.key,
        "revoked_key": revoked.key,
    }


@pytest.fixture(scope="module")
async def by_scope(runtime: Runtime, app: FastAPI) -> AsyncIterator[dict[str, AsyncClient]]:
    """A client for each scope, in a tenant without rows."""
    empty = await make_tenant(runtime)
    async with AsyncExitStack() as stack:
        clients = {}
        for scope in SCOPES:
            caller = await make_key(runtime, empty.tenant_id, scope)
            clients[scope] = await stack.enter_async_context(client_of(app, caller.key))
        yield clients


async def settled(runtime: Runtime, app: FastAPI, caller: Caller, **restriction: str) -> str:
    """Rows of the caller's own, which `FURTHER` needs, and the key to try with."""
    async with client_of(app, caller.key) as admin:
        for path, body in (
            ("/agents", {"agent_id": "rival", "agent_name": "Rival"}),
            ("/users", {"user_id": "own-user", "agent_id": "rival"}),
            ("/projects", {"project_id": "own-project", "project_name": "P"}),
            ("/sessions", {"session_id": "own-session", "user_id": "own-user"}),
        ):
            response = await admin.post(path, json=body)
            assert response.status_code in {201, 409}, response.text
    if not restriction:
        return caller.key
    return (await make_key(runtime, caller.tenant_id, "write", **restriction)).key


class TestDocument:
    def test_every_operation_has_an_entry_in_the_table_above(self) -> None:
        assert len(DOCUMENTED) > 40
        assert OPERATIONS.keys() == DOCUMENTED.keys() - OPEN_TO_ANYONE

    def test_every_operation_names_its_security_scheme(self) -> None:
        guarded = [{"key": []}, {"key": [], "acting_user": []}]
        keyless = {name for name, one in DOCUMENTED.items() if one.get("security") != guarded}
        assert keyless == OPEN_TO_ANYONE

    @pytest.mark.parametrize("name", sorted(DOCUMENTED))
    def test_every_operation_says_what_it_does(self, name: str) -> None:
        operation = DOCUMENTED[name]

        assert len(operation["tags"]) == 1
        assert operation["summary"]
        assert operation["description"].endswith((".", "; no ids and no content."))

    @pytest.mark.parametrize("name", GUARDED)
    def test_every_operation_lists_its_errors(self, name: str) -> None:
        responses = DOCUMENTED[name]["responses"]

        assert "`missing_key`" in responses["401"]["description"]
        assert "`insufficient_scope`" in responses["403"]["description"]
        assert "`invalid_request`" in responses["422"]["description"]
        assert "`database_unavailable`" in responses["503"]["description"]
        for status, response in responses.items():
            if int(status) >= 400:
                [(media_type, content)] = response["content"].items()
                assert media_type == "application/problem+json"
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}

    @pytest.mark.parametrize("name", sorted(name for name in GUARDED if "{" in name))
    def test_every_operation_on_one_row_says_that_it_may_be_missing(self, name: str) -> None:
        assert "_not_found`" in DOCUMENTED[name]["responses"]["404"]["description"]

    def test_tags_stand_in_the_order_of_the_layers(self) -> None:
        tags = [tag["name"] for tag in DOCUMENT["tags"]]

        assert tags == [
            "tenants", "keys", "agents", "users", "projects", "sessions", "messages", "memories",
            "usage", "graph", "profiles", "extraction", "checkpoints", "blocks", "folders",
            "context", "tools", "feedback", "webhooks", "forgetting", "jobs", "exports",
            "operations",
        ]  # fmt: skip
        assert {one["tags"][0] for one in DOCUMENTED.values()} == set(tags)


class TestExamples:
    @pytest.mark.parametrize("name", WITH_BODY)
    async def test_every_body_has_an_example_that_is_valid(
        self, by_scope: dict[str, AsyncClient], world: World, name: str
    ) -> None:
        contents = DOCUMENTED[name]["requestBody"]["content"]
        if "multipart/form-data" in contents:
            pytest.skip("a file has no example in the document")
        [content] = contents.values()
        # A body that may be left out is one of two.
        [name_of, *_] = content["schema"].get("anyOf", [content["schema"]])
        schema = DOCUMENT["components"]["schemas"][name_of["$ref"].split("/")[-1]]
        assert schema["examples"]

        for example in schema["examples"]:
            call = replace(OPERATIONS[name], body=example)
            response = await make(by_scope[call.scope], name, call, never_seen(world.ids))

            if response.status_code == 422:
                assert response.json()["code"] != "invalid_request"


class TestKeys:
    @pytest.mark.parametrize("name", GUARDED)
    async def test_no_unknown_expired_or_revoked_key_comes_in(
        self, app: FastAPI, world: World, keys: dict[str, str | None], name: str
    ) -> None:
        for code, key in keys.items():
            async with client_of(app, key) as client:
                response = await make(client, name, OPERATIONS[name], world.ids)

            assert (response.status_code, response.json()["code"]) == (401, code)
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize("name", GUARDED)
    async def test_a_key_needs_the_scope_of_the_operation(
        self, by_scope: dict[str, AsyncClient], world: World, name: str
    ) -> None:
        call = OPERATIONS[name]
        refused = set()
        for scope, client in by_scope.items():
            response = await make(client, name, call, never_seen(world.ids))
            if response.status_code == 403:
                refused.add(scope)
                assert response.json()["code"] == "insufficient_scope"
                assert response.json()["required_scope"] == call.scope

        above = {"read": {"operator"}, "write": {"read", "operator"}}
        above |= {"admin": {"read", "write", "operator"}, "operator": {"read", "write", "admin"}}
        assert refused == above[call.scope]

    def test_whoever_may_only_read_changes_nothing(self) -> None:
        readers = {name for name, call in OPERATIONS.items() if call.scope == "read"}
        asking = {
            "POST /v1/memories/search",
            "POST /v1/memories/validate",
            "POST /v1/messages/search",
            "POST /v1/passages/search",
            "POST /v1/sessions/{session_id}/context",
            "POST /v1/sessions/{session_id}/window/trim",
            # Each tool asks for its own scope: tests/tools.
            "POST /v1/tools/{name}/call",
        }

        assert {name for name in readers if not name.startswith("GET ")} == asking

    @pytest.mark.parametrize("name", sorted(OPEN_TO_ANYONE))
    async def test_probes_need_no_key(self, app: FastAPI, name: str) -> None:
        async with client_of(app, None) as client:
            response = await client.get(f"http://test{name.split(' ')[1]}")

        assert response.status_code == 200


class TestAnotherTenant:
    @pytest.mark.parametrize("name", sorted(WAYS_IN))
    async def test_its_ids_are_answered_like_missing_ones(
        self, app: FastAPI, runtime: Runtime, dsn: str, world: World, name: str
    ) -> None:
        answers = []
        before = await rows_of(dsn, world.owner.tenant_id)
        for ids in (world.ids, never_seen(world.ids)):
            # A tenant for each: what the first call makes, the second must not find.
            key = await settled(runtime, app, await make_tenant(runtime))
            async with client_of(app, key) as client:
                answers.append(blurred(await make(client, name, WAYS_IN[name], ids), ids))

        assert answers[0] == answers[1]
        if "{" in name and not WAYS_IN[name].creates:
            assert answers[0][0] == 404
            assert answers[0][1]["code"].endswith("_not_found")
        assert await rows_of(dsn, world.owner.tenant_id) == before


RESTRICTIONS = {
    "another agent": {"agent_id": "rival"},
    "another user": {"user_id": "own-user"},
    "another pair": {"agent_id": "rival", "user_id": "own-user"},
}

MADE_ON_FIRST_USE = {"POST /v1/sessions/{session_id}/messages"}

# What a key restricted to a user may see beyond its own rows (memories/visibility_sql.py):
# agents, and what is known to all users of an agent.
SHARED_WITH_USERS = {
    "GET /v1/agents/{agent_id}",
    "GET /v1/users",
    "GET /v1/agents/{agent_id}/blocks",
    "GET /v1/memories/{agent_memory_id}",
    "GET /v1/memories/{agent_memory_id}/history",
    "PATCH /v1/memories/{agent_memory_id}",
    "DELETE /v1/memories/{agent_memory_id}",
    "POST /v1/memories/{agent_memory_id}/supersede",
    "POST /v1/memories/{agent_memory_id}/restore",
    "GET /v1/memories/{agent_memory_id}/feedback",
    "POST /v1/memories/{agent_memory_id}/feedback",
    "GET /v1/memories (agent)",
    "POST /v1/memories/search (agent)",
    "GET /v1/tools (agent)",
    "GET /v1/folders (agent)",
    "POST /v1/passages/search (agent)",
}

# Whoever may read a memory may say what it is worth.
RATING = {"POST /v1/memories/{agent_memory_id}/feedback"}


@pytest.fixture(scope="module")
async def bound(app: FastAPI, runtime: Runtime, world: World) -> dict[str, str]:
    """Keys of `world` that are restricted to somebody else's rows."""
    return {
        name: await settled(runtime, app, world.owner, **restriction)
        for name, restriction in RESTRICTIONS.items()
    }


class TestRestrictedKeys:
    """One tenant: ana is at home with helper; the keys are rival's, and those of its user."""

    @pytest.mark.parametrize("name", sorted(WAYS_IN))
    @pytest.mark.parametrize("who", RESTRICTIONS)
    async def test_rows_of_others_are_answered_like_missing_ones(
        self, app: FastAPI, dsn: str, world: World, bound: dict[str, str], who: str, name: str
    ) -> None:
        call = WAYS_IN[name]
        before = {
            (table, row)
            for table, row in await rows_of(dsn, world.owner.tenant_id)
            if '"own-user"' not in row
        }
        ids = never_seen(world.ids)
        async with client_of(app, bound[who]) as client:
            theirs = await make(client, name, call, world.ids)
            missing = await make(client, name, call, ids)

        assert before <= await rows_of(dsn, world.owner.tenant_id)
        if who == "another user" and name in SHARED_WITH_USERS:
            changing = not name.startswith("GET ") and "search" not in name
            allowed = 201 if name in RATING else 200
            assert theirs.status_code == (403 if changing and name not in RATING else allowed)
            return
        if call.creates or name in MADE_ON_FIRST_USE:
            # An id cannot be made twice in a tenant; that it is taken is all that is said.
            assert theirs.status_code in {403, 404, 409}
            assert theirs.json()["code"] in {
                "insufficient_scope", "key_restricted", "id_taken", "user_not_found",
                "agent_not_found", "session_not_found",
            }  # fmt: skip
            return
        assert blurred(theirs, world.ids) == blurred(missing, ids)
        if "{" in name:
            assert theirs.status_code in {403, 404}

    @pytest.mark.parametrize("who", RESTRICTIONS)
    async def test_lists_show_nothing_of_others(
        self, app: FastAPI, world: World, bound: dict[str, str], who: str
    ) -> None:
        seen = ""
        async with client_of(app, bound[who]) as client:
            for path in (
                "/users", "/sessions", "/projects", "/memories", "/memories/decisions", "/jobs",
                "/extractions", "/blocks", "/saver/checkpoints",
                "/memories?known_at=2090-01-01T00:00:00Z",
            ):  # fmt: skip
                response = await client.get(path)
                assert response.status_code == 200
                seen += response.text

        for name in (
            "user_id", "session_id", "project_id", "memory_id", "session_memory_id", "job_id",
            "run_id", "block_id", "checkpoint_id",
        ):  # fmt: skip
            assert f'"{world.ids[name]}"' not in seen
