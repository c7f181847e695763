"""How many rankings run at once in one process."""

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from app.language.text.offload import AT_ONCE, INLINE_PRODUCTS, in_turn
from tests.support.patience import PATIENCE

MANY = INLINE_PRODUCTS + 1


@dataclass
class Crowd:
    """Counts who is inside, and lets nobody out before it is opened."""

    inside: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    full: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def enter(self, number: int) -> int:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside >= AT_ONCE:
                self.full.set()
        self.opened.wait(PATIENCE)
        with self.lock:
            self.inside -= 1
        return number


async def test_so_many_run_at_once_and_the_others_wait_their_turn() -> None:
    crowd = Crowd()
    tasks = [
        asyncio.create_task(in_turn(MANY, crowd.enter, number)) for number in range(3 * AT_ONCE)
    ]

    assert await asyncio.to_thread(crowd.full.wait, PATIENCE)
    await asyncio.sleep(0.1)
    assert crowd.most == AT_ONCE
    crowd.opened.set()

    assert await asyncio.gather(*tasks) == list(range(3 * AT_ONCE))
    assert crowd.most == AT_ONCE


@pytest.mark.parametrize(
    ("products", "at_once"),
    [(0, True), (INLINE_PRODUCTS - 1, True), (INLINE_PRODUCTS, True), (MANY, False)],
)
async def test_only_what_takes_long_leaves_the_loop(products: int, *, at_once: bool) -> None:
    ran_in = await in_turn(products, threading.get_ident)

    assert (ran_in == threading.get_ident()) is at_once


@pytest.mark.parametrize("products", [0, MANY])
async def test_what_is_raised_reaches_the_caller(products: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2 * AT_ONCE):
        with pytest.raises(ZeroDivisionError):
            await in_turn(products, fail)
