"""mem0's project, which is the tenant of the key, and its webhooks: kept, signed and sent like all
others.
"""

from pydantic import JsonValue

from app.governance.webhooks.service import WebhookService
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.schemas import TenantPatch
from app.identity.tenants.service import TenantService
from app.integrations.mem0.project_schemas import (
    INSTRUCTIONS,
    Mem0ProjectUpdate,
    Mem0Webhook,
    Mem0WebhookCreate,
    Mem0WebhookUpdate,
    refuse_other_project,
    shown_project,
)
from app.platform.values.pagination import PageQuery


class Mem0ProjectService:
    """Reads and writes what mem0's project and our tenant have in common."""

    def __init__(self, tenants: TenantService) -> None:
        self._tenants = tenants

    async def get(self, principal: Principal, fields: list[str]) -> dict[str, JsonValue]:
        """The project, or the named fields of it; null for what has no counterpart.

        Raises:
            NoCounterpartError: a field is none of mem0's.
            KeyRestrictedError: the key is one user's or one agent's, and the project everybody's.

        """
        if principal.access.restricted:
            raise KeyRestrictedError
        tenant = await self._tenants.get(principal.tenant_id)
        return shown_project(tenant.tenant_id, tenant.tenant_name, tenant.config, fields)

    async def update(self, principal: Principal, body: Mem0ProjectUpdate) -> None:
        """Set the instructions to the extractor of the whole tenant. Safe to repeat.

        Raises:
            NoCounterpartError: something else was to be changed; nothing was.
            VersionConflictError: somebody changes the tenant at the same time.

        """
        body.refuse_unserved()
        named = [name for name in (body.org_id, body.project_id) if name is not None]
        refuse_other_project(principal, *named)
        if body.custom_instructions is None:
            return
        tenant = await self._tenants.get(principal.tenant_id)
        config = {name: value for name, value in tenant.config.items() if name != INSTRUCTIONS}
        if body.custom_instructions.strip():
            config[INSTRUCTIONS] = body.custom_instructions
        if config != tenant.config:
            patch = TenantPatch(config=config)
            await self._tenants.patch(principal.tenant_id, patch, expected=tenant.version)


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
