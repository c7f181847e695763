"""Lines of an export as arguments of mem0's `add(infer=False)`: one JSON object for each memory."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from app.integrations.mem0.filters import expiration_date, moment
from app.integrations.mem0.schemas import shown_id

ROLES: Final = ("user", "assistant", "system")


def as_mem0(lines: Iterable[bytes], left_out: Counter[str]) -> Iterator[bytes]:
    """A line for each memory that counts now; others are counted in `left_out`.

    Args:
        lines: of an export of ours.
        left_out: how many memories mem0 has no place for, by the reason.

    """
    now = datetime.now(UTC)
    for line in lines:
        value = json.loads(line)
        if value["type"] != "memory":
            continue
        row = value["row"]
        if row["status"] != "active":
            left_out[f"{row['status']}"] += 1
        elif row["scope"] == "project":
            left_out["of a project"] += 1
        elif row["expires_at"] is not None and moment(row["expires_at"]) <= now:
            left_out["expired"] += 1
        else:
            arguments = _arguments(row)
            yield json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(row["metadata"])
    role = metadata.pop("role") if metadata.get("role") in ROLES else "user"
    # mem0 keeps a date of its own in metadata where it is given one.
    metadata["created_at"] = row["said_at"] or row["create_time"]
    metadata["kemem_id"] = shown_id(row["memory_id"])
    metadata["memory_type"] = row["memory_type"]
    expires = row["expires_at"]
    arguments = {
        "messages": [{"role": role, "content": row["content"]}],
        "user_id": row["user_id"],
        "agent_id": row["agent_id"],
        "run_id": row["session_id"],
        "metadata": metadata,
        "expiration_date": None if expires is None else expiration_date(moment(expires)),
        "infer": False,
    }
    return {name: value for name, value in arguments.items() if value is not None}
