"""What can go wrong with a model, as the API documents it.

A provider's own message is never repeated to a caller: it may hold a piece of the key, or
of the text that was sent. It stays on the exception's cause, for whoever debugs.
"""

from collections.abc import Sequence
from typing import Final, Literal

from app.errors import UnavailableError, UnprocessableError

FailureReason = Literal[
    "authentication",
    "bad_answer",
    "connection",
    "model_not_found",
    "provider_error",
    "quota_exhausted",
    "rate_limited",
    "refused",
    "timeout",
]

_SENTENCES: Final[dict[FailureReason, str]] = {
    "authentication": "The provider refused the service's credentials.",
    "bad_answer": "The provider's answer cannot be used.",
    "connection": "The provider cannot be reached.",
    "model_not_found": "The provider does not have the configured model.",
    "provider_error": "The provider failed.",
    "quota_exhausted": "The service's quota at the provider is used up.",
    "rate_limited": "The provider is limiting the service's requests.",
    "refused": "The provider refused the request.",
    "timeout": "The provider did not answer in time.",
}


class EmbeddingUnavailableError(UnavailableError):
    """No vector could be had; nothing was written; safe to retry.

    Also for what the provider calls our mistake (401, 404, 400): the request of *our* caller
    was fine, so it stays a 503, and `reason` tells an operator what to mend.
    """

    code = "embedding_unavailable"
    title = "Embedding unavailable"

    def __init__(
        self,
        reason: FailureReason,
        *,
        what: str | None = None,
        provider_status: int | None = None,
        provider_code: str | None = None,
    ) -> None:
        """Say what failed.

        Args:
            reason: what a program may branch on.
            what: a sentence of ours about the failure, without text, keys or the
                provider's words; by default the one that belongs to the reason.
            provider_status: status of the provider's answer, when there was one.
            provider_code: the provider's own error code, already checked to be a plain word.

        """
        super().__init__(
            what or _SENTENCES[reason],
            reason=reason,
            **({} if provider_status is None else {"provider_status": provider_status}),
            **({} if provider_code is None else {"provider_code": provider_code}),
        )
        self.reason = reason


class UnknownEmbedderError(UnprocessableError):
    """A handle that this deployment cannot turn into an embedder."""

    code = "unknown_embedder"
    title = "Unknown embedder"

    def __init__(self, available: Sequence[str]) -> None:
        super().__init__(
            f"There is no such embedder here; this deployment offers {', '.join(available)}.",
            available=list(available),
        )
