"""How each operation of the published document is called, and further ways to the same rows."""

import re
from dataclasses import dataclass, field
from typing import Any

from httpx import AsyncClient, Response


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

# An item of a store.
STORED = {"op": "put", "namespace": ["users", "{user_id}"], "key": "likes", "value": {"n": 1}}

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
    "GET /v1/sessions/{session_id}/injections": Call("read"),
    "GET /v1/sessions/{session_id}/summaries": Call("read"),
    "GET /v1/sessions/{session_id}/summaries/{summary_id}": Call("read"),
    "POST /v1/sessions/{session_id}/checkpoints": Call("write", {"namespace": "planner"}),
    "GET /v1/sessions/{session_id}/checkpoints": Call("read"),
    "GET /v1/sessions/{session_id}/checkpoints/{checkpoint_id}": Call("read"),
    "DELETE /v1/sessions/{session_id}/checkpoints/{checkpoint_id}": Call("write"),
    "POST /v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore": Call("write"),
    "POST /v1/sessions/{session_id}/fork": Call("write", {"at_message_id": "{message_id}"}),
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
    "PUT /v1/sessions/{session_id}/saver/content": Call("write", {"content": {}}),
    "POST /v1/sessions/{session_id}/saver/content/read": Call(
        "read", {"chunks": ["d32f61940e393a97752652e84cd2865d"]}
    ),
    "GET /v1/sessions/{session_id}/saver/checkpoints": Call("read"),
    "GET /v1/saver/checkpoints": Call("read", query={"checkpoint_id": "{checkpoint_id}"}),
    "DELETE /v1/sessions/{session_id}/saver": Call("write"),
    "POST /v1/sessions/{session_id}/saver/copy": Call("write", {"target_session_id": "copy"}),
    "POST /v1/saver/prune": Call("write", {"session_ids": ["{session_id}"], "strategy": "delete"}),
    "POST /v1/saver/runs/delete": Call("write", {"run_ids": ["{extraction_id}"]}),
    "POST /v1/store/batch": Call(
        # What changes an item asks for more.
        "read",
        {
            "operations": [
                {"op": "get", "namespace": ["users", "{user_id}"], "key": "likes"},
                {"op": "search", "namespace": ["users", "{user_id}"], "query": "green tea"},
                {
                    "op": "list_namespaces",
                    "match": [{"type": "suffix", "path": ["{user_id}"]}],
                },
            ]
        },
    ),
    "POST /v1/store/sweep": Call("write"),
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
        "write", {"folder_name": "F", "scope": "user", "user_id": "{user_id}"}, creates=True
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
    "GET /v1/messages/{message_id}": Call("read"),
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
    "POST /v1/feedback/used": Call(
        "write", {"session_id": "{session_id}", "memory_ids": ["{memory_id}"]}
    ),
    "GET /v1/feedback/stats": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/tools": Call("read", query={"session_id": "{session_id}"}),
    "POST /v1/tools/{name}/call": Call(
        # The tool decides; those that write ask for more.
        "read",
        {"session_id": "{session_id}", "arguments": {"content": "She keeps bees."}},
    ),
    "POST /v1/sessions/{session_id}/extract": Call("write", {"prompt": "Only what she eats."}),
    "GET /v1/extractions": Call("read", query={"user_id": "{user_id}"}),
    "GET /v1/extractions/{extraction_id}": Call("read"),
    "GET /v1/usage": Call("read"),
    "POST /v1/memories/decisions/{decision_id}/store": Call("admin", {"memory_type": "fact"}),
    "POST /v1/evaluations": Call(
        "write", {"name": "n", "dataset": "d", "metrics": {"recall": 0.5}}, creates=True
    ),
    "GET /v1/evaluations": Call("read"),
    "GET /v1/evaluations/{evaluation_id}": Call("read"),
    "DELETE /v1/evaluations/{evaluation_id}": Call("admin"),
    "GET /v1/stats/effect": Call("read"),
    "GET /v1/stats/refusals": Call("read"),
    "GET /v1/stats/extraction": Call("read"),
    "GET /v1/stats/memories": Call("read"),
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
    # Without its window, so that its own messages are looked up in pieces.
    "POST /v1/sessions/{session_id}/context (excerpts)": Call(
        "read", {"query": "Munich", "include": {"window": False}}
    ),
    "POST /v1/sessions/own-session/context (excerpts)": Call(
        "read", {"query": "Munich", "excerpts": {"sessions": ["{session_id}"]}}
    ),
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
    "POST /v1/store/batch (owner)": Call(
        "write", {"operations": [STORED | {"user_id": "{user_id}"}]}, creates=True
    ),
    "POST /v1/store/batch (put)": Call("write", {"operations": [STORED]}),
    "POST /v1/store/batch (delete)": Call(
        "write",
        {"operations": [{"op": "delete", "namespace": ["users", "{user_id}"], "key": "likes"}]},
    ),
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
    "GET /v1/memories/decisions (extraction)": Call(
        "read", query={"extraction_id": "{extraction_id}"}
    ),
    "GET /v1/memories/decisions (former name)": Call("read", query={"run_id": "{extraction_id}"}),
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
    "GET /v1/memories (run)": Call("read", query={"run_id": "{session_id}"}),
    "GET /v1/memories (run, known_at)": Call("read", query={"run_id": "{session_id}"} | THEN),
    "POST /v1/memories/search (run)": Call("read", {"query": "train", "run_id": "{session_id}"}),
    "POST /v1/memories/search (run, known_at)": Call(
        "read", {"query": "train", "run_id": "{session_id}"} | THEN
    ),
    "POST /v1/memories/search (run, user)": Call(
        "read", {"query": "train", "user_id": "own-user", "run_id": "{session_id}"}
    ),
    "GET /v1/memories/stats (run)": Call("read", query={"run_id": "{session_id}"}),
    "DELETE /v1/memories (run)": Call("write", query={"run_id": "{session_id}", "confirm": "true"}),
    "POST /v1/memories/delete (run)": Call("write", {"run_id": "{session_id}", "confirm": True}),
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
