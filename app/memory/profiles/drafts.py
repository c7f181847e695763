"""What is read for a profile and what is to be written into it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.language.llm.profiler import KnownMemory


@dataclass(frozen=True, slots=True)
class ValueChange:
    """What is to stand in a slot: a value, or None for nothing."""

    slot: str
    value: Any
    memory_ids: Sequence[str] = ()
    deriver: str | None = None


@dataclass(frozen=True, slots=True)
class ValueAuthor:
    """Who changes a profile, and by which job; a job leaves a user's values alone."""

    origin: str
    actor: str | None
    job_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A memory as a profiler sees it, its version, and when it last changed."""

    known: KnownMemory
    version: int
    update_time: datetime
