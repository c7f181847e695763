"""Memories in conflict: a scripted extractor and reconciler that leave both in doubt."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from httpx import AsyncClient

from app.language.keyless.extractor import RulesExtractor
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.extractor import Extraction, ExtractionRequest, Proposed
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    Neighbour,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
)
from app.runtime import Runtime
from tests.support.model_service import app_of

Decide = Callable[[Sequence[str]], ReconcileDecision]

LISBON = "I live alone in a small flat in Lisbon."
PORTO = "I live alone in a small flat in Porto."
FARO = "I live alone in a small flat in Faro."


class Repeating(RulesExtractor):
    """Proposes every message of the user as it stands, in their own words."""

    async def extract(self, request: ExtractionRequest) -> Extraction:
        told = [turn for turn in request.turns if turn.role == "user" and not turn.context]
        return Extraction(
            tuple(
                Proposed(
                    turn.content,
                    "fact",
                    0.9,
                    (turn.message_id,),
                    scope=request.scopes[0],
                    quoted=True,
                )
                for turn in told
            )
        )


class Doubting(RulesReconciler):
    """Adds every statement in conflict with all that is near to it, unless `scripted` decides."""

    def __init__(self) -> None:
        self.scripted: dict[str, Decide] = {}

    async def reconcile(
        self, questions: Sequence[ReconcileQuestion], agenda: Agenda = NO_AGENDA
    ) -> Reconciliation:
        del agenda
        return Reconciliation(tuple(self._decide(question) for question in questions))

    def _decide(self, question: ReconcileQuestion) -> ReconcileDecision:
        ids = [_id(neighbour) for neighbour in question.neighbours]
        scripted = self.scripted.get(question.proposed.content)
        if scripted is not None:
            return scripted(ids)
        return ReconcileDecision("ADD", conflicts=tuple(ids), reason="Nobody can tell.")


def _id(neighbour: Neighbour) -> str:
    return neighbour.memory_id


@asynccontextmanager
async def in_doubt(
    runtime: Runtime, reconciler: Doubting
) -> AsyncIterator[tuple[FastAPI, Runtime]]:
    """The service with these two, and its runtime."""
    rules = ExtractionModel(Repeating(), reconciler)
    scripted = replace(runtime, models=ModelCatalogue("rules", rules=rules))
    async with app_of(scripted) as application:
        yield application, scripted


async def tell(
    client: AsyncClient, *texts: str, at: str | None = None, **fields: Any
) -> list[dict[str, Any]]:
    """Say these statements of Ana's in one request; the memories that hold them."""
    metadata: Mapping[str, Any] = {} if at is None else {"client_time": at}
    messages = [{"role": "user", "content": text, "metadata": metadata} for text in texts]
    answer = await client.post("/memories", json={"messages": messages, "user_id": "ana"} | fields)
    assert answer.status_code in {200, 201}, answer.text
    outcomes = answer.json()["results"]
    assert all(outcome["memory"] for outcome in outcomes), outcomes
    return [outcome["memory"] for outcome in outcomes]


async def conflicts(client: AsyncClient, *memories: Mapping[str, Any]) -> list[list[str]]:
    """What each memory is in conflict with, as a read shows it."""
    return [
        (await client.get(f"/memories/{one['memory_id']}")).json()["conflicts_with"]
        for one in memories
    ]
