"""What a run reads and proposes, as processors see it, and what may come back.

The messages stay as they were stored: only the extractor reads what a processor made of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from app.conversation.messages.schemas import MessageCreate
from app.language.llm.extractor import Extraction, Proposed
from app.memory.extraction.work import Work
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
from app.platform.plugins.runner import ProcessorChain

_SHARE: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(ge=0, le=1)])


async def before_extract(chain: ProcessorChain, work: Work) -> Work:
    """The work with the turns that processors left.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    turns = work.request.turns
    if not turns or not chain.at(BEFORE_EXTRACT):
        return work
    shown = tuple(
        ReadTurn(one.message_id, one.role, one.content, one.name, one.said_at, one.context)
        for one in turns
    )
    after = await chain.ask(BeforeExtract(_about(work), shown), _with_text)
    if after.turns == shown:
        return work
    by_id = {turn.message_id: turn for turn in turns}
    left = [replace(by_id[one.id], content=one.content) for one in after.turns]
    return replace(
        work,
        request=replace(work.request, turns=left),
        hearing=replace(work.hearing, turns=left),
    )


def is_silent(work: Work) -> bool:
    """Whether processors left nothing that is new to be read."""
    return not any(not turn.context for turn in work.request.turns)


async def after_extract(chain: ProcessorChain, work: Work, extraction: Extraction) -> Extraction:
    """The extraction with the proposals that processors left, as they are to be judged.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    if extraction.proposals and chain.at(AFTER_EXTRACT):
        shown = tuple(
            ProposedMemory(
                str(index),
                one.content,
                one.confidence,
                one.source_error,
                one.memory_type,
                one.scope,
                one.evidence,
            )
            for index, one in enumerate(extraction.proposals)
        )
        proposed = await chain.ask(AfterExtract(_about(work), shown), _as_proposed)
        extraction = _taken(
            extraction,
            {
                one.id: {
                    "content": one.content,
                    "confidence": one.confidence,
                    "source_error": one.source_error,
                }
                for one in proposed.proposals
            },
        )
    if extraction.proposals and chain.at(BEFORE_STORE):
        drafts = tuple(
            StoredMemory(str(index), one.content, {}, one.memory_type, one.scope, extracted=True)
            for index, one in enumerate(extraction.proposals)
        )
        stored = await chain.ask(BeforeStore(_about(work), drafts), _as_stored)
        left = {one.id: {"content": one.content} for one in stored.memories}
        extraction = _taken(extraction, left)
    return extraction


def _taken(extraction: Extraction, left: Mapping[str, Mapping[str, Any]]) -> Extraction:
    return replace(
        extraction,
        proposals=tuple(
            _replaced(one, left[str(index)])
            for index, one in enumerate(extraction.proposals)
            if str(index) in left
        ),
    )


def _replaced(one: Proposed, values: Mapping[str, Any]) -> Proposed:
    if values["content"] == one.content:
        return replace(one, **values)
    # What the graph would learn was read in words that are not to be kept.
    return replace(one, **values, relations=())


def _about(work: Work) -> About:
    grounds = work.hearing.grounds
    return About(
        work.principal.tenant_id,
        grounds.user_id,
        work.agent_id or grounds.agent_id,
        grounds.session_id,
    )


def _with_text(item: ReadTurn) -> ReadTurn:
    return replace(item, content=_text(item.content))


def _as_proposed(item: ProposedMemory) -> ProposedMemory:
    confidence = _SHARE.validate_python(item.confidence)
    error = None if item.source_error is None else _text(item.source_error)
    return replace(item, content=_text(item.content), confidence=confidence, source_error=error)


def _as_stored(item: StoredMemory) -> StoredMemory:
    if item.metadata:
        raise ValueError("the metadata of what was extracted is its request's")
    return replace(item, content=_text(item.content))


def _text(content: str) -> str:
    """A text by the rules of messages. Raises ValueError."""
    return MessageCreate(role="user", content=content).content
