"""Filter: what a run reads and proposes, as processors see it, and what may come back.

The messages stay as they were stored: only the extractor reads what a processor made of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from app.conversation.messages.schemas import MessageCreate
from app.identity.agents.config import Processing
from app.language.llm.extractor import Extraction, Proposed
from app.memory.extraction.run_state import RunRequest, RunState
from app.platform.plugins.points import (
    AFTER_EXTRACT,
    BEFORE_EXTRACT,
    BEFORE_STORE,
    About,
    AfterExtract,
    BeforeExtract,
    BeforeStore,
    ProposedMemory,
    ReadTurn,
    StoredMemory,
)

_SHARE: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(ge=0, le=1)])


class ProcessorFilter:
    """Shows an agent's processors what is read and what was proposed, and keeps what they leave."""

    def __init__(self, processing: Processing) -> None:
        self._processing = processing

    async def turns(self, state: RunState) -> RunState:
        """The state with the turns that processors left for the extractor.

        Raises:
            ProcessorFailedError: one failed that may not.

        """
        request = state.request
        chain = await self._processing.of_agent(request.principal, request.agent_id)
        state = replace(state, chain=chain)
        turns = request.reading.turns
        if not turns or not chain.at(BEFORE_EXTRACT):
            return state
        shown = tuple(
            ReadTurn(
                turn.message_id, turn.role, turn.content, turn.name, turn.said_at, turn.context
            )
            for turn in turns
        )
        after = await chain.ask(BeforeExtract(_about(request), shown), _with_text)
        if after.turns == shown:
            return state
        by_id = {turn.message_id: turn for turn in turns}
        left = [replace(by_id[turn.id], content=turn.content) for turn in after.turns]
        return replace(
            state,
            request=replace(
                request,
                reading=replace(request.reading, turns=left),
                context=replace(request.context, turns=left),
            ),
            silenced=all(turn.context for turn in left),
        )

    async def proposals(self, state: RunState) -> RunState:
        """The state with the proposals that processors left, as they are to be judged.

        Raises:
            ProcessorFailedError: one failed that may not.

        """
        extraction = state.extraction
        if extraction.proposals and state.chain.at(AFTER_EXTRACT):
            extraction = await _after_extract(state, extraction)
        if extraction.proposals and state.chain.at(BEFORE_STORE):
            extraction = await _before_store(state, extraction)
        return replace(state, extraction=extraction)


async def _after_extract(state: RunState, extraction: Extraction) -> Extraction:
    shown = tuple(
        ProposedMemory(
            str(index),
            proposed.content,
            proposed.confidence,
            proposed.source_error,
            proposed.memory_type,
            proposed.scope,
            proposed.evidence,
        )
        for index, proposed in enumerate(extraction.proposals)
    )
    after = await state.chain.ask(AfterExtract(_about(state.request), shown), _as_proposed)
    left = {
        proposal.id: {
            "content": proposal.content,
            "confidence": proposal.confidence,
            "source_error": proposal.source_error,
        }
        for proposal in after.proposals
    }
    return _taken(extraction, left)


async def _before_store(state: RunState, extraction: Extraction) -> Extraction:
    shown = tuple(
        StoredMemory(
            str(index),
            proposed.content,
            {},
            proposed.memory_type,
            proposed.scope,
            extracted=True,
        )
        for index, proposed in enumerate(extraction.proposals)
    )
    after = await state.chain.ask(BeforeStore(_about(state.request), shown), _as_stored)
    return _taken(extraction, {memory.id: {"content": memory.content} for memory in after.memories})


def _taken(extraction: Extraction, left: Mapping[str, Mapping[str, Any]]) -> Extraction:
    return replace(
        extraction,
        proposals=tuple(
            _replaced(proposed, left[str(index)])
            for index, proposed in enumerate(extraction.proposals)
            if str(index) in left
        ),
    )


def _replaced(proposed: Proposed, values: Mapping[str, Any]) -> Proposed:
    if values["content"] == proposed.content:
        return replace(proposed, **values)
    # What the graph would learn was read in words that are not to be kept.
    return replace(proposed, **values, relations=())


def _about(request: RunRequest) -> About:
    scopes = request.context.scopes
    return About(
        request.principal.tenant_id,
        scopes.user_id,
        request.agent_id or scopes.agent_id,
        scopes.session_id,
    )


def _with_text(item: ReadTurn) -> ReadTurn:
    return replace(item, content=_text(item.content))


def _as_proposed(item: ProposedMemory) -> ProposedMemory:
    confidence = _SHARE.validate_python(item.confidence)
    error = None if item.source_error is None else _text(item.source_error)
    return replace(item, content=_text(item.content), confidence=confidence, source_error=error)


def _as_stored(item: StoredMemory) -> StoredMemory:
    """Raises ValueError for metadata, which is the request's to give."""
    if item.metadata:
        raise ValueError("the metadata of what was extracted is its request's")
    return replace(item, content=_text(item.content))


def _text(content: str) -> str:
    """A text by the rules of messages. Raises ValueError."""
    return MessageCreate(role="user", content=content).content
