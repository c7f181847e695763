"""Quantisation: codes for large buckets, and none for the others.

A bucket is quantised when it grows above a bound, keeps its codes until it has shrunk below half of
it, and loses them when they find too little (`docs/decisions/0012`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

import structlog

from app.memory.memories.bucket_repository import BucketRepository, VectorBucket
from app.memory.memories.comparison_sql import (
    LEAST_DIMENSION,
    MINIMUM_DIMENSION,
    candidates,
    nearest,
)
from app.platform.database.engine import Database
from app.platform.observability.metrics import CODE_EVENTS, CODE_RECALL, embedding_model

log = structlog.get_logger()

BATCH: Final = 500

EXACT_ROWS: Final = 1_500
"""Up to how many memories of a bucket every vector is compared (`docs/decisions/0012`, `0023`)."""

SURE: Final = 0.95
"""Codes that find less of the nearest ten, or of the nearest hundred, are not used."""

FAIR: Final = 0.8
"""As `SURE`, of short codes and the nearest ten: these choose candidates beside the words, and are
not what rows are ranked by."""

SAMPLE: Final = 20
DEPTHS: Final = (10, 100)
"""How many hits are asked for: in a prompt, and at most."""

SAMPLED_AGAIN: Final = timedelta(days=1)
TRIED_AGAIN: Final = timedelta(days=7)

Task = Literal["encode", "clear", "nothing"]
Moved = Callable[[int], None]


def _ignore(_count: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class QuantisationResult:
    """The outcome for one bucket.

    Args:
        rows: how many got a code, or lost theirs.
        recall: the share its codes found in this run, at the depth where it is least; None
            where it was not measured.

    """

    bucket: VectorBucket
    task: Task
    rows: int = 0
    recall: float | None = None


def task_of(bucket: VectorBucket, exact_rows: int) -> Task:
    """The task for a bucket; up to `exact_rows` rows are compared exactly."""
    fits = bucket.dimension >= LEAST_DIMENSION
    if refused(bucket):
        if bucket.coded or bucket.rows < least(exact_rows):
            return "clear"
        again = bucket.sampled_ago is not None and bucket.sampled_ago >= TRIED_AGAIN
        return "encode" if again and bucket.rows > exact_rows else "nothing"
    if bucket.registered:
        return "encode" if fits and bucket.rows >= least(exact_rows) else "clear"
    if fits and bucket.rows > exact_rows:
        return "encode"
    return "clear" if bucket.coded else "nothing"


def least(exact_rows: int) -> int:
    """How many rows a bucket must have to keep its codes."""
    return exact_rows // 2


def refused(bucket: VectorBucket) -> bool:
    """Whether its codes were found to find too little."""
    found = bucket.sampled_recall
    return found is not None and found < _enough(bucket) and bucket.coded_at is None


def _enough(bucket: VectorBucket) -> float:
    return FAIR if _is_short(bucket) else SURE


def _is_short(bucket: VectorBucket) -> bool:
    """Whether its codes choose candidates, and nothing is ranked by them."""
    return bucket.dimension < MINIMUM_DIMENSION


class QuantisationService:
    """One tenant at a time, in small transactions; the service goes on answering."""

    def __init__(
        self, database: Database, exact_rows: int = EXACT_ROWS, *, batch: int = BATCH
    ) -> None:
        """Quantise buckets of more than `exact_rows`, `batch` rows per transaction."""
        self._database = database
        self._exact_rows = exact_rows
        self._batch = batch

    async def plan(self, tenant_id: str) -> list[tuple[VectorBucket, Task]]:
        """The larger buckets, each with the task that `run` would do; may be empty."""
        async with self._database.begin(tenant_id) as db:
            found = await BucketRepository(db, tenant_id).all(least(self._exact_rows))
        return [(bucket, task_of(bucket, self._exact_rows)) for bucket in found]

    async def run(self, tenant_id: str, *, moved: Moved = _ignore) -> list[QuantisationResult]:
        """Make, sample and clear codes.

        Resumable and safe to run twice at once: each row is compared by its code or exactly,
        whichever it has. Rows that are being changed are left to the next run.

        Args:
            tenant_id: the tenant.
            moved: called after each batch with the number of rows.

        Returns:
            The outcome for each bucket that `plan` names, in its order.

        """
        outcomes = []
        for bucket, task in await self.plan(tenant_id):
            if task == "encode":
                outcome = await self._encode(tenant_id, bucket, moved)
            elif task == "clear":
                outcome = await self._clear(tenant_id, bucket, moved)
            else:
                outcome = QuantisationResult(bucket, task)
            outcomes.append(outcome)
        return outcomes

    async def _encode(
        self, tenant_id: str, bucket: VectorBucket, moved: Moved
    ) -> QuantisationResult:
        # First of all, so that an interrupted bucket is encoded or cleared by the next run.
        async with self._database.begin(tenant_id) as db:
            await BucketRepository(db, tenant_id).register(bucket)
        rows = await self._run_batches(tenant_id, bucket, moved, coded=False)
        async with self._database.begin(tenant_id) as db:
            await BucketRepository(db, tenant_id).finish(bucket)
        if bucket.coded_at is None:
            self._log_change("earned", tenant_id, bucket, rows)
        known = bucket.coded_at is not None and bucket.sampled_ago is not None
        if known and bucket.sampled_ago is not None and bucket.sampled_ago < SAMPLED_AGAIN:
            return QuantisationResult(bucket, "encode", rows)
        recall = await self._sampled(tenant_id, bucket)
        bad = recall < _enough(bucket)
        async with self._database.begin(tenant_id) as db:
            await BucketRepository(db, tenant_id).note_sample(bucket, recall, refused=bad)
        CODE_RECALL.labels(embedding_model(bucket.model)).observe(recall)
        if bad:
            rows = await self._run_batches(tenant_id, bucket, moved, coded=True)
            self._log_change("refused", tenant_id, bucket, rows)
            return QuantisationResult(bucket, "clear", rows, recall)
        return QuantisationResult(bucket, "encode", rows, recall)

    async def _clear(
        self, tenant_id: str, bucket: VectorBucket, moved: Moved
    ) -> QuantisationResult:
        rows = await self._run_batches(tenant_id, bucket, moved, coded=True)
        # What was refused is remembered while it is large.
        if not refused(bucket) or bucket.rows < least(self._exact_rows):
            async with self._database.begin(tenant_id) as db:
                await BucketRepository(db, tenant_id).forget(bucket)
            self._log_change("dropped", tenant_id, bucket, rows)
        return QuantisationResult(bucket, "clear", rows)

    async def _run_batches(
        self, tenant_id: str, bucket: VectorBucket, moved: Moved, *, coded: bool
    ) -> int:
        """Take the codes of all rows that have one, or give them to all that have none."""
        total = 0
        while True:
            async with self._database.begin(tenant_id) as db:
                ids = await BucketRepository(db, tenant_id).ids(bucket, coded=coded)
            done = 0
            for start in range(0, len(ids), self._batch):
                chosen = ids[start : start + self._batch]
                async with self._database.begin(tenant_id) as db:
                    repository = BucketRepository(db, tenant_id)
                    count = await (repository.clear if coded else repository.write)(bucket, chosen)
                done += count
                moved(count)
            total += done
            if not done:
                # Nothing is left, or other transactions hold what is.
                return total

    async def _sampled(self, tenant_id: str, bucket: VectorBucket) -> float:
        """The share of the nearest memories of a sample that codes find, at the depth where it
        is least; 1.0 without a sample.
        """
        async with self._database.begin(tenant_id) as db:
            rows = await BucketRepository(db, tenant_id).sample(bucket, SAMPLE)
        compared = (
            {DEPTHS[0]: nearest(bucket.rows)}
            if _is_short(bucket)
            else {depth: candidates(depth) for depth in DEPTHS}
        )
        shares: dict[int, list[float]] = {depth: [] for depth in compared}
        for memory_id, vector in rows:
            async with self._database.begin(tenant_id) as db:
                repository = BucketRepository(db, tenant_id)
                all_near = await repository.nearest(bucket, memory_id, vector, limit=max(compared))
                for depth, number in compared.items():
                    found = await repository.nearest_by_code(
                        bucket, memory_id, vector, limit=depth, candidates=number
                    )
                    if exact := all_near[:depth]:
                        # Any of several equally near ones will do.
                        near = sum(similarity >= exact[-1] - 1e-6 for similarity in found)
                        shares[depth].append(near / len(exact))
        return min((sum(some) / len(some) for some in shares.values() if some), default=1.0)

    def _log_change(self, event: str, tenant_id: str, bucket: VectorBucket, rows: int) -> None:
        CODE_EVENTS.labels(embedding_model(bucket.model), event).inc()
        log.info(
            "codes_changed",
            tenant_id=tenant_id,
            change=event,
            scope=bucket.scope,
            model=bucket.model,
            rows=rows,
        )
