"""The two labels that every framework knows, and a new block as the table wants it."""

from app.identity.agents.schemas import MemoryBlockCreate
from app.platform.database.ids import new_id
from app.prompting.blocks.models import Block

DESCRIPTIONS = {
    "human": "What is known about the person you talk to: who they are, what they like, what they "
    "want. Keep it true and up to date.",
    "persona": "Who you are: your character, your manner, and how you go about your work.",
}

PER_USER = frozenset({"human", "persona"})
"""An agent talks to many people: what one of them has its model write must not stand before
another, so a block with such a label is a template unless it is somebody's or the request says
otherwise."""


def new_block(body: MemoryBlockCreate, *, user_id: str | None, creator: str) -> Block:
    """The block of a request, with what its label brings along."""
    per_user = body.per_user
    if per_user is None:
        per_user = body.label in PER_USER and user_id is None
    description = body.description
    if description is None:
        description = DESCRIPTIONS.get(body.label)
    return Block(
        block_id=body.block_id or new_id("blk"),
        label=body.label,
        value=body.value,
        value_limit=body.limit,
        description=description,
        tags=body.tags,
        metadata_=body.metadata,
        read_only=body.read_only,
        hidden=body.hidden,
        user_id=user_id,
        per_user=per_user,
        creator=creator,
    )
