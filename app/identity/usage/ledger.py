"""What models cost, stored apart from the results.

Embedding and reranking are gathered in memory and written about once a second: a search writes
nothing while it runs, and no save waits for a second transaction. An orderly
end of the process writes everything; one that is killed loses what it gathered since it last
wrote. Tokens of chat models are written as soon as the model has answered: they
count whatever happens to the result.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, Protocol

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.identity.usage.paid_answers import (
    Answer,
    AnswerPurpose,
    AnswerWithCost,
    ModelQuestion,
    PaidAnswers,
)
from app.identity.usage.quota import Exhausted, Quota, exhausted
from app.identity.usage.repository import UsageRepository
from app.language.llm.embedder import EmbeddingOperation, EmbeddingUse
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import ModelUse
from app.language.llm.reranker import RerankOperation
from app.platform.database.engine import Database
from app.platform.observability.metrics import MODEL_TOKENS

log = structlog.get_logger()

TENANTS_PER_FLUSH = 100
"""Each is a transaction of 1 to 2 ms; those beyond are written the next time."""

WAITING = 10_000
"""Most pending rows, 3 MB of them: reached only while the database is unavailable. Further calls
are not counted then, which is better than unbounded growth."""

_Operation = EmbeddingOperation | RerankOperation
_Row = tuple[_Operation, str]


class EmbeddingLedger:
    """Gathers calls of providers' embedders and rerankers. Belongs to one event loop."""

    def __init__(
        self, database: Database, *, waiting: int = WAITING, tenants: int = TENANTS_PER_FLUSH
    ) -> None:
        """Write to `database`; let so many rows wait, and so many tenants be written at once."""
        self._database = database
        self._most_waiting = waiting
        self._tenants_per_flush = tenants
        # By tenant, the longest waiting first, then by operation and model.
        self._spent: dict[str, dict[_Row, EmbeddingUse]] = {}
        self._waiting = 0
        self._uncounted = 0

    def note(self, tenant_id: str, operation: _Operation, model: str, use: EmbeddingUse) -> None:
        """Count calls towards the day (UTC) on which they will be written."""
        rows = self._spent.get(tenant_id, {})
        if (operation, model) not in rows and self._waiting >= self._most_waiting:
            self._uncounted += use.calls
            return
        self._add(tenant_id, (operation, model), use)

    async def flush(self, *, everything: bool = False) -> None:
        """Write some tenants' counts, or all of them before the process ends.

        Raises:
            DatabaseUnavailableError, DatabaseBusyError: what is unwritten is kept.
            OutcomeUnknownError: kept too, so one write may count twice.

        """
        if self._uncounted:
            log.warning("embeddings_not_counted", calls=self._uncounted)
            self._uncounted = 0
        for tenant_id in list(islice(self._spent, None if everything else self._tenants_per_flush)):
            # Taken out before it is written: what is noted meanwhile counts the next time.
            rows = self._spent.pop(tenant_id, {})
            self._waiting -= len(rows)
            try:
                await self._write(tenant_id, rows)
            except BaseException:
                # It goes behind the others, so that none of them waits for what fails.
                for row, use in rows.items():
                    self._add(tenant_id, row, use)
                raise

    def _add(self, tenant_id: str, row: _Row, use: EmbeddingUse) -> None:
        rows = self._spent.setdefault(tenant_id, {})
        if row not in rows:
            rows[row] = EmbeddingUse()
            self._waiting += 1
        rows[row].add(use)

    async def _write(self, tenant_id: str, rows: Mapping[_Row, EmbeddingUse]) -> None:
        async with self._database.begin(tenant_id) as db:
            ledger = UsageRepository(db, tenant_id)
            # One order of locks everywhere, so that two processes cannot wait for each other.
            for (operation, model), use in sorted(rows.items(), key=lambda item: item[0]):
                await ledger.note(
                    operation,
                    model,
                    calls=use.calls,
                    failures=use.failures,
                    input_tokens=use.input_tokens,
                    output_tokens=0,
                )


class LedgerModel(Protocol):
    """What does the work: a model, or rules, which cost nothing."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...


class ModelLedger:
    """Asks models for one kind of work within the tenant's quota, counts what they spend, and keeps
    what they answer until it is stored.
    """

    def __init__(self, database: Database, quota: Quota, operation: str, *, failure: str) -> None:
        """Count under `operation`; `failure` is the event of the log when there is no answer."""
        self._database = database
        self._answers = PaidAnswers(database)
        self._quota = quota
        self._operation = operation
        self._failure = failure

    async def used_up(self, principal: Principal) -> Exhausted | None:
        """The quota that is used up today, or None."""
        async with self._database.begin(principal.tenant_id) as db:
            totals = await UsageRepository(db, principal.tenant_id).today()
        return exhausted(totals, self._quota.overridden(principal.config))

    def question(
        self,
        asked: LedgerModel,
        purpose: AnswerPurpose,
        shown: Any,
        answer_type: type[Answer],
        prompt_version: str | None = None,
    ) -> ModelQuestion[Answer]:
        """What `asked` is to be asked, as `ask` takes it; `shown` is what its answer depends on."""
        return ModelQuestion(
            self._operation, purpose, asked.name, shown, answer_type, prompt_version
        )

    async def ask(
        self,
        principal: Principal,
        asked: LedgerModel,
        question: ModelQuestion[Answer],
        call: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """The answer of `asked`, counted; or the kept one to the same question, at no cost.

        No transaction is open during the call. Whoever stores what comes of the answer deletes it
        with `AnswerRepository.delete`. Rules are asked as they are.

        Raises:
            ModelUnavailableError: there is no answer; what was spent is counted.

        """
        tenant_id, model = principal.tenant_id, asked.model
        if model is None:
            return await call()

        async def note(db: AsyncSession, answer: AnswerWithCost) -> None:
            if answer.use.calls:
                await self._note(db, tenant_id, model, answer.use)

        try:
            return await self._answers.ask(tenant_id, question, call, note)
        except ModelUnavailableError as error:
            async with self._database.begin(tenant_id) as db:
                await self._note(db, tenant_id, model, error.use, failures=1)
            log.warning(self._failure, model=asked.name, reason=error.reason)
            raise

    async def _note(
        self, db: AsyncSession, tenant_id: str, model: str, use: ModelUse, *, failures: int = 0
    ) -> None:
        await UsageRepository(db, tenant_id).note(
            self._operation,
            model,
            calls=use.calls,
            input_tokens=use.input_tokens,
            output_tokens=use.output_tokens,
            failures=failures,
        )
        MODEL_TOKENS.labels(self._operation, "input").inc(use.input_tokens)
        MODEL_TOKENS.labels(self._operation, "output").inc(use.output_tokens)
