"""What can go wrong with a model, as the API documents it.

A provider's own message is never repeated to a caller: it may hold a piece of the key, or
of the text that was sent. It stays on the exception's cause, for whoever debugs.
"""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Literal

from pydantic import JsonValue

from app.errors import UnavailableError, UnprocessableError
from app.language.llm.extractor import ModelUse

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
    "too_long",
]

AnswerFault = Literal["declined", "empty", "filtered", "truncated", "unreadable", "unrelated"]

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
    "too_long": "The request is longer than the provider takes.",
}

_FAULTS: Final[dict[AnswerFault, str]] = {
    "declined": "The model declined to answer.",
    "empty": "The model's answer is empty.",
    "filtered": "The provider's filter withheld the answer.",
    "truncated": "The model's answer was cut off.",
    "unreadable": "The model's answer is not what was asked for.",
    "unrelated": "The model's answer says nothing of what it was to summarise.",
}


def in_seconds(wait: timedelta) -> int:
    """Whole seconds that are not too few, as `Retry-After` tells them."""
    return math.ceil(wait.total_seconds())


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
        retry_after: timedelta | None = None,
        provider_status: int | None = None,
        provider_code: str | None = None,
    ) -> None:
        """Say what failed.

        Args:
            reason: what a program may branch on.
            what: a sentence of ours about the failure, without text, keys or the
                provider's words; by default the one that belongs to the reason.
            retry_after: how long the provider wants to be left alone.
            provider_status: status of the provider's answer, when there was one.
            provider_code: the provider's own error code, already checked to be a plain word.

        """
        super().__init__(
            what or _SENTENCES[reason],
            reason=reason,
            **({} if retry_after is None else {"retry_after": in_seconds(retry_after)}),
            **({} if provider_status is None else {"provider_status": provider_status}),
            **({} if provider_code is None else {"provider_code": provider_code}),
        )
        self.reason = reason
        self.retry_after = retry_after
        if retry_after is not None:
            self.headers = {"Retry-After": str(in_seconds(retry_after))}


class ModelUnavailableError(UnavailableError):
    """A model gave no answer that can be used; nothing was learned from it; safe to retry.

    Never an empty answer instead: "nothing to remember" is something a model must have said.
    """

    code = "model_unavailable"
    title = "Model unavailable"

    def __init__(
        self,
        reason: FailureReason,
        *,
        fault: AnswerFault | None = None,
        retry_after: timedelta | None = None,
        use: ModelUse | None = None,
        provider_status: int | None = None,
        provider_code: str | None = None,
    ) -> None:
        """Say what failed.

        Args:
            reason: what a program may branch on.
            fault: of a `bad_answer`, what is wrong with it. What was cut off may fit when less
                is asked at a time; what was declined or filtered will be so again.
            retry_after: how long the provider wants to be left alone.
            use: what was spent all the same, for the ledger.
            provider_status: status of the provider's answer, when there was one.
            provider_code: the provider's own error code, already checked to be a plain word.

        """
        members: dict[str, JsonValue] = {
            "reason": reason,
            "fault": fault,
            "retry_after": None if retry_after is None else in_seconds(retry_after),
            "provider_status": provider_status,
            "provider_code": provider_code,
        }
        super().__init__(
            _SENTENCES[reason] if fault is None else _FAULTS[fault],
            **{name: value for name, value in members.items() if value is not None},
        )
        self.reason = reason
        self.fault = fault
        self.is_passing = fault is None
        self.retry_after = retry_after
        self.use = use or ModelUse()
        self.reconciling = False
        """Whether the text was read before, and the answer to it is as good as it was."""
        if members["retry_after"]:
            self.headers = {"Retry-After": str(members["retry_after"])}

    @property
    def would_repeat(self) -> bool:
        """Whether the endpoint has answered, and would answer the same request so again."""
        return self.fault is not None or self.reason == "too_long"


class UnknownModelError(UnprocessableError):
    """A handle that this deployment cannot turn into an extractor."""

    code = "unknown_model"
    title = "Unknown model"

    def __init__(self, available: Sequence[str]) -> None:
        super().__init__(
            f"There is no such model here; this deployment offers {', '.join(available)}.",
            available=list(available),
        )


class UnknownEmbedderError(UnprocessableError):
    """A handle that this deployment cannot turn into an embedder."""

    code = "unknown_embedder"
    title = "Unknown embedder"

    def __init__(self, available: Sequence[str]) -> None:
        super().__init__(
            f"There is no such embedder here; this deployment offers {', '.join(available)}.",
            available=list(available),
        )
