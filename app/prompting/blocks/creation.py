"""New blocks, alone or together with their agent (`POST /v1/agents`).

The labels `human` and `persona`, which every framework knows, bring a description and make a
block a template.
"""

from app.identity.agents.errors import BlockOfSessionError, TemplateBoundError
from app.identity.agents.repository import AgentRepository
from app.identity.agents.schemas import AgentEquip, AgentRead, MemoryBlockCreate
from app.identity.agents.service import AgentService
from app.identity.tenants.access import Principal
from app.platform.database.base import new_id
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.blocks.history_repository import BlockAuthor, BlockTimeline
from app.prompting.blocks.models import Block
from app.prompting.blocks.repository import BlockRepository

DESCRIPTIONS = {
    "human": "What is known about the person you talk to: who they are, what they like, what they "
    "want. Keep it true and up to date.",
    "persona": "Who you are: your character, your manner, and how you go about your work.",
}

PER_USER = frozenset({"human", "persona"})
"""An agent talks to many people, and what a model writes for one of them must not be shown to the
others. So a block with such a label is a template, unless it belongs to a user or the request says
otherwise."""


def new_block(body: MemoryBlockCreate, *, user_id: str | None, creator: str) -> Block:
    """The block that a request describes, with the defaults of its label."""
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


class AgentWithBlocksService:
    def __init__(self, work: Work, agents: AgentService) -> None:
        self._work = work
        self._agents = agents

    async def add(
        self, principal: Principal, body: AgentEquip, *, key: IdempotencyKey | None = None
    ) -> AgentRead:
        """Create an agent together with its blocks, in one transaction.

        Raises:
            IdTakenError: the tenant has an agent or a block with that id.
            IdNotAllowedError: the key is bound, and the id of a block is not its to choose.
            BlockNotFoundError: one of `block_ids` is not for this caller.
            LabelTakenError: two of the blocks have the same label.
            BlockLimitError: a text is longer than its block's limit.
            TemplateBoundError, BlockOfSessionError: one of `block_ids` is a user's copy, or a
                session's.
            UnknownEmbedderError, UnknownModelError, InvalidConfigError, KeyRestrictedError: as
                in `AgentService.prepare`.
            MemoryDisabledError: it has new blocks, and memory is switched off.

        """
        if body.memory_blocks:
            self._work.refuse_disabled()
        for wanted in body.memory_blocks:
            principal.access.refuse_choice("block_id", wanted.block_id)
        agent = await self._agents.prepare(principal, body)
        # An agent alone, or with blocks that are there, remembers nothing.
        async with self._work.write(principal, key, while_disabled=not body.memory_blocks) as unit:
            await AgentRepository(unit.db, principal.access).add(agent)
            blocks = BlockRepository(unit.db, principal.access)
            timeline = BlockTimeline(unit.db, principal.tenant_id)
            for wanted in body.memory_blocks:
                made = new_block(wanted, user_id=None, creator=principal.key_id)
                await blocks.add(made)
                await timeline.open(made, "create", BlockAuthor(principal.key_id))
                await blocks.attach(made, agent.agent_id)
            # In order, so that two such requests do not wait for each other.
            for block_id in sorted(set(body.block_ids)):
                shared = await blocks.get(block_id, lock=True)
                if shared.template_id is not None:
                    raise TemplateBoundError(shared.template_id)
                if shared.session_id is not None:
                    raise BlockOfSessionError(shared.session_id)
                await blocks.attach(shared, agent.agent_id)
            return unit.answer(AgentRead.model_validate(agent), 201)
