"""Composing one context: what fits, in order, rendered and counted. Pure.

Older results of tools can be left out of it: their calls stay, and everything stays stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.conversation.messages.pressure import pressure_of
from app.conversation.messages.window_strategies import Pick, Trimmed, trim
from app.language.llm.tokens import TokenCounter, message_tokens
from app.memory.memories.candidate_search import explained
from app.memory.memories.recall_service import RecallResult
from app.memory.profiles.prompt_lines import ProfileLine
from app.prompting.blocks.block_text import render_blocks
from app.prompting.context.assembly import (
    NOTHING,
    PASSAGES_SHARE,
    SUMMARY,
    Piece,
    Remembered,
    Section,
    content_hash,
    excluded,
    nothing_remembered,
    passages_within,
    remembered,
    rendered,
    section,
    summary_lines,
    system_section,
    used_memory,
    used_passage,
    whole,
)
from app.prompting.context.dialects import Spoken
from app.prompting.context.scene import Off, Scene, SceneConversation, counters
from app.prompting.context.schemas import ClearToolResults, ContextRequest, LeftOut
from app.prompting.documents.schemas import PassageHit

PLACEHOLDER: Final = "[This result was left out to save room. Call the tool again if you need it.]"

FURTHER: Final = 4
"""A window whose results are cleared is read to this many times the budget: more of it will fit."""


def cleared(
    conversation: SceneConversation, request: ClearToolResults, counter: TokenCounter
) -> tuple[SceneConversation, int]:
    """The conversation with older results replaced, and how many were.

    The newest `keep` results stay, results of tools in `exempt`, and results that are no longer
    than the placeholder.

    """
    window, spoken = conversation.window, dict(conversation.spoken)
    taken = sum(message.tokens for message in window.messages)
    if request.above_tokens is not None and taken <= request.above_tokens:
        return conversation, 0
    names = _names_of_calls(conversation)
    results = [
        message
        for message in window.messages
        if message.role == "tool" and message.answers is not None
    ]
    older = results[: max(len(results) - request.keep, 0)]
    shorter = {}
    for message in older:
        said = spoken[message.message_id]
        if (said.name or names.get(message.answers or "")) in request.exempt:
            continue
        tokens = message_tokens(counter, content=PLACEHOLDER, name=said.name)
        if tokens < message.tokens:
            shorter[message.message_id] = replace(message, tokens=tokens)
            spoken[message.message_id] = replace(said, content=PLACEHOLDER, content_parts=None)
    messages = tuple(shorter.get(message.message_id, message) for message in window.messages)
    return (
        replace(conversation, window=replace(window, messages=messages), spoken=spoken),
        len(shorter),
    )


def _names_of_calls(conversation: SceneConversation) -> dict[str, str]:
    """Names of tools by the id of their call; of two calls with the same id the later counts."""
    return {
        str(call.get("id")): str(_function(call).get("name", ""))
        for message in conversation.window.messages
        for call in conversation.spoken[message.message_id].tool_calls or ()
    }


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else call


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """A request with its resolved options.

    Args:
        instructions: the system prompt, its variables replaced.
        memory_tokens: the budget of what is remembered.
        pick: the strategy of the window.

    """

    body: ContextRequest
    instructions: str
    memory_tokens: int
    pick: Pick


@dataclass(frozen=True, slots=True)
class Composition:
    """Everything a context is made of.

    Args:
        recalled: the found memories; None when no memories were searched for.
        off_by: where injection is switched off; None when it is on.
        passages: of documents, best first.

    """

    scene: Scene
    options: ContextOptions
    recalled: RecallResult | None
    counter: TokenCounter
    off_by: Off | None
    passages: Sequence[PassageHit] = ()

    @property
    def characters(self) -> int:
        """The characters of all text that is read for it."""
        found = [] if self.recalled is None else self.recalled.found
        return (
            len(self.options.instructions)
            + self.scene.characters
            + sum(len(memory.row["content"]) for memory in found)
            + sum(len(passage.content) for passage in self.passages)
        )

    def answer(self) -> dict[str, Any]:
        """The fields of a `ContextAnswer`, without `query`."""
        body, scene = self.options.body, self.scene
        known = self._remembered()
        passages = self._passages(known)
        profile, corrections, memories = known.pieces
        said = self.options.instructions
        instructions = whole("instructions", said, int(bool(said)), self.counter)
        blocks, summary = self._blocks(), self._summary()
        system = [instructions, profile, blocks, summary, corrections, memories, *passages]
        room = self._room(instructions, blocks, summary)
        conversation, results = scene.conversation, 0
        if body.clear_tool_results is not None:
            conversation, results = cleared(conversation, body.clear_tool_results, self.counter)
        trimmed = trim(conversation.window, self.options.pick, room)
        if not body.include.window:
            trimmed = replace(trimmed, messages=(), tokens=0, waiting=(), left_out=0)
        shown = [conversation.spoken[message.message_id] for message in trimmed.messages]
        window = self._window(trimmed, room) if body.include.window else excluded("window")
        prompt, messages = rendered(body.render, system_section(system), shown)
        pieces = [*system, window]
        return {
            "session_id": scene.row["session_id"],
            "render": body.render,
            "prompt": prompt,
            "messages": messages,
            "summary": "\n".join(scene.summaries) if summary.section.lines else None,
            "parts": [piece.as_part(with_text=body.render == "parts") for piece in pieces],
            "used": self._used(known),
            "used_passages": [
                used_passage(hit, tokens)
                for piece in passages
                for hit, tokens in zip(self.passages, piece.section.line_tokens, strict=False)
            ],
            "window": _window(trimmed, shown) | {"cleared": results},
            "starts_with_user": bool(shown) and trimmed.starts_with_user,
            "pressure": self._pressure(),
            "tokens": sum(piece.section.tokens for piece in pieces),
            "memory_tokens": known.tokens + sum(piece.section.tokens for piece in passages),
            "counter": self.counter.name,
            "content_sha256": content_hash(prompt, messages),
            "injection": {"enabled": self.off_by is None, "off_by": self.off_by},
        }

    def _remembered(self) -> Remembered:
        body, found = self.options.body, self.recalled
        if self.off_by is not None:
            return nothing_remembered("injection_off")
        profile = self.scene.profile_lines
        if body.as_of is not None:
            # A request as of a past time gets every memory: the profile is the present one.
            profile = [ProfileLine(line.text) for line in profile]
        return remembered(
            profile if body.include.profile else None,
            [] if found is None else found.found,
            self.options.memory_tokens,
            self.counter,
            corrections=body.include.corrections,
            memories=body.include.memories,
            reserved=int(self.options.memory_tokens * PASSAGES_SHARE) if self.passages else 0,
        )

    def _passages(self, known: Remembered) -> list[Piece]:
        """The part of the passages, where they are asked for."""
        if self.options.body.passages is None:
            return []
        if self.off_by is not None:
            return [Piece("passages", NOTHING, 0, 0, "injection_off")]
        budget = self.options.memory_tokens - known.tokens
        return [passages_within(self.passages, budget, self.counter)]

    def _blocks(self) -> Piece:
        """Always whole: a block has a limit of its own, and its agents always see it."""
        if not self.options.body.include.blocks:
            return excluded("blocks")
        blocks = self.scene.blocks
        return whole("blocks", render_blocks(blocks), len(blocks), self.counter)

    def _summary(self) -> Piece:
        """Always whole: nothing else in the context covers those messages."""
        if not self.options.body.include.summary:
            return excluded("summary")
        lines = summary_lines(self.scene.summaries)
        return Piece("summary", section("summary", SUMMARY, lines, None, self.counter))

    def _room(self, instructions: Piece, *others: Piece) -> int:
        """Tokens that are left for messages, as we count them.

        The reserved tokens of the policy and the instructions are the same text; a provider that
        counts more than we do leaves less room.
        """
        policy = self.scene.policy
        budget = self.options.body.window_tokens or policy.budget_tokens
        own = max(policy.reserved_tokens, instructions.section.tokens)
        taken = own + sum(piece.section.tokens for piece in others)
        return max(0, int(budget / self.scene.row["token_scale"]) - taken)

    @staticmethod
    def _window(trimmed: Trimmed, room: int) -> Piece:
        shown = Section("", trimmed.tokens, [message.tokens for message in trimmed.messages])
        reason: LeftOut | None = "budget" if trimmed.left_out else None
        return Piece("window", shown, room, trimmed.left_out, reason)

    def _pressure(self) -> dict[str, Any]:
        """As in the answer to an append; a context orders no compaction."""
        pressure = pressure_of(counters(self.scene.row), self.scene.policy)
        return {**pressure.shown(), "counter": self.counter.name, "compaction_job_id": None}

    def _used(self, known: Remembered) -> list[dict[str, Any]]:
        if self.recalled is None:
            return []
        asked = self.recalled.asked
        shown = []
        for part, found, tokens in known.shown:
            used = used_memory(part, found, tokens, asked=asked)
            if self.options.body.explain:
                used["explain"] = explained(found, self.recalled.weights, compared=asked)
            shown.append(used)
        return shown


def _window(trimmed: Trimmed, shown: Sequence[Spoken]) -> dict[str, Any]:
    """As `schemas.ShownWindow` has it."""
    numbers = [message.sequence_no for message in shown if message.sequence_no is not None]
    return {
        "messages": len(shown),
        "tokens": trimmed.tokens,
        "from_sequence_no": min(numbers, default=None),
        "to_sequence_no": max(numbers, default=None),
        "left_out": trimmed.left_out,
        "fits": trimmed.fits,
        "waiting": list(trimmed.waiting),
    }
