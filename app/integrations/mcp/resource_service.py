"""Use cases of resources: a user's profile, and the blocks that always stand before a model."""

import re
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

from app.identity.tenants.access import Principal
from app.identity.users.errors import UserNotFoundError, UserRequiredError
from app.integrations.mcp.errors import ResourceNotFoundError
from app.integrations.mcp.schemas import ResourceListed, ResourcesListed
from app.integrations.mcp.service import NOTHING_YET, user_of
from app.memory.profiles.service import ProfileService
from app.platform.values.ids import composed, is_own_id
from app.prompting.blocks.schemas import BlockQuery
from app.prompting.blocks.service import BlockService

PROFILE_URI: Final = "kemem://users/{user_id}/profile"
BLOCK_URI: Final = "kemem://blocks/{block_id}"
BLOCKS: Final = 50
"""Blocks on a page of the list."""

_URI = re.compile(r"kemem://(?:users/([^/]+)/profile|blocks/([^/]+))")


class McpResourceService:
    def __init__(self, profiles: ProfileService, blocks: BlockService) -> None:
        self._profiles = profiles
        self._blocks = blocks

    async def list_resources(self, principal: Principal, cursor: str | None) -> ResourcesListed:
        """The profile of the caller's user, where there is one to take, and the blocks it sees.

        Raises:
            InvalidCursorError: the cursor is none that a page returned.

        """
        shown = []
        with suppress(UserRequiredError):
            user_id = user_of(principal, None)
            principal = principal.acting_as(user_id)
            uri = PROFILE_URI.format(user_id=quote(user_id, safe=""))
            if cursor is None:
                shown.append(ResourceListed(uri=uri, name="profile", title="Profile of the user"))
        query = BlockQuery(limit=BLOCKS, cursor=cursor)
        page = await self._blocks.list_blocks(principal, query)
        for block in page.items:
            uri = BLOCK_URI.format(block_id=quote(block.block_id, safe=""))
            shown.append(
                ResourceListed(
                    uri=uri, name=block.label, title=block.label, description=block.description
                )
            )
        return ResourcesListed(items=shown, next_cursor=page.next_cursor)

    async def read(self, principal: Principal, uri: str) -> str:
        """The text of a resource; of a user of whom nothing is known it says so.

        Raises:
            ResourceNotFoundError: the URI is of another form.
            BlockNotFoundError, UserNotFoundError: it is not the caller's to see.

        """
        found = _URI.fullmatch(uri)
        named = composed(unquote(found[1] or found[2])) if found else ""
        if found is None or not is_own_id(named):
            raise ResourceNotFoundError
        if found[2]:
            return (await self._blocks.get(principal, named)).value
        user_id = user_of(principal, named)
        try:
            text = await self._profiles.text(principal.acting_as(user_id), user_id)
        except UserNotFoundError:
            return NOTHING_YET
        return text or NOTHING_YET
