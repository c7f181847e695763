"""Methods of `memory.forgetting` and `memory.erasures`."""

from collections.abc import Sequence

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.calls import Call, fetch, fetch_pages, post
from kemem.deprecated import OldErasureNames
from kemem.forgetting import Erasure, ErasureList, ForgettingPolicies, Forgotten
from kemem.options import ErasureKind, Eviction, ForgettingStep


class AsyncForgetting(AsyncResource):
    """Automatic deletion by policy. Every method takes an admin key, else ForbiddenError."""

    async def policy(self) -> ForgettingPolicies:
        """Return the policies in force and the last ten runs."""
        return await self._send(fetch(ForgettingPolicies, "forgetting"))

    async def preview(
        self,
        steps: Sequence[ForgettingStep] | None = None,
        *,
        agent_id: str | None = None,
        eviction: Eviction | None = None,
    ) -> Forgotten:
        """Return what would be deleted now; nothing is changed.

        Args:
            steps: all by default.
            agent_id: only data of this agent.
            eviction: also compare with another strategy for memories above the limit.

        """
        return await self._send(_run_call(steps, agent_id, eviction, dry_run=True))

    async def run(
        self, steps: Sequence[ForgettingStep] | None = None, *, agent_id: str | None = None
    ) -> Forgotten:
        """Start a job that deletes now; `memory.wait` accepts the answer."""
        return await self._send(_run_call(steps, agent_id, None, dry_run=False))


class AsyncErasures(OldErasureNames, AsyncResource):
    """Receipts of erasures. It takes an admin key, else ForbiddenError."""

    async def list_erasures(
        self,
        kind: ErasureKind | None = None,
        id: str | None = None,  # noqa: A002 (the name in the HTTP interface)
        *,
        limit: int | None = 100,
    ) -> ErasureList:
        """Return up to `limit` receipts, newest first; None means all.

        Raises:
            ValueError: `id` was given without its `kind`.

        """
        if id is not None and kind is None:
            raise ValueError("an id is found with its kind beside it")
        call = fetch_pages(Erasure, "erasures", limit=limit, kind=kind, id=id)
        return listing(ErasureList, await self._collect(call, limit))


def _run_call(
    steps: Sequence[ForgettingStep] | None,
    agent_id: str | None,
    eviction: Eviction | None,
    *,
    dry_run: bool,
) -> Call[Forgotten]:
    if isinstance(steps, str):
        # Its letters would be taken for steps.
        raise TypeError("steps is a list of them")
    body = {
        "dry_run": dry_run,
        "agent_id": agent_id,
        "eviction": eviction,
        "steps": None if steps is None else list(steps),
    }
    return post(Forgotten, "forgetting", "run", body=body)
