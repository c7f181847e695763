"""Forgetting and erasures: what goes by itself, a look ahead, and receipts of what was erased."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from kemem.base import listing
from kemem.block_editing import AsyncCollect, AsyncSend, Collect, Send
from kemem.reading import Answer, Listing
from kemem.writing import Call, Page, fetch, fetch_pages, post

ForgettingStep = Literal[
    "expired", "source_deleted", "session_deleted", "superseded", "over_capacity", "decayed",
    "purged", "messages", "archived_checkpoints", "snapshots", "saver_checkpoints",
]  # fmt: skip
Eviction = Literal["confidence", "hybrid"]
ErasureKind = Literal["agent", "user", "project", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingPolicy(Answer):
    """What is forgotten by itself, and when; days of 0 keep for ever."""

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
    """One of the last runs; `result` counts what went, by step."""

    job_id: str
    status: str = ""
    result: Mapping[str, Any] | None = None
    error_code: str | None = None
    due_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingPolicies(Answer):
    """What is in force, and what the last runs did. `agents` holds, by id, the policies of those
    that say something of their own, as the service has them.
    """

    policy: ForgettingPolicy
    agents: Mapping[str, Any] = field(default_factory=dict)
    purge_days: int = 0
    last_runs: tuple[ForgettingRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingCandidate(Answer):
    """Something that would go, and why."""

    id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingDue(Answer):
    """How much a step would take now, with the first of it."""

    step: str
    due: int = 0
    sample: tuple[ForgettingCandidate, ...] = ()

    def __str__(self) -> str:
        return f"{self.step}: {self.due}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingShadow(Answer):
    """What another way to choose would take beyond the caps, beside the policy in force."""

    eviction: str
    buckets: int = 0
    both: int = 0
    only_policy: tuple[str, ...] = ()
    only_shadow: tuple[str, ...] = ()
    truncated: bool = False
    """Whether not all buckets were compared, or not all ids are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten(Answer):
    """What would go (`preview`), or the job that does it (`run`): `memory.wait` takes it."""

    dry_run: bool = True
    job_id: str | None = None
    steps: tuple[ForgettingDue, ...] = ()
    shadow: ForgettingShadow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure(Answer):
    """The receipt of an erasure: how much went, and no word of whose it was."""

    erasure_id: str
    kind: str = ""
    subject_hash: str = ""
    """Of kind and id, keyed by the tenant; `erasures.list` finds it for whoever knows the id."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    actor: str | None = None
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.erasure_id}: {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ErasureList(Listing[Erasure]):
    """Receipts, newest first."""

    results: tuple[Erasure, ...] = ()


class Forgetting:
    """What is forgotten by itself, as `memory.forgetting`. It takes an admin's key."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def policy(self) -> ForgettingPolicies:
        """The policies in force and the last ten runs."""
        return self._send(_policy())

    def preview(
        self,
        steps: Sequence[ForgettingStep] | None = None,
        *,
        agent_id: str | None = None,
        eviction: Eviction | None = None,
    ) -> Forgotten:
        """What would go now; changes nothing.

        Args:
            steps: all when left out.
            agent_id: only what is of this agent.
            eviction: also compare with what would go beyond the caps if this chose.

        """
        return self._send(_preview(steps, agent_id, eviction))

    def run(
        self, steps: Sequence[ForgettingStep] | None = None, *, agent_id: str | None = None
    ) -> Forgotten:
        """Have it forgotten now; `memory.wait` takes the answer."""
        return self._send(_run(steps, agent_id))


class AsyncForgetting:
    """`Forgetting` for asyncio."""

    def __init__(self, send: AsyncSend) -> None:
        self._send = send

    async def policy(self) -> ForgettingPolicies:
        """As `Forgetting.policy`."""
        return await self._send(_policy())

    async def preview(
        self,
        steps: Sequence[ForgettingStep] | None = None,
        *,
        agent_id: str | None = None,
        eviction: Eviction | None = None,
    ) -> Forgotten:
        """As `Forgetting.preview`."""
        return await self._send(_preview(steps, agent_id, eviction))

    async def run(
        self, steps: Sequence[ForgettingStep] | None = None, *, agent_id: str | None = None
    ) -> Forgotten:
        """As `Forgetting.run`."""
        return await self._send(_run(steps, agent_id))


class Erasures:
    """Receipts of what was erased, as `memory.erasures`. It takes an admin's key."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def list(
        self,
        kind: ErasureKind | None = None,
        id: str | None = None,  # noqa: A002 (the service's word)
        *,
        limit: int | None = 100,
    ) -> ErasureList:
        """Up to `limit` receipts, newest first; None means all. An `id` needs its `kind`."""
        return listing(ErasureList, self._collect(_erasures(kind, id, limit), limit))


class AsyncErasures:
    """`Erasures` for asyncio."""

    def __init__(self, collect: AsyncCollect) -> None:
        self._collect = collect

    async def list(
        self,
        kind: ErasureKind | None = None,
        id: str | None = None,  # noqa: A002 (the service's word)
        *,
        limit: int | None = 100,
    ) -> ErasureList:
        """As `Erasures.list`."""
        return listing(ErasureList, await self._collect(_erasures(kind, id, limit), limit))


def _policy() -> Call[ForgettingPolicies]:
    return fetch(ForgettingPolicies, "forgetting")


def _preview(
    steps: Sequence[ForgettingStep] | None, agent_id: str | None, eviction: Eviction | None
) -> Call[Forgotten]:
    body = {"dry_run": True, "agent_id": agent_id, "eviction": eviction}
    return post(Forgotten, "forgetting", "run", body=body | _steps(steps))


def _run(steps: Sequence[ForgettingStep] | None, agent_id: str | None) -> Call[Forgotten]:
    body = {"dry_run": False, "agent_id": agent_id}
    return post(Forgotten, "forgetting", "run", body=body | _steps(steps))


def _steps(steps: Sequence[ForgettingStep] | None) -> dict[str, Any]:
    """Raises TypeError for one step alone, whose letters would be read as steps."""
    if isinstance(steps, str):
        raise TypeError("steps is a list of them")
    return {} if steps is None else {"steps": list(steps)}


def _erasures(kind: str | None, one: str | None, limit: int | None) -> Call[Page[Erasure]]:
    if one is not None and kind is None:
        raise ValueError("an id is found with its kind beside it")
    return fetch_pages(Erasure, "erasures", limit=limit, kind=kind, id=one)
