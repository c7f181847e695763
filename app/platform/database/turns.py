"""Whose unit of work is next: the tenants take turns when the connections do not suffice for all.

A pool serves in order of arrival, so that whoever calls most is served most: beside a tenant with
48 callers, another's request waited for all of theirs. Here each tenant has a queue of its own, and
while another tenant is about, it holds no more than a third of the connections: what has begun
cannot be interrupted, and all of it shares the processor with whoever comes next.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.platform.database.failures import DatabaseBusyError, OverloadedError
from app.platform.observability.metrics import OVERLOADS, WAITING

MOST_WAITING: Final = 300
RECENT_SECONDS: Final = 10.0
"""How long a tenant counts as being about after it began something."""

BACKGROUND: Final[ContextVar[bool]] = ContextVar("background", default=False)
"""Whether it is a job that asks; jobs are the first to be put off."""


class Tenants:
    """When each tenant last began something; those of RECENT_SECONDS, the oldest first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun: OrderedDict[str, float] = OrderedDict()

    def note(self, tenant_id: str) -> bool:
        """Note that it begins something; whether it is the only one about."""
        now, begun = self._clock(), self._begun
        begun[tenant_id] = now
        begun.move_to_end(tenant_id)
        while next(iter(begun.values())) < now - RECENT_SECONDS:
            begun.popitem(last=False)
        return len(begun) == 1

    @property
    def is_alone(self) -> bool:
        """Whether only one tenant is about."""
        return len(self._begun) <= 1


class Turns:
    """The places of one pool."""

    def __init__(
        self, tenants: Tenants, size: int, *, most_waiting: int, patience: float, name: str
    ) -> None:
        """Give `size` places.

        Args:
            most_waiting: for a place, of background work half as many.
            patience: seconds to wait for one.
            name: of the metrics.

        """
        self._patience = patience
        self._tenants = tenants
        self._free = size
        self._share = min(size, max(2, size // 3))
        self._size = size
        self._most_waiting = most_waiting
        self._held: dict[str, int] = {}
        # In order of their next turns.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._count = 0
        self._name = name
        self._gauge = WAITING.labels(name)

    def turn(self, tenant_id: str) -> "Turn":
        """A place within an `async with`.

        Raises:
            OverloadedError: too many wait, and this tenant's part of them does already.
            DatabaseBusyError: none became free.

        """
        return Turn(self, tenant_id)

    async def take(self, tenant_id: str) -> None:
        """Wait for a place, which the caller gives back.

        Raises:
            OverloadedError: too many wait, and this tenant's part of them does already.
            DatabaseBusyError: none became free.

        """
        alone = self._tenants.note(tenant_id)
        held = self._held.get(tenant_id, 0)
        most = self._size if alone else self._share
        if self._free and held < most and tenant_id not in self._waiting:
            self._held[tenant_id] = held + 1
            self._free -= 1
            return
        await self._wait(tenant_id)

    async def _wait(self, tenant_id: str) -> None:
        queue = self._waiting.get(tenant_id) or deque()
        most = self._most_waiting // 2 if BACKGROUND.get() else self._most_waiting
        if self._count >= most and len(queue) >= most // max(1, len(self._waiting)):
            OVERLOADS.labels(self._name).inc()
            raise OverloadedError
        self._waiting[tenant_id] = queue
        place = asyncio.get_running_loop().create_future()
        queue.append(place)
        self._note_waiting(1)
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                # It was given in the moment in which the caller gave up.
                self.give_back(tenant_id)
            elif place in queue:
                queue.remove(place)
                self._left(tenant_id)
            if isinstance(error, TimeoutError):
                raise DatabaseBusyError from error
            raise

    def _left(self, tenant_id: str) -> None:
        """One of the tenant waits no longer."""
        self._note_waiting(-1)
        if self._waiting[tenant_id]:
            self._waiting.move_to_end(tenant_id)
        else:
            del self._waiting[tenant_id]

    def _note_waiting(self, change: int) -> None:
        self._count += change
        self._gauge.inc(change)

    def give_back(self, tenant_id: str) -> None:
        """Give a place back; the next tenant gets it."""
        held = self._held[tenant_id] - 1
        if held:
            self._held[tenant_id] = held
        else:
            del self._held[tenant_id]
        self._free += 1
        while self._free and self._waiting:
            following = self._next()
            if following is None:
                return
            self._give(following)

    def _next(self) -> str | None:
        """The tenant whose turn it is, if one that waits may hold more."""
        most = self._size if self._tenants.is_alone else self._share
        for tenant_id in self._waiting:
            if self._held.get(tenant_id, 0) < most:
                return tenant_id
        return None

    def _give(self, tenant_id: str) -> None:
        place = self._waiting[tenant_id].popleft()
        self._left(tenant_id)
        if not place.done():
            self._held[tenant_id] = self._held.get(tenant_id, 0) + 1
            self._free -= 1
            place.set_result(None)


@dataclass(frozen=True, slots=True)
class Turn:
    """A place of one tenant, from the beginning of a block to its end."""

    turns: Turns
    tenant_id: str

    async def __aenter__(self) -> None:
        await self.turns.take(self.tenant_id)

    async def __aexit__(self, *_ending: object) -> None:
        self.turns.give_back(self.tenant_id)


@dataclass(frozen=True, slots=True)
class PoolTurns:
    """The places for units of work, and those for hot reads."""

    units: Turns
    reads: Turns


def turns_of(size: int, most_waiting: int, patience: float) -> PoolTurns:
    """Turns for two pools of `size`; searches are the last to be refused."""
    turns = partial(Turns, Tenants(time.monotonic), size, patience=patience)
    return PoolTurns(
        turns(most_waiting=most_waiting, name="units"),
        turns(most_waiting=2 * most_waiting, name="reads"),
    )
