"""Webhooks for mem0's clients: kept, signed and sent like all others."""

from app.governance.webhooks.service import WebhookService
from app.identity.tenants.access import Principal
from app.integrations.mem0.project_schemas import refuse_other_project
from app.integrations.mem0.webhook_schemas import (
    Mem0Webhook,
    Mem0WebhookCreate,
    Mem0WebhookUpdate,
)
from app.platform.values.pagination import PageQuery


class Mem0WebhookService:
    """Translates between mem0's webhooks and ours."""

    def __init__(self, webhooks: WebhookService) -> None:
        self._webhooks = webhooks

    async def list_webhooks(self, principal: Principal, project_id: str) -> list[Mem0Webhook]:
        """All webhooks of the tenant, newest first; there are at most 20.

        Raises:
            UnknownMem0ProjectError: the key belongs to another project.

        """
        refuse_other_project(principal, project_id)
        found = await self._webhooks.list_webhooks(principal, PageQuery())
        return [Mem0Webhook.of(webhook, principal.tenant_id) for webhook in found.items]

    async def add(
        self, principal: Principal, project_id: str, body: Mem0WebhookCreate
    ) -> Mem0Webhook:
        """The new webhook, with the secret that signs what is sent.

        Raises:
            UnknownMem0ProjectError: the key belongs to another project.
            NoCounterpartError: an event has none here.
            TargetRefusedError, TooManyWebhooksError, SecretKeyMissingError: nothing was made.

        """
        refuse_other_project(principal, project_id)
        made = await self._webhooks.add(principal, body.ours())
        return Mem0Webhook.of(made, principal.tenant_id, made.secret)

    async def update(self, principal: Principal, webhook_id: str, body: Mem0WebhookUpdate) -> None:
        """Change what is named; the rest stays. Safe to repeat.

        Raises:
            NoCounterpartError: an event has none here.
            WebhookNotFoundError: there is no such webhook.
            TargetRefusedError: the new address may not be called.

        """
        await self._webhooks.patch(principal, webhook_id, body.ours(), expected=None)

    async def delete(self, principal: Principal, webhook_id: str) -> None:
        """Delete a webhook.

        Raises:
            WebhookNotFoundError: there is no such webhook.

        """
        await self._webhooks.remove(principal, webhook_id)
