"""mem0's project: the tenant of the key."""

from pydantic import JsonValue

from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.schemas import TenantPatch
from app.identity.tenants.service import TenantService
from app.integrations.mem0.project_schemas import (
    INSTRUCTIONS,
    Mem0ProjectUpdate,
    refuse_other_project,
    shown_project,
)


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
