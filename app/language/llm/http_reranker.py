"""Scores from any endpoint that speaks Cohere's and Jina's `/rerank`, or TEI's.

A search waits for the answer and can do without it, so the whole call has one deadline and
no patience: nothing is retried but a connection that was cut, and no redirect is followed.
"""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

import httpx2
from annotated_types import Ge
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidationError,
)

from app.language.llm.embedder import encodable
from app.language.llm.errors import FailureReason
from app.language.llm.reranker import RERANK_CANDIDATES, RerankUnavailableError

LONGEST_TEXT: Final = 2_000
"""Characters of the query and of a document that are sent, as many as a memory may have by
default. Some servers refuse what is longer than their model reads."""

# A row takes some 60 bytes. Some servers send every document back whether asked or not, and
# some write each character of it in six bytes.
_ANSWER_BYTES: Final = 64 * 1024
_ANSWER_BYTES_PER_REQUEST_BYTE: Final = 8

# What single precision makes of 0 and 1.
_ROUNDING: Final = 1e-3

# The line broke under a request that may be sent again; whoever refuses it does so twice.
_CUT: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.CloseError, httpx2.RemoteProtocolError)

_REASONS: Final[dict[int, FailureReason]] = {
    401: "authentication",
    402: "quota_exhausted",
    403: "authentication",
    404: "model_not_found",
    408: "timeout",
    429: "rate_limited",
    504: "timeout",
}


@dataclass(frozen=True, slots=True)
class RerankDialect:
    """How one family of servers wants to be asked."""

    body: Callable[[str, str, Sequence[str]], Mapping[str, Any]]
    """Of model, query and documents."""

    documents_per_call: int = RERANK_CANDIDATES


def _cohere(model: str, query: str, documents: Sequence[str]) -> Mapping[str, Any]:
    return {
        "model": model,
        "query": query,
        "documents": list(documents),
        "top_n": len(documents),
    }


def _jina(model: str, query: str, documents: Sequence[str]) -> Mapping[str, Any]:
    # By default it sends all documents back.
    return {**_cohere(model, query, documents), "return_documents": False}


def _tei(_model: str, query: str, documents: Sequence[str]) -> Mapping[str, Any]:
    # It serves one model; and without `truncate` one long text fails the whole call.
    return {"query": query, "texts": list(documents), "raw_scores": False, "truncate": True}


COHERE: Final = RerankDialect(_cohere)
JINA: Final = RerankDialect(_jina)
# Its --max-client-batch-size is 32 unless somebody changes it.
TEI: Final = RerankDialect(_tei, documents_per_call=32)


class HTTPReranker:
    """One model of one endpoint. Belongs to the event loop of its client, which it closes."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        provider: str,
        model: str,
        address: str,
        dialect: RerankDialect,
        timeout: timedelta,
    ) -> None:
        """Make a reranker; nothing is sent.

        Args:
            client: brings the key, and no time limit of its own.
            provider: the first part of the name.
            model: as the provider names it.
            address: of the endpoint itself, with its path.
            dialect: how it wants to be asked.
            timeout: for a whole call of `rerank`, from the first connection to the last byte.

        """
        self._client = client
        self._name = f"{provider}/{model}"
        self._model = model
        self._address = address
        self._dialect = dialect
        self._timeout = timeout

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._model

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """As the port says.

        The first LONGEST_TEXT characters of a text count. Scores of a provider that all lie
        in 0 to 1 stand. When one does not they are taken for logits, and all become
        1 / (1 + e^-score), as the servers that scale scores themselves do it.

        Raises:
            RerankUnavailableError: no scores could be had, or not in time.
            ValueError: there are more documents than a call may have.

        """
        if len(documents) > RERANK_CANDIDATES:
            msg = f"{len(documents)} documents; a call takes {RERANK_CANDIDATES}"
            raise ValueError(msg)
        scores = [0.0] * len(documents)
        places = [place for place, text in enumerate(documents) if text.strip()]
        if not places or not query.strip():
            return scores
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                answered = await self._ask(_shown(query), [_shown(documents[at]) for at in places])
        except TimeoutError:
            raise RerankUnavailableError("timeout") from None
        for index, score in zip(answered, unit_scores(list(answered.values())), strict=True):
            scores[places[index]] = score
        return scores

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        await self._client.aclose()

    async def _ask(self, query: str, documents: Sequence[str]) -> dict[int, float]:
        """The provider's scores by place among the documents; those it left out are missing."""
        scores: dict[int, float] = {}
        step = self._dialect.documents_per_call
        for start in range(0, len(documents), step):
            part = documents[start : start + step]
            body = json.dumps(
                self._dialect.body(self._model, query, part), ensure_ascii=False
            ).encode()
            found = _read(await self._post(body), len(part))
            scores |= {start + index: score for index, score in found.items()}
        return scores

    async def _post(self, body: bytes) -> bytes:
        """The body of the answer; a connection that was cut is tried once more.

        Raises:
            RerankUnavailableError: the endpoint cannot be reached, or refuses.

        """
        try:
            try:
                return await self._post_once(body)
            except _CUT:
                return await self._post_once(body)
        except httpx2.HTTPError as error:
            raise RerankUnavailableError("connection") from error

    async def _post_once(self, body: bytes) -> bytes:
        """The body of the answer to one request.

        Raises:
            RerankUnavailableError: the endpoint refuses, or answers too long.

        """
        most = _ANSWER_BYTES + _ANSWER_BYTES_PER_REQUEST_BYTE * len(body)
        answer = bytearray()
        async with self._client.stream("POST", self._address, content=body) as response:
            if not response.is_success:
                raise _refusal(response.status_code)
            # Raw, because a few compressed bytes can unfold to any size; none are asked for.
            async for chunk in response.aiter_raw():
                answer += chunk
                if len(answer) > most:
                    raise _bad_answer(f"The provider's answer is longer than {most} bytes.")
        return bytes(answer)


def unit_scores(scores: Sequence[float]) -> list[float]:
    """The scores in 0 to 1, in the same order: as they are, or as probabilities of logits."""
    if all(-_ROUNDING <= score <= 1 + _ROUNDING for score in scores):
        return [min(max(score, 0.0), 1.0) for score in scores]
    # The logistic function, in the form that cannot overflow.
    return [0.5 + 0.5 * math.tanh(score / 2) for score in scores]


class _RerankRow(BaseModel):
    model_config = ConfigDict(strict=True)

    index: Annotated[int, Ge(0)]
    score: FiniteFloat = Field(validation_alias=AliasChoices("relevance_score", "score"))


class _RerankAnswer(BaseModel):
    results: list[_RerankRow]


# TEI sends the rows bare.
_ANSWER: Final[TypeAdapter[_RerankAnswer | list[_RerankRow]]] = TypeAdapter(
    _RerankAnswer | list[_RerankRow]
)


def _read(body: bytes, count: int) -> dict[int, float]:
    """The scores by place among `count` documents.

    Raises:
        RerankUnavailableError: the answer is not what was asked for.

    """
    try:
        answer = _ANSWER.validate_json(body)
    except ValidationError:
        # Not chained: the error quotes the answer, which may quote the documents.
        raise _bad_answer("The provider's answer is not a list of scores.") from None
    rows = answer.results if isinstance(answer, _RerankAnswer) else answer
    if not rows:
        raise _bad_answer(f"The provider sent no scores for {count} documents.")
    scores = {row.index: row.score for row in rows}
    if len(scores) != len(rows) or max(scores) >= count:
        raise _bad_answer(f"The provider numbered its {count} documents wrongly.")
    return scores


def _shown(text: str) -> str:
    return encodable(text[:LONGEST_TEXT])


def _refusal(status: int) -> RerankUnavailableError:
    if 300 <= status < 400:
        return RerankUnavailableError(
            "refused",
            what="The provider sends the service to another address, where it does not go.",
            provider_status=status,
        )
    reason = _REASONS.get(status) or ("provider_error" if status >= 500 else "refused")
    return RerankUnavailableError(reason, provider_status=status)


def _bad_answer(what: str) -> RerankUnavailableError:
    return RerankUnavailableError("bad_answer", what=what)
