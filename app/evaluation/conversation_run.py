"""An evaluation whose units are messages of conversations: found by search, shown by contexts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.console import REFUSED, UNUSABLE, fail
from app.evaluation.api import Api
from app.evaluation.dataset import Dataset, DatasetUnit, Question, Store
from app.evaluation.run import (
    EXPECTED,
    FAILURES,
    REFUSALS,
    Evaluation,
    Loaded,
    Plan,
    code_of,
    faults_of,
    message_of,
)

WHOLE: Final = "all"
"""The session of units that are of none: a message always has one."""

POLL_SECONDS: Final = 0.25
RETRY_SECONDS: Final = 5.0
STUCK_SECONDS: Final = 60.0
"""After so long without another message being ready, what is not is counted and left."""

WITHOUT_MEMORIES: Final = {"memories": False, "profile": False, "corrections": False}
"""What a context leaves out while extraction may still be under way: it would differ by run."""


@dataclass(frozen=True, slots=True)
class MeasuredContext:
    """What a model would see for one question."""

    store: Store
    question: Question
    units: frozenset[str]
    """Of which units pieces are among the excerpts."""

    prompt: str
    tokens: int
    """Of all that is remembered, as the service counts them."""

    excerpt_tokens: int
    milliseconds: float
    problem: str | None = None
    """The code of a refusal; the question counts as shown nothing."""

    failed: bool = False


class ConversationEvaluation(Evaluation):
    """One run, each unit a message. Contexts are those of a new session of the same user."""

    SEARCH: ClassVar = "/messages/search"
    HITS: ClassVar = "items"
    ITEM: ClassVar = "message_id"

    def __init__(
        self,
        api: Api,
        dataset: Dataset,
        plan: Plan,
        now: datetime,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(api, dataset, plan, now)
        self._sleep = sleep

    @override
    async def check(self) -> None:
        await super().check()
        if self._plan.budgets:
            # The session does not exist, which is found out after the fields have been read.
            path = f"/sessions/{self._plan.run_id}-0/context"
            body = self._context_body("a question", self._plan.budgets[0])
            answer = await self._api.post(path, body, expected=(404, 422))
            if answer.status == 422:
                fail(f"The service refuses such a context: {faults_of(answer)}.", code=UNUSABLE)

    async def contexts(self, budget: int) -> list[MeasuredContext]:
        """The context of every question in so many tokens, in the order of the data set."""

        async def ask(store: Store, question: Question) -> MeasuredContext:
            return await self._context(store, question, budget)

        return await self._of_each_question(f"Contexts of {budget} tokens", ask)

    async def _context(self, store: Store, question: Question, budget: int) -> MeasuredContext:
        loaded = self.loaded[store.store_id]
        body = self._context_body(question.text, budget) | self._time(question)
        started = perf_counter()
        path = f"/sessions/{_asking_session(loaded)}/context"
        answer = await self._api.post(path, body, expected=EXPECTED)
        milliseconds = (perf_counter() - started) * 1000
        if not answer.ok:
            failed = answer.status in FAILURES
            return MeasuredContext(
                store, question, frozenset(), "", 0, 0, milliseconds, code_of(answer), failed
            )
        told = answer.body
        if "used_excerpts" not in told:
            fail("The contexts of this service have no excerpts.", code=REFUSED)
        shown = (loaded.units.get(excerpt["message_id"], ()) for excerpt in told["used_excerpts"])
        excerpts = [part["tokens"] for part in told["parts"] if part["name"] == "excerpts"]
        return MeasuredContext(
            store=store,
            question=question,
            units=frozenset(unit for units in shown for unit in units),
            # Ids of this run would make the same context another one in the next.
            prompt=told["prompt"].replace(self._plan.run_id, "eval"),
            tokens=told["memory_tokens"],
            excerpt_tokens=sum(excerpts),
            milliseconds=milliseconds,
        )

    def _context_body(self, query: str, budget: int) -> dict[str, Any]:
        body = {"query": query, "max_memory_tokens": budget}
        include = {} if self._plan.extract else {"include": WITHOUT_MEMORIES}
        return include | self._plan.context | body

    @override
    async def _load_store(self, store: Store, user_id: str, done: Any) -> None:
        placed = tuple(replace(unit, session=unit.session or WHOLE) for unit in store.units)
        await super()._load_store(replace(store, units=placed), user_id, done)
        loaded = self.loaded[store.store_id]
        if self._plan.budgets:
            body = {"session_id": _asking_session(loaded), "user_id": user_id}
            await self._save("/sessions", body)
        await self._index(loaded)
        if self._plan.extract:
            sessions = len({unit.session for unit in placed})
            for number in range(1, sessions + 1):
                await self._extract(f"{user_id}-{number}")

    @override
    async def _store(
        self, units: list[DatasetUnit], fields: dict[str, Any], loaded: Loaded
    ) -> None:
        moment = {"client_time": fields["valid_from"]} if "valid_from" in fields else {}
        first = len(loaded.units) + sum(loaded.refusals.values()) + 1
        messages = [
            message_of(unit) | {"message_id": f"{loaded.user_id}-m{number}", "metadata": moment}
            for number, unit in enumerate(units, first)
        ]
        path = f"/sessions/{fields['session_id']}/messages"
        answer = await self._save(path, {"messages": messages}, expected=REFUSALS)
        if not answer.ok and len(units) > 1:
            for unit in units:
                await self._store([unit], fields, loaded)
        elif not answer.ok:
            loaded.events["REJECT"] += 1
            loaded.refusals[code_of(answer)] += 1
        else:
            stored = {message["message_id"] for message in answer.body["messages"]}
            for unit, message in zip(units, messages, strict=True):
                self._note_message(loaded, unit, message["message_id"], stored)

    @staticmethod
    def _note_message(loaded: Loaded, unit: DatasetUnit, message_id: str, stored: set[str]) -> None:
        if message_id in stored:
            loaded.events["ADD"] += 1
            loaded.units[message_id] = {unit.unit_id}
        else:
            # A processor of the service kept it from being stored.
            loaded.events["REJECT"] += 1
            loaded.refusals["dropped"] += 1

    async def _index(self, loaded: Loaded) -> None:
        """Wait until every message is searched, by words and by meaning; count what is not."""
        body = {"query": "a question", "user_id": loaded.user_id, "limit": 1}
        before, waited = None, 0.0
        while waited < STUCK_SECONDS:
            answer = await self._api.post(self.SEARCH, body)
            told = answer.body
            # Long batches are read by a job, and what is not read yet is not searched at all.
            unread = 0 if told["left_out"] else len(loaded.units) - told["searched"]
            loaded.waiting = unread + told["waiting"]
            if loaded.waiting == 0:
                return
            waited = waited + POLL_SECONDS if loaded.waiting == before else 0.0
            before = loaded.waiting
            await self._sleep(POLL_SECONDS)

    async def _extract(self, session_id: str) -> None:
        """Read a session for memories to its end."""
        done = False
        while not done:
            path = f"/sessions/{session_id}/extract"
            answer = await self._api.post(path, {"wait": True}, expected={503})
            done = answer.ok and answer.body["done"]
            if not done:
                # Its model has failed, or a limit is reached; the job tries again.
                await self._sleep(RETRY_SECONDS)


def _asking_session(loaded: Loaded) -> str:
    """Where nothing has been said yet."""
    return f"{loaded.user_id}-asking"
