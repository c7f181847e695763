"""One call to `/v1/embeddings`, and the distrust its answer deserves.

Compatible servers differ: some answer out of order, in another dimension than asked, or
with fewer vectors than texts. A wrong vector stored is a wrong memory that nobody sees, so
whatever does not fit is an error here.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from app.language.llm.embedder import EmbeddingUse, Vectors, unit_rows
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.llm.openai_client import failure_of, within_timeout
from app.platform.observability.spans import model_call

if TYPE_CHECKING:
    import openai


# Reading an answer takes 0.2 ms for one vector of 1,536 and 15 ms for 128 of them.
_INLINE_BYTES: Final = 100_000

# More than any call has; what a server says beyond it would run over in the ledger.
_MOST_TOKENS: Final = 1_000_000_000


def _tokens(usage: Any) -> int:
    """Tokens read, as the provider counted them; nothing said, or nonsense, is 0."""
    counts = usage if isinstance(usage, dict) else {}
    # Embeddings write no tokens, and some providers give the total alone.
    for count in (counts.get("prompt_tokens"), counts.get("total_tokens")):
        if isinstance(count, int | float) and math.isfinite(count):
            return min(max(int(count), 0), _MOST_TOKENS)
    return 0


class _VectorRow(BaseModel):
    index: int
    embedding: list[float]


class _VectorAnswer(BaseModel):
    data: list[_VectorRow]
    tokens: Annotated[int, Field(alias="usage"), BeforeValidator(_tokens)] = 0


async def request_vectors(
    client: "openai.AsyncOpenAI",
    model: str,
    texts: Sequence[str],
    *,
    dimensions: int | None,
    use: EmbeddingUse,
) -> Vectors:
    """One unit row per text, in their order, all of whatever length the provider chose.

    Args:
        client: brings its own timeout and retries.
        model: as the provider names it.
        texts: at least one; none empty, none too long.
        dimensions: length to ask for; None leaves it to the provider.
        use: the call is added to it, whatever becomes of it.

    Raises:
        EmbeddingUnavailableError: the call failed, or its answer cannot be used.

    """
    # Of its own, because answers are read in threads that may not share one.
    spent = EmbeddingUse(calls=1)
    try:
        body = await _request(client, model, texts, dimensions)
        if len(body) <= _INLINE_BYTES:
            return _read(body, len(texts), spent)
        # The parser itself holds the interpreter (11 ms for the 15 above), but between it and
        # each row the event loop gets its turn.
        return await asyncio.to_thread(_read, body, len(texts), spent)
    except EmbeddingUnavailableError:
        spent.failures = 1
        raise
    finally:
        use.add(spent)


async def _request(
    client: "openai.AsyncOpenAI", model: str, texts: Sequence[str], dimensions: int | None
) -> bytes:
    """The body of the answer to one call.

    Raises:
        EmbeddingUnavailableError: the endpoint cannot be reached, or refuses.

    """
    import openai

    try:
        # The raw answer, because the SDK builds models from it without checking them and
        # fails in its own ways on a bad one.
        with model_call("embeddings", model):
            response = await within_timeout(
                client,
                client.embeddings.with_raw_response.create(
                    model=model,
                    input=list(texts),
                    # Not every local server knows base64, the SDK's default.
                    encoding_format="float",
                    dimensions=openai.omit if dimensions is None else dimensions,
                ),
            )
    except openai.OpenAIError as error:
        failure = failure_of(error)
        raise EmbeddingUnavailableError(
            failure.reason,
            retry_after=failure.retry_after,
            provider_status=failure.status,
            provider_code=failure.code,
        ) from error
    return response.content


def _read(body: bytes, count: int, spent: EmbeddingUse) -> Vectors:
    """One row per text, in their order.

    Raises:
        EmbeddingUnavailableError: the answer is not what was asked for.

    """
    try:
        answer = _VectorAnswer.model_validate_json(body)
    except ValidationError:
        # Not chained: the error quotes the answer, megabytes of it.
        raise _bad_answer("The provider's answer is not a list of embeddings.") from None
    spent.input_tokens = answer.tokens
    rows = sorted(answer.data, key=lambda row: row.index)
    if len(rows) != count:
        raise _bad_answer(f"The provider sent {len(rows)} vectors for {count} texts.")
    if [row.index for row in rows] != list(range(count)):
        raise _bad_answer(f"The provider numbered its {count} vectors wrongly.")
    width = len(rows[0].embedding)
    vectors = np.empty((count, width), np.float64)
    for position, row in enumerate(rows):
        if len(row.embedding) != width:
            raise _bad_answer(
                f"The provider sent vectors of {width} and of {len(row.embedding)} dimensions."
            )
        vectors[position] = row.embedding
    if width == 0 or not np.isfinite(vectors).all():
        raise _bad_answer("The provider sent vectors that are empty or not finite.")
    return unit_rows(vectors)


def _bad_answer(what: str) -> EmbeddingUnavailableError:
    return EmbeddingUnavailableError("bad_answer", what=what)
