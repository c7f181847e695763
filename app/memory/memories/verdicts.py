"""What the gate decided, as the row that is kept of it; never anything sensitive. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.identity.tenants.access import Principal
from app.memory.memories.gate import GateReason
from app.platform.database.ids import new_id

CHARACTERS = 2000
"""A refused text is kept this far; whole books are refused too."""


def verdict_row(
    principal: Principal,
    *,
    place: Mapping[str, Any],
    content: str,
    source: str,
    accepted: bool,
    reasons: Sequence[GateReason] = (),
    memory_id: str | None = None,
    event: str | None = None,
    evidence: Sequence[str] = (),
    job_id: str | None = None,
    run_id: str | None = None,
) -> dict[str, Any]:
    """A row of `gate_decisions`.

    Args:
        place: names user, agent, session, project and scope.
        reasons: every broken rule; none although refused means that it was known already.
        memory_id: the memory it made, changed or repeats.
        event: what became of it; REJECT when it was refused and nothing is said.
        evidence: ids of the messages that support it.
        job_id: the job that proposed it, and `run_id` its run.

    """
    codes = [reason.code for reason in reasons]
    return {
        "tenant_id": principal.tenant_id,
        "decision_id": new_id("gat"),
        "verdict": "accepted" if accepted else "rejected",
        "codes": codes or ([] if accepted else ["duplicate"]),
        "reasons": [asdict(reason) for reason in reasons],
        # A secret in any field condemns the record of all of them.
        "content": None if "sensitive" in codes else content[:CHARACTERS],
        "user_id": place["user_id"],
        "agent_id": place["agent_id"],
        "session_id": place["session_id"],
        "project_id": place["project_id"],
        "scope": place["scope"],
        "memory_id": memory_id,
        "source": source,
        "event": event or (None if accepted else "REJECT"),
        "evidence": list(evidence),
        "job_id": job_id,
        "run_id": run_id,
        "actor": principal.key_id,
    }
