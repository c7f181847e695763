"""The extractor that asks a model: any that can be chatted with.

What it answers is a wish. Here it is made strict entry by entry, so that one bad entry costs
none of the others; whether a statement stands is judged afterwards, by code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.language.llm.answer_schemas import EXPERIENCE_SCHEMA, extraction_schema
from app.language.llm.chat import ChatAnswer, ChatModel
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import (
    ConversationTurn,
    Extraction,
    ExtractionRequest,
    Malformed,
    ModelUse,
    Proposed,
    Scope,
)
from app.language.llm.model_entries import MalformedEntryError, read_entry, read_experience
from app.language.llm.model_relations import read_entity_types, read_relations
from app.language.llm.prompt_lines import conversation
from app.language.llm.prompts import (
    EXTRACTION_VERSION,
    INSTRUCTIONS,
    experience_prompt,
    extraction_prompt,
)
from app.language.text.normal_forms import normalise

MOST_ENTRIES: Final = 50
"""Of one answer; a model that lists more is usually repeating itself."""

# 50 entries of 80 tokens.
_MOST_TOKENS: Final = 4_000
_MOST_TOKENS_OF_EXPERIENCE: Final = 1_000

# An ended session is read for its course, and it may be long.
_LONGEST_OF_EXPERIENCE: Final = 1_000

_OURS: Final = tuple(normalise(text) for text in INSTRUCTIONS)


class ModelExtractor:
    """Asks one chat model. Without a state of its own, so calls may overlap."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def model(self) -> str:
        return self._chat.model

    @property
    def prompt_version(self) -> str:
        return EXTRACTION_VERSION

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """As the port says; a request without new turns asks nobody."""
        if all(turn.context for turn in request.turns):
            return Extraction(())
        read = conversation(request)
        scopes = _scopes(request)
        answer = await self._chat.answer(
            extraction_prompt(
                scopes=scopes, signals=request.signals, wishes=request.prompt, ended=request.ended
            ),
            read.text,
            schema=extraction_schema(scopes, ended=request.ended),
            schema_name="memories",
            max_output_tokens=_MOST_TOKENS + request.ended * _MOST_TOKENS_OF_EXPERIENCE,
        )
        found = _read(answer, read.turns, scopes[0])
        if request.ended and "experience" in answer.data:
            return _with_experience(found, answer.data["experience"], read.turns, scopes[0])
        outcome = answer.data.get("outcome")
        return replace(found, taught=outcome if isinstance(outcome, bool) else None)

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        """As the port says; for the user, where that is a scope."""
        if all(turn.context for turn in request.turns):
            return Extraction(())
        read = conversation(request, longest=_LONGEST_OF_EXPERIENCE)
        answer = await self._chat.answer(
            experience_prompt(wishes=request.prompt),
            read.text,
            schema=EXPERIENCE_SCHEMA,
            schema_name="experience",
            max_output_tokens=_MOST_TOKENS_OF_EXPERIENCE,
        )
        found = answer.data["experience"]
        if found is None:
            return Extraction((), use=answer.use)
        try:
            proposed = _not_ours(read_experience(found, read.turns, _scopes(request)[0]))
        except MalformedEntryError as error:
            return Extraction((), (Malformed(0, str(error)),), answer.use)
        return Extraction((proposed,), use=answer.use)


def _scopes(request: ExtractionRequest) -> Sequence[Scope]:
    """Those that a model chooses from, the usual one first.

    What matters in one conversation only is in that conversation, so its scope is for what a
    caller saves there, unless there is no other.
    """
    lasting = [scope for scope in request.scopes if scope != "session"]
    lasting.sort(key=lambda scope: scope != "user")
    return lasting or request.scopes


def _list(entries: Any, use: ModelUse) -> list[Any]:
    """The entries of an answer, as a list.

    Raises:
        ModelUnavailableError: there is no list.

    """
    # A model without schemas may write null for an empty list.
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ModelUnavailableError("bad_answer", fault="unreadable", use=use)
    return entries


def _read(answer: ChatAnswer, turns: Mapping[str, ConversationTurn], scope: Scope) -> Extraction:
    entries = _list(answer.data["memories"], answer.use)
    types = read_entity_types(answer.data.get("entities"))
    proposals: list[Proposed] = []
    malformed: list[Malformed] = []
    for index, entry in enumerate(entries[:MOST_ENTRIES]):
        try:
            proposed = _not_ours(read_entry(entry, turns, scope))
        except MalformedEntryError as error:
            malformed.append(Malformed(index, str(error)))
            continue
        relations, faults = read_relations(entry.get("relations"), types)
        proposals.append(replace(proposed, relations=relations))
        malformed += [Malformed(index, fault) for fault in faults]
    surplus = len(entries) - MOST_ENTRIES
    if surplus > 0:
        malformed.append(
            Malformed(MOST_ENTRIES, f"{surplus} entries beyond the {MOST_ENTRIES} that are read")
        )
    return Extraction(tuple(proposals), tuple(malformed), answer.use)


def _with_experience(
    found: Extraction, told: Any, turns: Mapping[str, ConversationTurn], scope: Scope
) -> Extraction:
    """What was found, and behind it what the session taught."""
    found = replace(found, experienced=True)
    if told is None:
        return found
    try:
        taught = _not_ours(read_experience(told, turns, scope))
    except MalformedEntryError as error:
        bad = Malformed(len(found.proposals), str(error))
        return replace(found, malformed=(*found.malformed, bad))
    return replace(found, proposals=(*found.proposals, taught))


def _not_ours(proposed: Proposed) -> Proposed:
    """The proposal, unless it is a piece of our own instructions.

    Raises:
        MalformedEntryError: nobody said it.

    """
    words = normalise(proposed.content)
    if any(words in text for text in _OURS):
        raise MalformedEntryError("taken from the instructions")
    return proposed
