"""Calls processors: within their timeout, and without losing work when one of them fails; and says
that one that must not fail did, or that one was chosen that is not allowed.

A thread cannot be ended from outside, nor can a coroutine that refuses to end. A call that runs
longer than its timeout is abandoned and counted; while MOST_HANGING calls of a processor hang, it
is not called, which counts as a failure.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import structlog

from app.errors import UnavailableError, UnprocessableError
from app.platform.observability.metrics import PROCESSOR_CALLS, PROCESSOR_SECONDS
from app.platform.plugins.catalogue import LoadedProcessor
from app.platform.plugins.points import P, Point, Validate, checked_result


class ProcessorFailedError(UnavailableError):
    """A processor with the policy `refuse` failed; nothing was written."""

    code = "processor_failed"
    title = "A processor failed"

    def __init__(self, name: str, point: str) -> None:
        super().__init__(
            f"The processor `{name}` failed at `{point}`, and nothing goes on without it.",
            processor=name,
            point=point,
        )
        self.name = name
        self.point = point


class InvalidProcessorsError(UnprocessableError):
    """A `config` names processors that are not allowed here; nothing was changed."""

    code = "invalid_config"
    title = "Setting not usable"

    def __init__(self, names: Sequence[str]) -> None:
        listed = ", ".join(names) or "none; MEMORY_PROCESSORS allows them"
        wanted = f"a list of names of processors, each once: {listed}"
        super().__init__(
            f"`config.processors` must be {wanted}.",
            errors=[{"location": ["body", "config", "processors"], "detail": f"must be {wanted}"}],
        )


log = structlog.get_logger()

CONFIG: Final = "processors"
"""Their key in the config of an agent or a tenant."""

MOST_HANGING: Final = 4
"""Threads that never end hold memory, and a processor that hangs so often will hang again."""

MOST_CONCURRENT: Final = 16
"""Concurrent calls of one processor; further calls wait, which is part of their timeout."""


class _StuckError(Exception):
    """Too many calls hang, so no other is made."""


@dataclass(frozen=True, slots=True)
class _CallOutcome:
    """Result of a call; an exception is a value here, so that none can end the process."""

    value: object = None
    error: BaseException | None = None


class ProcessorRunner:
    """Calls one processor. Belongs to one event loop."""

    def __init__(self, loaded: LoadedProcessor) -> None:
        self.loaded = loaded
        self._abandoned: set[asyncio.Future[_CallOutcome]] = set()
        self._free = asyncio.Semaphore(MOST_CONCURRENT)

    @property
    def hanging(self) -> int:
        """Number of abandoned calls that have not ended."""
        return len(self._abandoned)

    async def ask(self, given: P, validate: Validate) -> P:
        """The point as the processor returns it; unchanged when it fails and its policy is `skip`.

        Raises:
            ProcessorFailedError: it failed, and its policy is `refuse`.

        """
        name, point = self.loaded.name, given.NAME
        started = perf_counter()
        try:
            # A copy: changes in place have no effect.
            answer = await self._answer(deepcopy(given))
        except _StuckError as error:
            return self._failed(given, "stuck", error)
        except TimeoutError as error:
            return self._failed(given, "timeout", error)
        except Exception as error:  # noqa: BLE001 (the policy decides what follows)
            return self._failed(given, "error", error)
        finally:
            PROCESSOR_SECONDS.labels(name, point).observe(perf_counter() - started)
        try:
            result = checked_result(given, answer, validate)
        except Exception as error:  # noqa: BLE001 (code of its values runs here)
            return self._failed(given, "invalid", error)
        PROCESSOR_CALLS.labels(name, point, "ok").inc()
        return result

    def _failed(self, given: P, outcome: str, error: Exception) -> P:
        """The unchanged point after a failure.

        Raises:
            ProcessorFailedError: the policy is `refuse`.

        """
        name, point = self.loaded.name, given.NAME
        PROCESSOR_CALLS.labels(name, point, outcome).inc()
        # The error's message may hold content.
        log.warning(
            "processor_failed",
            processor=name,
            point=point,
            outcome=outcome,
            error=type(error).__name__,
        )
        if self.loaded.on_error == "refuse":
            raise ProcessorFailedError(name, point) from None
        return given

    async def _answer(self, given: Point) -> object:
        """What the processor's method returns.

        Raises:
            _StuckError: too many of its calls have not ended.
            TimeoutError: it takes longer than its timeout.
            Exception: what the method raised.

        """
        if self.hanging >= MOST_HANGING:
            raise _StuckError
        async with asyncio.timeout(self.loaded.timeout_seconds), self._free:
            method = getattr(self.loaded.processor, given.NAME)
            waits = given.NAME in self.loaded.waits
            call = _in_loop(method, given) if waits else _in_thread(method, given)
            try:
                await asyncio.wait([call])
            finally:
                self._abandon(call)
        ended = call.result()
        if ended.error is not None:
            raise ended.error
        return ended.value

    def _abandon(self, call: "asyncio.Future[_CallOutcome]") -> None:
        """Abandon a call that still runs, and count it until it ends."""
        if call.done():
            return
        self._abandoned.add(call)
        call.add_done_callback(self._abandoned.discard)
        if isinstance(call, asyncio.Task):
            call.cancel()


def _in_loop(method: Callable[[Any], Any], given: Point) -> "asyncio.Future[_CallOutcome]":
    async def call() -> _CallOutcome:
        try:
            return _CallOutcome(await method(given))
        except BaseException as error:  # noqa: BLE001 (an exit would end the service)
            return _CallOutcome(error=_harmless(error))

    return asyncio.create_task(call())


def _in_thread(method: Callable[[Any], Any], given: Point) -> "asyncio.Future[_CallOutcome]":
    """Call in a daemon thread, which does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[_CallOutcome] = loop.create_future()
    context = copy_context()

    def report(outcome: _CallOutcome) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def call() -> None:
        try:
            outcome = _CallOutcome(context.run(method, given))
        except BaseException as error:  # noqa: BLE001 (as above)
            outcome = _CallOutcome(error=_harmless(error))
        try:
            loop.call_soon_threadsafe(report, outcome)
        except RuntimeError:
            # The loop is closed: the process ends.
            return

    threading.Thread(target=call, name="kemem-processor", daemon=True).start()
    return ended


def _harmless(error: BaseException) -> Exception:
    """The error; an exit or a cancellation that a processor raised becomes a RuntimeError."""
    if isinstance(error, Exception):
        return error
    return RuntimeError(type(error).__name__)


@dataclass(frozen=True, slots=True)
class ProcessorChain:
    """The processors of one caller, in the deployment's order."""

    runners: Sequence[ProcessorRunner] = ()

    def at(self, point: str) -> bool:
        """Whether one of them is called at `point`."""
        return any(point in runner.loaded.points for runner in self.runners)

    async def ask(self, given: P, validate: Validate) -> P:
        """The point after all of them; each gets the result of the one before.

        Raises:
            ProcessorFailedError: a processor with the policy `refuse` failed.

        """
        for runner in self.runners:
            if given.NAME in runner.loaded.points:
                given = await runner.ask(given, validate)
        return given


NO_CHAIN: Final = ProcessorChain()


@dataclass(frozen=True, slots=True)
class Processors:
    """The processors that the deployment allows, by name and in order."""

    runners: Mapping[str, ProcessorRunner] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a caller may choose."""
        return tuple(self.runners)

    def chain(self, names: Sequence[str]) -> ProcessorChain:
        """Those of `names` that are allowed, in the deployment's order."""
        return ProcessorChain([runner for name, runner in self.runners.items() if name in names])

    def check(self, config: Mapping[str, Any]) -> None:
        """Check the processors in `config`.

        Raises:
            InvalidProcessorsError: it names a processor that is not allowed here, or one twice.

        """
        chosen = config.get(CONFIG)
        if chosen is None:
            return
        known = isinstance(chosen, list) and all(name in self.names for name in chosen)
        if not known or len(set(chosen)) != len(chosen):
            raise InvalidProcessorsError(self.names)


def processors_of(loaded: Sequence[LoadedProcessor]) -> Processors:
    """The processors, each with a runner of its own."""
    return Processors({processor.name: ProcessorRunner(processor) for processor in loaded})
