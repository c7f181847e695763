"""mem0's memories as lines that `POST /v1/import` takes, or the reason why one is refused.

Every batch of lines is an import of its own that has each of its memories whole, with users, agents
and sessions that they need and with their history: it is written in one transaction, or not.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, get_args
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import ValidationError

from app.cli.mem0_records import Change, MemoryRecord
from app.governance.exports.schemas import FORMAT
from app.identity.agents.repository import DEFAULT_AGENT_ID
from app.integrations.mem0.errors import InvalidMem0RequestError
from app.integrations.mem0.filters import APP_KEY, expiry
from app.language.text.normal_forms import content_hash
from app.memory.memories.gate import Gate, Proposal
from app.memory.memories.record_repository import KEPT, without_null
from app.memory.memories.schemas import MemoryCreate, MemoryType
from app.platform.values.fields import composed, is_own_id

Row = dict[str, Any]

Stored = Callable[[str], tuple[str | None, str] | None]
"""User and agent of a session that is there, by its id."""

BATCH_BYTES: Final = 900_000
"""Of lines; the client sends a mebibyte as one part."""

_TYPES: Final = frozenset(get_args(get_args(MemoryType)[0]))


class RefusedError(Exception):
    """A memory that is not imported: a code, and a sentence without its content."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


LONGEST_SESSION_ID: Final = 64


@dataclass(slots=True)
class Tally:
    """What became of the memories that were read."""

    memories: int = 0
    history: int = 0
    history_left_out: int = 0
    users: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    """The first of them: id, code and reason."""
    oldest: datetime | None = None
    newest: datetime | None = None

    def refuse(self, memory_id: str, code: str, detail: str) -> None:
        """Count a memory that is left out."""
        self.refused[code] += 1
        if len(self.refusals) < 20:
            self.refusals.append(f"{memory_id}: {code}: {detail}")

    def count(self, remembered: MemoryRecord) -> None:
        """Count a memory that is imported."""
        self.memories += 1
        self.oldest = min(self.oldest or remembered.created_at, remembered.created_at)
        self.newest = max(self.newest or remembered.updated_at, remembered.updated_at)


class Conversion:
    """Makes lines of memories; knows what it has made so far."""

    def __init__(
        self, gate: Gate, stored: Stored, *, user_id: str | None, run_prefix: str = ""
    ) -> None:
        """Convert memories under the rules of `gate`; those of nobody are of `user_id`.

        `stored` says whose a session is that is there already.
        """
        self.tally = Tally()
        self._gate = gate
        self._stored = stored
        self._user_id = user_id and composed(user_id)
        self._run_prefix = run_prefix
        self._runs: dict[str, tuple[str | None, str]] = {}
        self._texts: set[bytes] = set()

    def batches(self, memories: Iterable[MemoryRecord]) -> Iterator[list[bytes]]:
        """Lines of whole imports; none where every memory was refused."""
        batch = _Batch()
        for remembered in memories:
            try:
                rows = self._rows(remembered)
            except RefusedError as error:
                self.tally.refuse(remembered.memory_id, error.code, str(error))
                continue
            self.tally.count(remembered)
            batch.add(rows)
            if batch.size >= BATCH_BYTES:
                yield batch.lines()
                batch = _Batch()
        if batch.size:
            yield batch.lines()

    def _rows(self, remembered: MemoryRecord) -> list[tuple[str, Row, bool]]:
        """Kind, row and whether any row of its id will do. Raises RefusedError."""
        row = self._memory(remembered)
        user_id, agent_id, session_id = row["user_id"], row["agent_id"], row["session_id"]
        home = agent_id or DEFAULT_AGENT_ID
        rows: list[tuple[str, Row, bool]] = []
        if user_id is not None or agent_id is not None:
            rows.append(("agent", {"agent_id": home, "agent_name": home}, True))
        if user_id is not None:
            self.tally.users.add(user_id)
            rows.append(("user", {"agent_id": home, "user_id": user_id}, True))
        if agent_id is not None:
            self.tally.agents.add(agent_id)
        if session_id is not None:
            self.tally.runs.add(session_id)
            rows += self._session(session_id)
        history = list(self._history(row, remembered.history))
        self.tally.history += len(history)
        row["version"] = max(1, len(history))
        return [*rows, ("memory", row, False), *(("history", entry, False) for entry in history)]

    def _session(self, session_id: str) -> list[tuple[str, Row, bool]]:
        user_id, home = self._runs[session_id]
        stub = {"agent_id": home, "agent_name": home}
        row = {"agent_id": home, "session_id": session_id, "user_id": user_id}
        # Not any session of this id will do: it must be the user's.
        return [("agent", stub, True), ("session", row, False)]

    def _memory(self, remembered: MemoryRecord) -> Row:
        """The row of a memory. Raises RefusedError."""
        body = self._checked(remembered)
        text = str(body.messages)
        scope, scope_id = body.scope or "user", body.user_id or body.agent_id
        hashed = content_hash(text)
        bucket = json.dumps([scope, scope_id, body.user_id, body.agent_id]).encode()
        key = hashlib.sha256(bucket + hashed).digest()
        if key in self._texts:
            raise RefusedError("duplicate", "another memory of this owner has the same text")
        self._texts.add(key)
        return {
            "agent_id": body.agent_id,
            "confidence": 1.0,
            "content": text,
            "content_hash": base64.b64encode(hashed).decode(),
            "create_time": stamp(remembered.created_at),
            "expires_at": None if body.expires_at is None else stamp(body.expires_at),
            "external_id": body.external_id,
            "memory_id": own_memory_id(remembered.memory_id),
            "memory_type": body.memory_type,
            "metadata": body.metadata,
            "scope": scope,
            "scope_id": scope_id,
            "session_id": body.session_id,
            "source": "import",
            "tier": "long",
            "update_time": stamp(remembered.updated_at),
            "user_id": body.user_id,
            "version": 1,
            "visibility": "members",
        }

    def _checked(self, remembered: MemoryRecord) -> MemoryCreate:
        """The memory as a request of ours, past the gate. Raises RefusedError."""
        owner = {name: composed(value) for name, value in remembered.owner.items() if value}
        agent_id = owner.get("agent_id")
        run_id = owner.get("run_id")
        user_id = owner.get("user_id") or (None if agent_id else self._user_id)
        if user_id is None and agent_id is None:
            raise RefusedError("no_owner", "it names no user and no agent; --user gives it one")
        metadata, kind = _metadata(remembered)
        proposal = self._gate.redacted(Proposal(remembered.text, metadata=metadata))
        session_id = self._session_of(run_id, user_id, agent_id) if run_id and user_id else None
        if run_id and session_id is None:
            metadata = {**metadata, "mem0_run_id": run_id}
        try:
            expires_at = remembered.expiration_date and expiry(remembered.expiration_date)
            body = MemoryCreate.model_validate(
                {
                    "messages": proposal.content,
                    "user_id": user_id,
                    "agent_id": agent_id,
                    "session_id": session_id,
                    "scope": "user" if user_id else "agent",
                    "memory_type": kind,
                    "metadata": {**metadata, **proposal.metadata},
                    "external_id": None if _uuid(remembered.memory_id) else remembered.memory_id,
                    "expires_at": expires_at or None,
                    "infer": False,
                }
            )
        except ValidationError as error:
            faults = error.errors(include_input=False, include_url=False)
            detail = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in faults[:3])
            raise RefusedError("invalid", detail) from None
        except InvalidMem0RequestError as error:
            raise RefusedError("invalid", error.detail) from None
        if reasons := self._gate.check(proposal):
            raise RefusedError(reasons[0].code, reasons[0].detail)
        return body

    def _session_of(self, run_id: str, user_id: str, agent_id: str | None) -> str:
        """The session of a run. A session has one user, where a run of mem0 may have several.

        Who has it here keeps it, so that a later import puts nobody into another session.

        Raises RefusedError.
        """
        session_id = composed(f"{self._run_prefix}{run_id}")
        home = agent_id or DEFAULT_AGENT_ID
        if self._user_of(session_id, user_id, home) == user_id:
            return session_id
        own = f"{session_id}@{user_id}"
        if len(own) > LONGEST_SESSION_ID:
            own = f"{self._run_prefix}{uuid5(NAMESPACE_URL, own)}"
        if self._user_of(own, user_id, home) != user_id:
            raise RefusedError(
                "session_taken", f"session {own} here is somebody else's: use --run-prefix"
            )
        return own

    def _user_of(self, session_id: str, user_id: str, home: str) -> str | None:
        """Whose a session is; if it is new, that of `user_id`."""
        if session_id not in self._runs:
            there = self._stored(session_id) if is_own_id(session_id) else None
            self._runs[session_id] = there or (user_id, home)
        return self._runs[session_id][0]

    def _history(self, row: Row, changes: Iterable[Change]) -> Iterator[Row]:
        kept = [change for change in changes if not self._is_refused(change)]
        for version, change in enumerate(kept, 1):
            base = {**row, "version": version, "update_time": stamp(change.time)}
            yield {
                "after": _snapshot(base, change.new),
                "before": _snapshot({**base, "version": version - 1}, change.old),
                "create_time": stamp(change.time),
                "event": change.event,
                "history_id": f"his_{_uuid_of(change.change_id).hex}",
                "memory_id": row["memory_id"],
                "user_id": row["user_id"],
                "version": version,
            }

    def _is_refused(self, change: Change) -> bool:
        texts = [text for text in (change.old, change.new) if text]
        refused = any(
            "\x00" in text or self._gate.check_kept(text, extracted=False) for text in texts
        )
        self.tally.history_left_out += refused
        return refused


class _Batch:
    """Lines of one import, each row once."""

    def __init__(self) -> None:
        self.size = 0
        self._rows: dict[str, dict[bytes, None]] = {}

    def add(self, rows: Iterable[tuple[str, Row, bool]]) -> None:
        for kind, row, any_will_do in rows:
            stub: Row = {"parent": True} if any_will_do else {}
            line = _line({**stub, "row": row, "type": kind})
            lines = self._rows.setdefault(kind, {})
            if line not in lines:
                lines[line] = None
                self.size += len(line)

    def lines(self) -> list[bytes]:
        # Without a time, a user who was erased at any time is not brought back.
        lines = [_line({"format": FORMAT, "type": "manifest"})]
        counts: dict[str, int] = {}
        for kind in ("agent", "user", "session", "memory", "history"):
            rows = self._rows.get(kind, {})
            lines += rows
            counts[kind] = len(rows)
        checksum = hashlib.sha256(b"".join(lines)).hexdigest()
        return [*lines, _line({"counts": counts, "sha256": checksum, "type": "end"})]


def own_memory_id(memory_id: str) -> str:
    """The id here of a memory of mem0: the same UUID, so that its API shows the same id."""
    return f"mem_{_uuid_of(memory_id).hex}"


def stamp(time: datetime) -> str:
    """A time as PostgreSQL writes it in JSON, so that importing twice compares as equal."""
    text = time.astimezone(UTC).isoformat().removesuffix("+00:00")
    if "." in text:
        text = text.rstrip("0")
    return f"{text}+00:00"


def _metadata(remembered: MemoryRecord) -> tuple[dict[str, Any], str]:
    """Metadata with what has no column here, and the type."""
    metadata = dict(remembered.metadata)
    if app_id := remembered.owner.get("app_id"):
        metadata[APP_KEY] = composed(app_id)
    categories = list(remembered.categories)
    kind = next((category for category in categories if category in _TYPES), "fact")
    if [category for category in categories if category != kind]:
        metadata.setdefault("categories", categories)
    return metadata, kind


def _snapshot(row: Mapping[str, Any], text: str | None) -> Row | None:
    """What the history keeps of a memory; None where there was none."""
    if not text:
        return None
    known: Row = {**row, "content": text, "evidence": [], "status": "active", "embedding_model": ""}
    return without_null({name: known.get(name) for name in KEPT})


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _uuid_of(text: str) -> UUID:
    """The UUID that an id is; else one made of it, the same every time."""
    return _uuid(text) or uuid5(NAMESPACE_URL, text)
