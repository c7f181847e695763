"""What a processor may do, and that nothing it does loses work, or the service."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from app.platform.plugins.catalogue import LoadedProcessor
from app.platform.plugins.points import (
    POINTS,
    About,
    AfterSearch,
    AppendedMessage,
    BeforeAppend,
    BeforeStore,
    FoundMemory,
    StoredMemory,
)
from app.platform.plugins.runner import (
    MOST_HANGING,
    NO_CHAIN,
    ProcessorChain,
    ProcessorFailedError,
    ProcessorRunner,
)
from tests.support.patience import PATIENCE

ABOUT = About("acme", "ana", "default", "s1")


def runner(processor, *, seconds: float = 1.0, on_error="skip", waits=()) -> ProcessorRunner:
    points = frozenset(name for name in POINTS if hasattr(processor, name))
    return ProcessorRunner(
        LoadedProcessor("acme", processor, points, frozenset(waits), seconds, on_error)
    )


def said(*texts: str) -> BeforeAppend:
    messages = [
        AppendedMessage(str(place), "user", text, None, {"n": {"at": place}}, bound=text == "bound")
        for place, text in enumerate(texts)
    ]
    return BeforeAppend(ABOUT, tuple(messages))


class Doing:
    """A processor with one method."""

    def __init__(self, do, name="before_append") -> None:
        setattr(self, name, do)


async def ask(do, point=None, *, validate=lambda one: one, **options):
    point = point or said("one", "two", "bound")
    return await runner(Doing(do, point.NAME), **options).ask(point, validate)


def louder(point):
    return replace(
        point, messages=tuple(replace(one, content=one.content + "!") for one in point.messages)
    )


async def test_content_can_be_changed_and_messages_dropped():
    changed = await ask(louder)
    dropped = await ask(lambda point: replace(point, messages=point.messages[1:]))

    assert [one.content for one in changed.messages] == ["one!", "two!", "bound!"]
    assert [one.content for one in dropped.messages] == ["two", "bound"]
    assert await ask(lambda _point: None) == said("one", "two", "bound")


async def test_a_coroutine_is_waited_for():
    async def later(point):
        await asyncio.sleep(0)
        return louder(point)

    changed = await ask(later, waits={"before_append"})

    assert changed.messages[0].content == "one!"


def each(**changes):
    return lambda point: replace(
        point, messages=tuple(replace(one, **changes) for one in point.messages)
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _point: "a text",
        lambda point: point.messages,
        lambda point: replace(point, messages=None),
        lambda point: replace(point, about=replace(point.about, user_id="ben")),
        lambda point: replace(point, messages=(*point.messages, point.messages[0])),
        lambda point: replace(
            point, messages=(*point.messages, replace(point.messages[0], id="9"))
        ),
        lambda point: replace(point, messages=point.messages[:2]),
        lambda point: replace(point, messages=point.messages[::-1]),
        lambda point: replace(point, messages=({"id": "0"},)),
        each(role="system"),
        each(name="Ben"),
        each(bound=False),
    ],
)
@pytest.mark.parametrize("on_error", ["skip", "refuse"])
async def test_what_may_not_be_is_a_failure(wrong, on_error):
    if on_error == "skip":
        assert await ask(wrong) == said("one", "two", "bound")
    else:
        with pytest.raises(ProcessorFailedError):
            await ask(wrong, on_error="refuse")


async def test_only_where_it_may_things_are_dropped_or_reordered():
    memories = tuple(
        StoredMemory(str(number), "x", {}, "fact", "user", extracted=False) for number in range(3)
    )
    store = BeforeStore(ABOUT, memories)
    hits = tuple(FoundMemory(f"m{n}", "x", "fact", "user", 1.0, 0.5, {}) for n in range(3))
    search = AfterSearch(ABOUT, "tea", hits)

    assert await ask(lambda point: replace(point, memories=point.memories[1:]), store) == store
    turned = await ask(lambda point: replace(point, hits=point.hits[:0:-1]), search)
    assert [one.id for one in turned.hits] == ["m2", "m1"]
    assert await ask(lambda point: replace(point, query="coffee"), search) == search


async def test_what_breaks_a_rule_of_requests_is_a_failure():
    def strict(one):
        raise ValueError("too long")

    assert await ask(louder, validate=strict) == said("one", "two", "bound")
    with pytest.raises(ProcessorFailedError):
        await ask(louder, validate=strict, on_error="refuse")


async def test_what_is_changed_in_place_is_not_changed():
    def scribble(point):
        for one in point.messages:
            one.metadata["n"]["at"] = "elsewhere"
        raise RuntimeError

    given = said("one")
    assert (await ask(scribble, given)).messages[0].metadata == {"n": {"at": 0}}
    assert given == said("one")


@pytest.mark.parametrize(
    "error", [RuntimeError, ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
)
async def test_no_exception_gets_out(error, capsys):
    def stumble(_point):
        raise error("hunter2")

    async def stumble_later(_point):
        raise error("hunter2")

    given = said("one")
    assert await ask(stumble, given) == given
    assert await ask(stumble_later, given, waits={"before_append"}) == given
    with pytest.raises(ProcessorFailedError) as raised:
        await ask(stumble, given, on_error="refuse")
    assert raised.value.members == {"processor": "acme", "point": "before_append"}
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in "".join(capsys.readouterr())


async def test_time_is_limited_and_those_that_hang_are_not_asked_again():
    release = threading.Event()
    calls = 0

    def hang(point):
        nonlocal calls
        calls += 1
        release.wait(PATIENCE)
        return louder(point)

    asked, given = runner(Doing(hang), seconds=0.05), said("one")
    for _ in range(MOST_HANGING + 3):
        started = time.perf_counter()
        assert await asked.ask(given, lambda one: one) == given
        assert time.perf_counter() - started < PATIENCE
    assert (calls, asked.hanging) == (MOST_HANGING, MOST_HANGING)

    release.set()
    async with asyncio.timeout(PATIENCE):
        while asked.hanging:  # noqa: ASYNC110 (threads end by themselves)
            await asyncio.sleep(0.01)
    # A slow machine may not give it a turn within its time at once.
    async with asyncio.timeout(PATIENCE):
        while (heard := await asked.ask(given, lambda one: one)) == given:
            pass
    assert heard.messages[0].content == "one!"


async def test_a_coroutine_that_will_not_end_is_left():
    async def stubborn(_point):
        while True:
            try:
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                await asyncio.sleep(0.3)
                return

    asked, given = runner(Doing(stubborn), seconds=0.05, waits={"before_append"}), said("one")

    assert await asked.ask(given, lambda one: one) == given
    assert asked.hanging == 1
    async with asyncio.timeout(PATIENCE):
        while asked.hanging:  # noqa: ASYNC110 (it ends by itself)
            await asyncio.sleep(0.01)


async def test_each_sees_what_the_one_before_left():
    chain = ProcessorChain([runner(Doing(louder)), runner(Doing(louder))])

    assert (await chain.ask(said("one"), lambda one: one)).messages[0].content == "one!!"
    assert chain.at("before_append")
    assert not chain.at("after_search")
    assert not any(NO_CHAIN.at(point) for point in POINTS)
