"""Our memories, outcomes, history and jobs in the shapes that mem0's clients read. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from app.governance.operations.schemas import JobRead
from app.integrations.mem0.filters import APP_KEY, expiration_date, text_of
from app.integrations.mem0.schemas import shown_id
from app.memory.memories.schemas import Outcome
from app.memory.memories.search_schemas import DecisionRead, HistoryRead

Shown = dict[str, Any]

_STATUSES: Final = {
    "pending": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED", "dead": "FAILED",
    "cancelled": "FAILED",
}  # fmt: skip
_EVENTS: Final = {
    "ADD": "ADD", "UPDATE": "UPDATE", "SUPERSEDE": "ADD", "MERGE": "ADD", "DELETE": "DELETE",
}  # fmt: skip
"""Those of mem0; what replaces others is new, and says what it replaced."""
_ROLES: Final = {"user", "assistant"}
_HISTORY: Final = _EVENTS | {"SUPERSEDE": "UPDATE", "MERGE": "UPDATE"}


def memory(row: Mapping[str, Any], fields: Sequence[str] | None = None) -> Shown:
    """A memory; `row` has the fields of a `MemoryRead`."""
    shown = {
        "id": shown_id(row["memory_id"]),
        "memory": row["content"],
        "user_id": row["user_id"],
        "agent_id": row["agent_id"],
        "app_id": row["metadata"].get(APP_KEY),
        # Some routes of mem0 say run_id and some session_id.
        "run_id": row["session_id"],
        "session_id": row["session_id"],
        "metadata": _metadata(row["metadata"]),
        "role": row["metadata"].get("role"),
        "categories": [row["memory_type"]],
        "created_at": _time(row["said_at"] or row["create_time"]),
        "updated_at": _time(row["update_time"]),
        "expiration_date": expiration_date(row["expires_at"]),
        "immutable": False,
        "structured_attributes": None,
        "replaced_by": row["superseded_by"] and shown_id(row["superseded_by"]),
        "synthesized": False,
    }
    return _only(shown, fields)


def _metadata(stored_: Mapping[str, Any]) -> Shown | None:
    """The client's own metadata: without the app, and without who said it, which we add."""
    own = {
        name: value
        for name, value in stored_.items()
        if name != APP_KEY and not (name == "role" and value in _ROLES)
    }
    return own or None


def hit(row: Mapping[str, Any], fields: Sequence[str] | None = None) -> Shown:
    """A memory that a search found; `score` is what `threshold` is compared with."""
    scored = {
        "score": row["score"],
        "score_breakdown": {name: row[name] for name in ("similarity", "relevance")},
    }
    return _only(memory(row) | scored, fields)


def _only(shown: Shown, fields: Sequence[str] | None) -> Shown:
    if not fields:
        return shown
    return {name: value for name, value in shown.items() if name in {"id", *fields}}


def _time(value: datetime) -> str:
    return text_of(value)


def stored(outcomes: Sequence[Outcome]) -> list[Shown]:
    """What `infer=false` made of each message; one that was stored before is NONE."""
    return [
        {
            "id": shown_id(outcome.memory_id),
            "data": {"memory": outcome.memory.content if outcome.memory else None},
            "memory": outcome.memory.content if outcome.memory else None,
            "event": _EVENTS.get(outcome.event, "NONE"),
        }
        for outcome in outcomes
        if outcome.memory_id is not None
    ]


def inferred(outcomes: Sequence[Outcome]) -> list[Shown]:
    """What was made of proposals that changed something."""
    return [
        {
            "id": shown_id(outcome.memory_id),
            "memory": outcome.memory.content if outcome.memory else outcome.content,
            "data": {"memory": outcome.memory.content if outcome.memory else outcome.content},
            "event": _EVENTS[outcome.event],
        }
        | ({"previous_memory": outcome.previous} if outcome.previous else {})
        | (
            {"replaced": [shown_id(memory_id) for memory_id in outcome.replaced]}
            if outcome.replaced
            else {}
        )
        for outcome in outcomes
        if outcome.memory_id is not None and outcome.event in _EVENTS
    ]


def rejected(outcomes: Sequence[Outcome]) -> list[Shown]:
    """What the gate refused, and why."""
    return [
        {
            "memory": outcome.content,
            "reasons": [
                {"code": reason.code, "detail": reason.detail} for reason in outcome.reasons
            ],
        }
        for outcome in outcomes
        if outcome.event == "REJECT"
    ]


def history(entry: HistoryRead, user_id: str | None) -> Shown:
    """One change of a memory."""
    before, after = entry.before or {}, entry.after or {}
    metadata = (after or before).get("metadata") or {}
    kind = (after or before).get("memory_type")
    return {
        "id": shown_id(entry.history_id),
        "memory_id": shown_id(entry.memory_id),
        "input": None,
        "old_memory": before.get("content"),
        "new_memory": after.get("content"),
        "user_id": user_id,
        "event": _HISTORY.get(entry.event, entry.event),
        "metadata": _metadata(metadata),
        "categories": [kind] if kind else None,
        "created_at": _time(entry.create_time),
        "updated_at": _time(entry.create_time),
    }


def event(job: JobRead, decisions: Sequence[DecisionRead]) -> Shown:
    """A job that adds memories, with what became of what it read."""
    shown: Shown = {
        "id": shown_id(job.job_id),
        "event_type": "ADD" if job.kind == "infer" else "DELETE",
        "status": _STATUSES[job.status],
        "payload": {"user_id": job.user_id, "agent_id": job.agent_id, "run_id": job.session_id},
        "metadata": {},
        "results": [
            _result(decision)
            for decision in decisions
            if decision.memory_id is not None and decision.event in _EVENTS
        ],
        "created_at": _time(job.create_time),
        "updated_at": _time(job.update_time),
        "started_at": job.started_at and _time(job.started_at),
        "completed_at": job.finished_at and _time(job.finished_at),
        "latency": (job.finished_at - job.create_time).total_seconds() * 1000
        if job.finished_at
        else None,
    }
    if job.error_code is not None:
        shown["error"] = {"code": job.error_code, "detail": job.error_detail}
    return shown


def event_at_once(decision: DecisionRead) -> Shown:
    """An add that was answered at once, by its verdict."""
    time = _time(decision.create_time)
    changed = decision.memory_id is not None and decision.event in _EVENTS
    return {
        "id": shown_id(decision.decision_id),
        "event_type": "ADD",
        "status": "SUCCEEDED" if decision.verdict == "accepted" else "FAILED",
        "payload": {
            "user_id": decision.user_id,
            "agent_id": decision.agent_id,
            "run_id": decision.session_id,
        },
        "metadata": {},
        "results": [_result(decision)] if changed else [],
        "created_at": time,
        "updated_at": time,
        "started_at": time,
        "completed_at": time,
        "latency": 0.0,
    }


def _result(decision: DecisionRead) -> Shown:
    return {
        "id": shown_id(decision.memory_id or ""),
        "event": _EVENTS[decision.event or ""],
        "memory": decision.content,
        "data": {"memory": decision.content},
    }


def paged(
    items: Sequence[Shown], count: int, page: int, size: int, link: Callable[[int], str]
) -> Shown:
    """A page with the links to its neighbours; before one past the end is the last."""
    last = max(1, math.ceil(count / size))
    return {
        "count": count,
        "next": link(page + 1) if page * size < count else None,
        "previous": link(min(page - 1, last)) if page > 1 else None,
        "results": list(items),
    }


def warned(shown: Shown, unused: Sequence[str]) -> Shown:
    """An answer that says which fields of the request changed nothing."""
    if unused:
        shown["warnings"] = [f"{name} was not used: KeMem has no counterpart." for name in unused]
    return shown
