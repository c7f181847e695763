"""The port to whatever reads a query beside each document and says how well they fit.

Adapter: `http_reranker`, for any endpoint of Cohere's, Jina's or TEI's kind. Without one
the order of a search stands as it is.
"""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from app.errors import UnavailableError
from app.language.llm.errors import FailureReason

RERANK_CANDIDATES: Final = 50
"""Most documents of one call: what a caller has beyond them keeps its place behind them."""


RerankOperation = Literal["rerank"]
"""What a reranker is asked for, as the ledger names it."""


class RerankUnavailableError(UnavailableError):
    """No scores could be had; a search answers without them and says so."""

    code = "rerank_unavailable"
    title = "Reranker unavailable"

    def __init__(
        self,
        reason: FailureReason,
        *,
        what: str | None = None,
        provider_status: int | None = None,
    ) -> None:
        """Say what failed.

        Args:
            reason: what a program may branch on.
            what: a sentence of ours about the failure, without text, keys or the
                provider's words; by default one that names the reason.
            provider_status: status of the provider's answer, when there was one.

        """
        super().__init__(
            what or f"The reranker gave no scores: {reason}.",
            reason=reason,
            **({} if provider_status is None else {"provider_status": provider_status}),
        )
        self.reason = reason
        self.provider_status = provider_status


class Reranker(Protocol):
    """Scores documents for a query. One instance is shared by the whole process.

    Calls may overlap freely on one event loop, and may be cancelled at any time.
    """

    @property
    def name(self) -> str:
        """`provider/model`, for answers and metrics; never an address."""
        ...

    @property
    def model(self) -> str:
        """The model as its provider names it; what the ledger counts it under."""
        ...

    async def rerank(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """One score per document, in the order of the documents; higher fits better.

        Every score is finite and from 0 to 1. A blank document, one the provider leaves out,
        and every one for a blank query get 0, the lowest. Scores of two calls need not be
        comparable. Safe to repeat; comes back within the reranker's time limit.

        Args:
            query: of any length; how much of it is read is the adapter's affair.
            documents: at most RERANK_CANDIDATES of them, of any length.

        Raises:
            RerankUnavailableError: no scores, or not in time; safe to retry.

        """
        ...
