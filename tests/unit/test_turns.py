"""Whose unit of work is next, with a clock of the test's own and nothing but the loop."""

import asyncio

import pytest

from app.platform.database.failures import DatabaseBusyError, OverloadedError
from app.platform.database.turns import BACKGROUND, RECENT_SECONDS, Tenants, Turns
from tests.support.patience import PATIENCE


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """Callers that take a place, note it and keep it until they are told."""

    def __init__(self, size: int, most_waiting: int = 100, patience: float = PATIENCE) -> None:
        self.clock = Clock()
        self.turns = Turns(
            Tenants(self.clock), size, most_waiting=most_waiting, patience=patience, name="test"
        )
        self.order: list[str] = []
        self.working: dict[str, list[asyncio.Event]] = {}

    async def work(self, tenant_id: str) -> None:
        async with self.turns.turn(tenant_id):
            self.order.append(tenant_id)
            done = asyncio.Event()
            self.working.setdefault(tenant_id, []).append(done)
            await done.wait()

    async def begin(self, tenant_id: str, count: int = 1) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.work(tenant_id)) for _ in range(count)]
        await settle()
        return tasks

    async def end(self, tenant_id: str) -> None:
        self.working[tenant_id].pop(0).set()
        await settle()

    def held(self, tenant_id: str) -> int:
        return len(self.working.get(tenant_id, []))


async def settle() -> None:
    """Let everything go on as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def finish(scene: Scene, tasks: list[asyncio.Task[None]]) -> None:
    while not all(task.done() for task in tasks):
        for events in scene.working.values():
            while events:
                events.pop(0).set()
        await settle()


async def test_a_tenant_alone_has_all_places() -> None:
    scene = Scene(6)
    tasks = await scene.begin("loud", 7)
    assert scene.held("loud") == 6
    await scene.end("loud")
    assert scene.held("loud") == 6
    await finish(scene, tasks)


async def test_beside_another_it_holds_a_third() -> None:
    scene = Scene(6)
    tasks = await scene.begin("quiet")
    await scene.end("quiet")
    tasks += await scene.begin("loud", 5)
    assert scene.held("loud") == 2
    await scene.end("loud")
    assert scene.held("loud") == 2
    tasks += await scene.begin("quiet", 2)
    assert scene.held("quiet") == 2
    await finish(scene, tasks)


@pytest.mark.parametrize(("later", "held"), [(RECENT_SECONDS, 2), (RECENT_SECONDS + 0.1, 6)])
async def test_another_counts_for_some_seconds(later: float, held: int) -> None:
    scene = Scene(6)
    tasks = await scene.begin("quiet")
    await scene.end("quiet")
    scene.clock.now = later
    tasks += await scene.begin("loud", 10)
    assert scene.held("loud") == held
    await finish(scene, tasks)


async def test_tenants_take_turns_however_many_callers_they_have() -> None:
    scene = Scene(1)
    tasks = await scene.begin("loud", 10)
    tasks += await scene.begin("quiet", 2)
    tasks += await scene.begin("third", 1)
    await finish(scene, tasks)
    assert scene.order[:6] == ["loud", "loud", "quiet", "third", "loud", "quiet"]
    assert scene.order[6:] == ["loud"] * 7


async def test_whoever_gives_up_leaves_no_place_behind() -> None:
    scene = Scene(1)
    [holder] = await scene.begin("loud")
    [waiter, following] = await scene.begin("quiet", 2)
    waiter.cancel()
    await settle()
    scene.working["loud"].pop(0).set()
    await settle()
    assert holder.done()
    assert scene.held("quiet") == 1
    await finish(scene, [following])


async def test_a_place_that_comes_with_the_cancellation_is_given_on() -> None:
    scene = Scene(1)
    await scene.turns.take("loud")
    [waiter, following] = await scene.begin("quiet", 2)
    scene.turns.give_back("loud")
    waiter.cancel()
    await settle()
    assert waiter.cancelled()
    assert scene.held("quiet") == 1
    await finish(scene, [following])


async def test_a_cancellation_before_the_place_leaves_it_to_the_next() -> None:
    scene = Scene(1)
    await scene.turns.take("loud")
    [waiter, following] = await scene.begin("quiet", 2)
    waiter.cancel()
    scene.turns.give_back("loud")
    await settle()
    assert waiter.cancelled()
    assert scene.held("quiet") == 1
    await finish(scene, [following])


async def test_waiting_has_an_end() -> None:
    scene = Scene(1, patience=0.01)
    tasks = await scene.begin("loud", 2)
    with pytest.raises(DatabaseBusyError):
        await tasks[1]
    await finish(scene, tasks[:1])


async def test_beyond_the_most_that_wait_a_tenant_is_refused_and_another_is_not() -> None:
    scene = Scene(1, most_waiting=4)
    tasks = await scene.begin("loud", 5)
    assert not any(task.done() for task in tasks)
    [refused] = await scene.begin("loud")
    with pytest.raises(OverloadedError):
        await refused
    tasks += await scene.begin("quiet")
    assert not tasks[-1].done()
    await finish(scene, tasks)
    assert len(scene.order) == 6


async def test_background_work_is_refused_at_half() -> None:
    scene = Scene(1, most_waiting=4)
    tasks = await scene.begin("loud", 2)
    token = BACKGROUND.set(True)
    tasks += await scene.begin("loud")
    [refused] = await scene.begin("loud")
    BACKGROUND.reset(token)
    with pytest.raises(OverloadedError):
        await refused
    tasks += await scene.begin("loud")
    assert not tasks[-1].done()
    await finish(scene, tasks)
