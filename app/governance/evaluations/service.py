"""Use cases of evaluations: results are kept, listed and deleted."""

import hashlib
import json
from typing import Final

import structlog

from app.governance.evaluations.repository import EvaluationRepository, EvaluationResult
from app.governance.evaluations.schemas import (
    EvaluationCreate,
    EvaluationNotFoundError,
    EvaluationQuery,
    EvaluationRead,
)
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.platform.database.base import new_id
from app.platform.values.pagination import Page, decode_time, page
from app.platform.version import VERSION
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

MOST_KEPT: Final = 1_000
"""Results of a tenant; a further one takes the place of the oldest."""


class EvaluationService:
    """They belong to the tenant: keys that are bound to a user or an agent see none."""

    def __init__(self, work: Work, *, most: int = MOST_KEPT) -> None:
        self._work = work
        self._most = most

    async def add(
        self, principal: Principal, body: EvaluationCreate, *, key: IdempotencyKey | None = None
    ) -> EvaluationRead:
        """Keep what an evaluation measured. Safe to retry with `key`.

        Raises:
            KeyRestrictedError: the key is bound to a user or an agent.

        """
        _refuse_restricted(principal)
        result = EvaluationResult(
            evaluation_id=new_id("evl"),
            **body.model_dump(),
            release=VERSION,
            fingerprint=_fingerprint(body),
            actor=principal.key_id,
        )
        async with self._work.write(principal, key, while_disabled=True) as unit:
            await EvaluationRepository(unit.db, principal.tenant_id).add(result, most=self._most)
            shown = unit.answer(_shown(result), 201)
        log.info("evaluation_stored", evaluation_id=result.evaluation_id)
        return shown

    async def get(self, principal: Principal, evaluation_id: str) -> EvaluationRead:
        """The result.

        Raises:
            EvaluationNotFoundError: the tenant has no such result, or the key is restricted.

        """
        if principal.access.restricted:
            raise EvaluationNotFoundError(evaluation_id)
        async with self._work.read(principal) as db:
            return _shown(await EvaluationRepository(db, principal.tenant_id).get(evaluation_id))

    async def list_results(
        self, principal: Principal, query: EvaluationQuery
    ) -> Page[EvaluationRead]:
        """A page of results, newest first.

        Raises:
            KeyRestrictedError: the key is bound to a user or an agent.
            InvalidCursorError: the cursor is not one of this list.

        """
        _refuse_restricted(principal)
        start = decode_time(query.cursor, "evaluations")
        equal = query.model_dump(include={"name", "dataset"}, exclude_none=True)
        async with self._work.read(principal) as db:
            rows = await EvaluationRepository(db, principal.tenant_id).list_results(
                equal, start=start, limit=query.limit
            )
        return page(
            "evaluations",
            rows,
            query.limit,
            show=_shown,
            place=lambda row: (row.create_time, row.evaluation_id),
        )

    async def delete(self, principal: Principal, evaluation_id: str) -> None:
        """Delete a result.

        Raises:
            KeyRestrictedError: the key is bound to a user or an agent.
            EvaluationNotFoundError: the tenant has no such result.

        """
        _refuse_restricted(principal)
        async with self._work.write(principal, while_disabled=True) as unit:
            await EvaluationRepository(unit.db, principal.tenant_id).delete(evaluation_id)


def _refuse_restricted(principal: Principal) -> None:
    """Raises KeyRestrictedError."""
    if principal.access.restricted:
        raise KeyRestrictedError


def _fingerprint(body: EvaluationCreate) -> bytes:
    measured = json.dumps([body.dataset, body.settings], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(measured.encode()).digest()


def _shown(row: EvaluationResult) -> EvaluationRead:
    names = EvaluationRead.model_fields.keys() - {"fingerprint"}
    fields = {name: getattr(row, name) for name in names}
    return EvaluationRead(**fields, fingerprint=row.fingerprint.hex())
