"""One evaluation against a running service: store, ask, remove. Everything over the public API."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from time import perf_counter
from typing import Any, ClassVar, TypeVar

import httpx2

from app.console import REFUSED, UNUSABLE, err, fail, progress
from app.evaluation.api import Answer, Api
from app.evaluation.dataset import Dataset, DatasetUnit, Question, Store

BATCH = 100
# That a text is too long is a finding of the evaluation; that the service is busy is a failure.
REFUSALS = (413, 422)
FAILURES = (429, *range(500, 600))
EXPECTED = (*REFUSALS, *FAILURES)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an evaluation asks."""

    run_id: str
    """What every id that it makes begins with, so that runs do not meet."""

    limit: int
    search: dict[str, Any]
    """Fields of every search besides the question, the user and the limit."""

    concurrency: int
    keep: bool
    budgets: tuple[int, ...] = ()
    """Of the contexts to ask for, in tokens; see `conversation_run`."""

    context: dict[str, Any] = field(default_factory=dict)
    """Fields of every request for a context besides the question and the budget."""

    extract: bool = False
    """Whether conversations are read for memories before anything is asked."""


@dataclass(slots=True)
class Loaded:
    """What became of the units of one store."""

    user_id: str
    events: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    ahead: int = 0
    """Units dated in the future, stored without their date."""

    units: dict[str, set[str]] = field(default_factory=dict)
    """Which units an item holds: more than one when they are word for word the same memory."""

    waiting: int = 0
    """Messages that were not yet searched, or had no vector, when the asking began."""

    def memories_of(self, gold: Iterable[str]) -> int:
        """How many memories hold these units; one that was not stored counts as one."""
        wanted = set(gold)
        holding = [units for units in self.units.values() if units & wanted]
        return len(holding) + len(wanted.difference(*holding))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, and what came back for it."""

    store: Store
    question: Question
    hits: list[frozenset[str]]
    """The units that each hit stands for, best first."""

    texts: list[str]
    relevant: int
    milliseconds: float
    mode: str = "hybrid"
    models: frozenset[str] = frozenset()
    """What embedded the question."""

    reranker: str | None = None
    """What ordered the hits."""

    degraded: bool = False
    """Something that should have done either did not answer."""

    problem: str | None = None
    """The code of a refusal; the question counts as answered by nothing."""

    failed: bool = False


class Evaluation:
    """One run, each unit a memory. `stored` removes what it made, whatever happens inside."""

    SEARCH: ClassVar = "/memories/search"
    HITS: ClassVar = "results"
    ITEM: ClassVar = "memory_id"
    """Where a search is, and what its answer calls the hits and the id of one."""

    def __init__(self, api: Api, dataset: Dataset, plan: Plan, now: datetime) -> None:
        self._api = api
        self._dataset = dataset
        self._plan = plan
        self._now = now
        self._under_way: set[asyncio.Task[Answer]] = set()
        self._takes_time = False
        self.loaded: dict[str, Loaded] = {}
        self.left: list[str] = []
        """Paths of what should have been removed and is still there."""

        self.unsent_times = False
        """The questions have dates, and this service takes none."""

    async def check(self) -> None:
        """End with a sentence before anything is stored, when it could not be asked or removed."""
        if not self._plan.keep:
            answer = await self._api.call(
                "DELETE",
                f"/users/{self._plan.run_id}-0",
                params={"confirm": True},
                expected=(403, 404),
            )
            if answer.status == 403:
                fail(
                    "This key may not remove what the evaluation stores: give one with the scope "
                    "admin, or leave everything in place with --keep.",
                    code=REFUSED,
                )
        answer = await self._search("a question", f"{self._plan.run_id}-0", {}, (422,))
        if not answer.ok:
            # Nothing else in it could be at fault.
            fail(f"The service refuses such a search: {faults_of(answer)}.", code=UNUSABLE)
        if any(question.moment for store in self._dataset.stores for question in store.questions):
            moment = {"reference_time": self._now.isoformat()}
            answer = await self._search("a question", f"{self._plan.run_id}-0", moment, (422,))
            self._takes_time = answer.ok
            self.unsent_times = not answer.ok

    @asynccontextmanager
    async def stored(self) -> AsyncIterator[None]:
        """Everything stored, for the time of the block; removed afterwards unless it is kept."""
        try:
            await self._load()
            yield
        finally:
            # Cut off half-way, the service might store it after everything else is removed.
            await asyncio.gather(*self._under_way, return_exceptions=True)
            if not self._plan.keep:
                await self._remove()

    async def ask(self) -> list[AskedQuestion]:
        """Ask every question; in the order of the data set."""
        return await self._of_each_question("Asking", self._ask)

    async def _of_each_question(
        self, what: str, ask: Callable[[Store, Question], Awaitable[_T]]
    ) -> list[_T]:
        """What `ask` finds for every question, in the order of the data set."""
        questions = [
            (store, question) for store in self._dataset.stores for question in store.questions
        ]
        answered: dict[int, _T] = {}
        with progress("questions") as bar:
            task = bar.add_task(what, total=len(questions))

            async def asked(number: int) -> None:
                answered[number] = await ask(*questions[number])
                bar.advance(task)

            await each_of(range(len(questions)), asked, self._plan.concurrency)
        return [answered[number] for number in range(len(questions))]

    async def _load(self) -> None:
        await self._save("/agents", {"agent_id": self._plan.run_id, "agent_name": "kemem eval"})
        with progress("units") as bar:
            task = bar.add_task("Storing", total=self._dataset.unit_count)

            async def load(numbered: tuple[int, Store]) -> None:
                number, store = numbered
                await self._load_store(
                    store,
                    f"{self._plan.run_id}-{number}",
                    lambda count: bar.advance(task, count),
                )

            await each_of(enumerate(self._dataset.stores, 1), load, self._plan.concurrency)

    async def _load_store(self, store: Store, user_id: str, done: Callable[[int], None]) -> None:
        """One store, one request after the other: the order of units is that of the file."""
        loaded = self.loaded[store.store_id] = Loaded(user_id)
        await self._save(
            "/users",
            {"user_id": user_id, "agent_id": self._plan.run_id, "user_name": store.store_id[:255]},
        )
        sessions: dict[str, str] = {}
        for units in batches(store.units):
            session = units[0].session
            if session is not None and session not in sessions:
                sessions[session] = f"{user_id}-{len(sessions) + 1}"
                body = {"session_id": sessions[session], "user_id": user_id}
                await self._save("/sessions", body)
            fields = self._fields(units[0], loaded, len(units))
            if session is not None:
                fields["session_id"] = sessions[session]
            await self._store(units, fields, loaded)
            done(len(units))

    def _fields(self, unit: DatasetUnit, loaded: Loaded, count: int) -> dict[str, Any]:
        """What a request says besides its messages."""
        fields: dict[str, Any] = {
            "user_id": loaded.user_id,
            "scope": "user",
            "source": "import",
            "infer": False,
            "on_duplicate": "allow",
        }
        if unit.moment is not None and unit.moment > self._now:
            # It would not hold yet, and no search of today would find it.
            loaded.ahead += count
        elif unit.moment is not None:
            fields["valid_from"] = unit.moment.isoformat()
        return fields

    async def _store(
        self, units: list[DatasetUnit], fields: dict[str, Any], loaded: Loaded
    ) -> None:
        body = fields | {"messages": [message_of(unit) for unit in units]}
        answer = await self._save("/memories", body, expected=REFUSALS)
        if answer.ok:
            for outcome in answer.body["results"]:
                _note(loaded, units[outcome["index"]], outcome)
        elif len(units) > 1:
            # One of them cannot cross at all; the others can.
            for unit in units:
                await self._store([unit], fields, loaded)
        else:
            loaded.events["REJECT"] += 1
            loaded.refusals[code_of(answer)] += 1

    async def _save(self, path: str, body: Any, expected: Iterable[int] = ()) -> Answer:
        """One request that the service is given the time to finish, whoever interrupts us."""
        task = asyncio.ensure_future(self._api.post(path, body, expected=tuple(expected)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _ask(self, store: Store, question: Question) -> AskedQuestion:
        loaded = self.loaded[store.store_id]
        started = perf_counter()
        answer = await self._search(question.text, loaded.user_id, self._time(question), EXPECTED)
        milliseconds = (perf_counter() - started) * 1000
        told = answer.body if answer.ok else {}
        found = told.get(self.HITS, [])
        return AskedQuestion(
            store=store,
            question=question,
            hits=[frozenset(loaded.units.get(hit[self.ITEM], ())) for hit in found],
            texts=[hit["content"] for hit in found],
            relevant=loaded.memories_of(question.gold),
            milliseconds=milliseconds,
            mode=told.get("mode", "hybrid"),
            models=frozenset(told.get("embedding_models", ())),
            reranker=told.get("reranker"),
            degraded=told.get("degraded", False),
            problem=None if answer.ok else code_of(answer),
            failed=answer.status in FAILURES,
        )

    def _time(self, question: Question) -> dict[str, str]:
        """When it is asked, for a service that takes that."""
        if not self._takes_time or question.moment is None:
            return {}
        return {"reference_time": question.moment.isoformat()}

    async def _search(
        self, query: str, user_id: str, more: dict[str, Any], expected: Iterable[int]
    ) -> Answer:
        own = {"query": query, "user_id": user_id, "limit": self._plan.limit}
        body = self._plan.search | more | own
        return await self._api.post(self.SEARCH, body, expected=tuple(expected))

    async def _remove(self) -> None:
        paths = [f"/users/{loaded.user_id}" for loaded in self.loaded.values()]
        with progress("stores") as bar:
            task = bar.add_task("Removing", total=len(paths))
            # The agent last: it stays as long as anybody is at home with it.
            for path in (*paths, f"/agents/{self._plan.run_id}"):
                if not await self._removed(path):
                    self.left.append(path)
                bar.advance(task)
        if self.left:
            err.print(
                "kemem: Not everything could be removed. DELETE these with ?confirm=true: "
                + ", ".join(f"/v1{path}" for path in self.left),
                markup=False,
            )

    async def _removed(self, path: str) -> bool:
        try:
            answer = await self._api.call(
                "DELETE", path, params={"confirm": True}, expected=range(400, 600)
            )
        except httpx2.TransportError:
            return False
        return answer.ok or answer.status == 404


async def each_of(
    items: Iterable[_T], work: Callable[[_T], Awaitable[None]], concurrency: int
) -> None:
    """Do the work for every item, so many at a time; the first failure ends it all."""
    pending = iter(items)

    async def worker() -> None:
        for item in pending:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


def batches(units: Iterable[DatasetUnit]) -> list[list[DatasetUnit]]:
    """Units that can share a request, in order: of one session and one moment, at most 100."""
    found = []
    for _, run in groupby(units, key=lambda unit: (unit.session, unit.moment)):
        held = list(run)
        found += [held[start : start + BATCH] for start in range(0, len(held), BATCH)]
    return found


def message_of(unit: DatasetUnit) -> dict[str, Any]:
    """A unit as a message of a request."""
    name = {} if unit.speaker is None else {"name": unit.speaker}
    return {"role": unit.role, "content": unit.text} | name


def _note(loaded: Loaded, unit: DatasetUnit, outcome: dict[str, Any]) -> None:
    loaded.events[outcome["event"]] += 1
    loaded.refusals.update(reason["code"] for reason in outcome["reasons"])
    if outcome["memory_id"]:
        loaded.units.setdefault(outcome["memory_id"], set()).add(unit.unit_id)


def code_of(answer: Answer) -> str:
    """Of a refusal: what the service calls it, else the status."""
    problem = answer.body if isinstance(answer.body, dict) else {}
    return str(problem.get("code") or answer.status)


def faults_of(answer: Answer) -> str:
    """Which fields are at fault, and why."""
    problem = answer.body if isinstance(answer.body, dict) else {}
    faults = [
        f"{'.'.join(str(part) for part in fault['location'][1:])}: {fault['detail']}"
        for fault in problem.get("errors") or ()
    ]
    return "; ".join(faults) or str(problem.get("detail", answer.status))
