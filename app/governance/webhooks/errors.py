"""What can go wrong with a webhook."""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class WebhookNotFoundError(NotFoundError):
    code = "webhook_not_found"
    title = "Webhook not found"

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"No webhook {webhook_id}.", webhook_id=webhook_id)


class DeliveryNotFoundError(NotFoundError):
    code = "delivery_not_found"
    title = "Delivery not found"

    def __init__(self, delivery_id: str) -> None:
        super().__init__(f"No delivery {delivery_id}.", delivery_id=delivery_id)


class TooManyWebhooksError(ConflictError):
    code = "too_many_webhooks"
    title = "Too many webhooks"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This tenant has {most} webhooks, which is the most; delete one first.", most=most
        )


class TargetRefusedError(UnprocessableError):
    """The address of a webhook may not be called; says why, never what it resolved to."""

    code = "target_refused"
    title = "Target refused"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"`url` {reason}.", errors=[{"location": ["body", "url"], "detail": reason}]
        )


class SecretKeyMissingError(ConflictError):
    code = "secret_key_missing"
    title = "No key for secrets"

    def __init__(self) -> None:
        super().__init__(
            "This deployment stores no secrets of webhooks, because MEMORY_SECRET_KEY is not set. "
            "Whoever runs it can set it, to what `openssl rand -base64 32` prints."
        )
