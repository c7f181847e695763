"""Answers about forgetting (automatic deletion by policy) and about erasures on request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingPolicy(Answer):
    """What is deleted automatically, and when; 0 days means never."""

    enabled: bool = True
    max_facts: int = 0
    eviction: str = "confidence"
    decay_below: float = 0.0
    source_deleted_days: int = 0
    with_session: bool = False
    superseded_days: int = 0
    message_retention_days: int = 0
    checkpoint_retention_days: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingRun(Answer):
    """One of the last runs; `result` has the number deleted by each step."""

    job_id: str
    status: str = ""
    result: Mapping[str, Any] | None = None
    error_code: str | None = None
    due_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingPolicies(Answer):
    """The policies in force and the last runs. `agents` has, by id, the policies of agents that
    override the general one, as JSON.
    """

    policy: ForgettingPolicy
    agents: Mapping[str, Any] = field(default_factory=dict)
    purge_days: int = 0
    last_runs: tuple[ForgettingRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingCandidate(Answer):
    """A row that would be deleted, and why."""

    id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingDue(Answer):
    """Number of rows that a step would delete now, with a sample."""

    step: str
    due: int = 0
    sample: tuple[ForgettingCandidate, ...] = ()

    def __str__(self) -> str:
        return f"{self.step}: {self.due}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingShadow(Answer):
    """What another eviction strategy would delete, compared with the policy in force."""

    eviction: str
    buckets: int = 0
    both: int = 0
    only_policy: tuple[str, ...] = ()
    only_shadow: tuple[str, ...] = ()
    truncated: bool = False
    """Whether some buckets were not compared or some ids are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten(Answer):
    """What `preview` would delete, or the job that `run` started; `wait` accepts the latter."""

    dry_run: bool = True
    job_id: str | None = None
    steps: tuple[ForgettingDue, ...] = ()
    shadow: ForgettingShadow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure(Answer):
    """The receipt of an erasure: the number of rows by kind, but not whose they were."""

    erasure_id: str
    kind: str = ""
    subject_hash: str = ""
    """Hash of kind and id, keyed by the tenant; `list_erasures` finds it for a known id."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    actor: str | None = None
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.erasure_id}: {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ErasureList(Listing[Erasure]):
    """Receipts, newest first."""

    results: tuple[Erasure, ...] = ()
