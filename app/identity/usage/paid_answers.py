"""A paid answer is never asked for twice.

What a chat model answered is stored in the transaction that counts its cost. If the process dies
before the answer is used, or a later step fails, whoever repeats the work finds the answer by its
question. The transaction that stores what was bought deletes it.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import structlog
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.repository import AnswerRepository
from app.language.llm.extractor import ModelUse
from app.platform.database.engine import Database, clock_of
from app.platform.version import VERSION

log = structlog.get_logger()


class AnswerWithCost(Protocol):
    """A dataclass with the result of a call and its cost; the cost has a default."""

    @property
    def use(self) -> ModelUse: ...


Answer = TypeVar("Answer", bound=AnswerWithCost)

Note = Callable[[AsyncSession, Answer], Awaitable[None]]
"""Stores what came of a call, in the transaction that keeps its answer."""


@dataclass(frozen=True, slots=True)
class AnswerPurpose:
    """What answers are bought for, and whose words they may hold.

    Args:
        name: the work; all answers with this name are deleted when it is stored.
        agent_id, user_id, project_id, session_id: with whose erasure they go.

    """

    name: str
    agent_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class ModelQuestion(Generic[Answer]):
    """A question to a model. Two that are equal in all of this are the same question.

    Args:
        operation: as the usage calls it.
        model: the name of the extractor, reconciler, profiler or summariser.
        shown: what the answer depends on; anything that can be written as JSON.
        answer_type: the dataclass of its answers.
        prompt_version: where the prompt has one; a new release asks again in any case.

    """

    operation: str
    purpose: AnswerPurpose
    model: str
    shown: Any
    answer_type: type[Answer]
    prompt_version: str | None = None

    @property
    def key(self) -> bytes:
        """The hash by which its answer is found."""
        return digest(
            [VERSION, self.operation, self.model, self.prompt_version, self.purpose, self.shown]
        )


def digest(value: Any) -> bytes:
    """SHA-256 of a value that can be written as JSON, dataclasses and times among it; no sets,
    whose order is another in each process.
    """
    return hashlib.sha256(json.dumps(to_jsonable_python(value), sort_keys=True).encode()).digest()


class PaidAnswers:
    """Asks models, and keeps what they answer until it is used. Shared by the whole process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(
        self,
        tenant_id: str,
        question: ModelQuestion[Answer] | None,
        call: Callable[[], Awaitable[Answer]],
        note: Note[Answer],
    ) -> Answer:
        """The kept answer, without a cost, or that of `call`.

        No transaction is open during the call. `note` runs in the transaction that finds or
        keeps the answer. A kept answer that cannot be read is asked for again and replaced.

        Args:
            question: None to keep nothing and find nothing.

        Raises:
            What `call` raises; nothing is noted or kept then.

        """
        if question is None:
            answer = await call()
            async with self._database.begin(tenant_id) as db:
                await note(db, answer)
            return answer
        async with self._database.begin(tenant_id) as db:
            kept = await self._find(db, tenant_id, question)
            if kept is not None:
                await note(db, kept)
                return kept
            asked_at = await clock_of(db)
        answer = await call()
        async with self._database.begin(tenant_id) as db:
            if answer.use.calls:
                await self._keep(db, tenant_id, question, answer, asked_at)
            # Last: the day's row of the usage is everybody's.
            await note(db, answer)
        return answer

    async def _find(
        self, db: AsyncSession, tenant_id: str, question: ModelQuestion[Answer]
    ) -> Answer | None:
        body = await AnswerRepository(db, tenant_id).find(question.key)
        if body is None:
            return None
        try:
            answer: Answer = _adapter(question.answer_type).validate_python(json.loads(body))
        except ValueError:
            log.warning("kept_answer_unreadable", operation=question.operation)
            return None
        log.info("kept_answer_used", operation=question.operation)
        return answer

    async def _keep(
        self,
        db: AsyncSession,
        tenant_id: str,
        question: ModelQuestion[Answer],
        answer: Answer,
        asked_at: datetime,
    ) -> None:
        adapter = _adapter(question.answer_type)
        # Its cost is counted once.
        members = adapter.dump_python(answer, mode="json", exclude={"use"})
        row = asdict(question.purpose) | {
            "purpose": question.purpose.name,
            "answer_key": question.key,
            "operation": question.operation,
            # ASCII: a model may write half of a surrogate pair, which UTF-8 refuses.
            "answer": json.dumps(members).encode(),
        }
        del row["name"]
        if not await AnswerRepository(db, tenant_id).put(row, asked_at=asked_at):
            # Whom it is about was erased during the call: its cost counts, its words go.
            log.info("answer_not_kept", operation=question.operation)


@cache
def _adapter(answer_type: type[Answer]) -> TypeAdapter[Answer]:
    return TypeAdapter(answer_type)
