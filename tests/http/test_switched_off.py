"""What an operation does while memory is switched off (MEMORY_ENABLED=false): every operation of
the published document, called on a service that is off.
"""

from fastapi import FastAPI

from app.runtime import Runtime
from tests.support.operations import OPERATIONS, make
from tests.support.service import client_of, service
from tests.support.tenants import make_key, make_tenant
from tests.support.world import build_world

LAST = ("DELETE ", "POST /v1/memories/delete", "POST /v1/sessions/{session_id}/messages/delete")
"""What removes rows comes at the end, when the others have been called."""

REFUSED = {
    "DELETE /v1/graph/entities/{entity_id}/aliases",
    "DELETE /v1/graph/relations/{relation_id}",
    "PATCH /v1/blocks/{block_id}",
    "PATCH /v1/graph/entities/{entity_id}",
    "PATCH /v1/graph/relations/{relation_id}",
    "PATCH /v1/memories/{memory_id}",
    "PATCH /v1/projects/{project_id}/profile",
    "PATCH /v1/sessions/{session_id}/state",
    "PATCH /v1/users/{user_id}/profile",
    "POST /v1/blocks",
    "POST /v1/blocks/{block_id}/append",
    "POST /v1/blocks/{block_id}/insert",
    "POST /v1/blocks/{block_id}/redo",
    "POST /v1/blocks/{block_id}/replace",
    "POST /v1/blocks/{block_id}/rewrite",
    "POST /v1/blocks/{block_id}/undo",
    "POST /v1/feedback/used",
    "POST /v1/files/{file_id}/extract",
    "POST /v1/folders",
    "POST /v1/folders/{folder_id}/files",
    "POST /v1/folders/{folder_id}/files/{file_id}/reingest",
    "POST /v1/folders/{folder_id}/passages",
    "POST /v1/graph/changes/{change_id}/undo",
    "POST /v1/graph/entities/{entity_id}/aliases",
    "POST /v1/graph/entities/{entity_id}/merge",
    "POST /v1/graph/entities/{entity_id}/split",
    "POST /v1/graph/relations",
    "POST /v1/import",
    "POST /v1/memories",
    "POST /v1/memories/decisions/{decision_id}/store",
    "POST /v1/memories/validate",
    "POST /v1/memories/{memory_id}/feedback",
    "POST /v1/memories/{memory_id}/restore",
    "POST /v1/memories/{memory_id}/supersede",
    "POST /v1/projects/{project_id}/profile/derive",
    "POST /v1/sessions/{session_id}/approvals/{tool_call_id}",
    "POST /v1/sessions/{session_id}/checkpoints",
    "POST /v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore",
    "POST /v1/sessions/{session_id}/compact",
    "POST /v1/sessions/{session_id}/extract",
    "POST /v1/sessions/{session_id}/fork",
    "POST /v1/sessions/{session_id}/messages",
    "POST /v1/sessions/{session_id}/saver/copy",
    "POST /v1/sessions/{session_id}/state/snapshots",
    "POST /v1/sessions/{session_id}/state/snapshots/{snapshot_id}/restore",
    "POST /v1/users/{user_id}/memory-document",
    "POST /v1/users/{user_id}/profile/derive",
    "PUT /v1/projects/{project_id}/profile",
    "PUT /v1/sessions/{session_id}/saver/checkpoints/{checkpoint_id}",
    "PUT /v1/sessions/{session_id}/saver/checkpoints/{checkpoint_id}/writes",
    "PUT /v1/sessions/{session_id}/saver/content",
    "PUT /v1/sessions/{session_id}/state",
    "PUT /v1/users/{user_id}/profile",
}


async def test_only_what_remembers_is_refused(app: FastAPI, dsn: str, runtime: Runtime) -> None:
    """Reads, deletes and administration go on; nothing else is refused, and nothing is missed."""
    owner = await make_tenant(runtime)
    admin = await make_key(runtime, owner.tenant_id, "read", "write", "admin", "operator")
    async with client_of(app, admin.key) as client:
        world = await build_world(runtime, client, owner)
    names = sorted(OPERATIONS, key=lambda name: (name.startswith(LAST), -name.count("/")))

    async with service(dsn, enabled=False) as off, client_of(off, admin.key) as client:
        answers = {name: await make(client, name, OPERATIONS[name], world.ids) for name in names}

    refused = {
        name
        for name, answer in answers.items()
        if answer.status_code == 503 and answer.json()["code"] == "memory_disabled"
    }
    assert refused == REFUSED
    assert not [name for name, answer in answers.items() if answer.status_code == 500]
