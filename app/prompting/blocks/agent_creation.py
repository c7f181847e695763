"""`POST /v1/agents`: an agent, with the blocks that it begins with."""

from app.identity.agents.errors import TemplateBoundError
from app.identity.agents.repository import AgentRepository
from app.identity.agents.schemas import AgentEquip, AgentRead
from app.identity.agents.service import AgentService
from app.identity.tenants.access import Principal
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.blocks.history_repository import BlockAuthor, BlockTimeline
from app.prompting.blocks.repository import BlockRepository
from app.prompting.blocks.standards import new_block


class AgentWithBlocksService:
    def __init__(self, work: Work, agents: AgentService) -> None:
        self._work = work
        self._agents = agents

    async def add(
        self, principal: Principal, body: AgentEquip, *, key: IdempotencyKey | None = None
    ) -> AgentRead:
        """Create an agent with its blocks: all of it, or nothing.

        Raises:
            IdTakenError: the tenant has an agent or a block with that id.
            BlockNotFoundError: one of `block_ids` is not for this caller.
            LabelTakenError: two of the blocks have one label.
            BlockLimitError: a text is longer than its block's limit.
            TemplateBoundError: one of `block_ids` is a user's copy.
            UnknownEmbedderError, UnknownModelError, InvalidConfigError, KeyRestrictedError: as
                `AgentService.prepare` says.
            MemoryDisabledError: blocks are to be made, and writing is switched off.

        """
        if body.memory_blocks:
            self._work.refuse_disabled()
        agent = await self._agents.prepare(principal, body)
        async with self._work.write(principal, key) as unit:
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
                await blocks.attach(shared, agent.agent_id)
            return unit.answer(AgentRead.model_validate(agent), 201)
