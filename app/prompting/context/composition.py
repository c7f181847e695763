"""Composing one context: what fits, in order, rendered and counted. Pure.

Older results of tools can be left out of it: their calls stay, and everything stays stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.conversation.messages.excerpts import Excerpts
from app.conversation.messages.pressure import pressure_of
from app.conversation.messages.window_strategies import Pick, Trimmed, trim
from app.language.llm.tokens import TokenCounter, message_tokens, tool_tokens
from app.memory.memories.candidate_search import explained
from app.memory.memories.recall_service import RecallResult
from app.memory.profiles.prompt_lines import ProfileLine
from app.prompting.blocks.block_text import render_blocks
from app.prompting.context.assembly import (
    EXCERPTS_SHARE,
    NOTHING,
    PASSAGES_SHARE,
    SUMMARY,
    Piece,
    Remembered,
    Section,
    content_hash,
    excluded,
    least_corrections,
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
from app.prompting.context.excerpts import (
    ChosenExcerpts,
    ExcerptLines,
    used_excerpt,
)
from app.prompting.context.scene import Off, Scene, SceneConversation, counters
from app.prompting.context.schemas import ClearToolResults, ContextRequest, LeftOut
from app.prompting.documents.schemas import PassageHit

PLACEHOLDER: Final = "[This result was left out to save room. Call the tool again if you need it.]"

EXCERPT_CHARACTERS: Final = 20_000
"""Laying out excerpts takes as long as reading so many characters."""

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
class ConversationParts:
    """What a context has of its own conversation.

    Args:
        trimmed: the messages that fit.
        spoken: the same in full.
        known: those that fit, in full, also where the window is excluded: whoever excludes it
            shows the conversation in another way.
        cleared: how many results of tools are left out of them.
        room: tokens that were left for messages, as we count them.
        beside_tokens: what else the window's budget is for, summaries aside.
        window_tokens: of all messages of the window, also of those that do not fit.

    """

    instructions: Piece
    blocks: Piece
    summary: Piece
    trimmed: Trimmed
    spoken: Sequence[Spoken]
    known: Sequence[Spoken]
    cleared: int
    room: int
    beside_tokens: int
    window_tokens: int


def conversation_parts(
    scene: Scene, options: ContextOptions, counter: TokenCounter
) -> ConversationParts:
    """The conversation's own parts, the window cut to what they leave of its budget."""
    body = options.body
    said = options.instructions
    instructions = whole("instructions", said, int(bool(said)), counter)
    blocks, summary = _blocks(scene, body, counter), _summary(scene, body, counter)
    beside = _beside(scene, body, instructions, blocks, counter)
    room = _room(scene, body, beside + summary.section.tokens)
    conversation, results = scene.conversation, 0
    if body.clear_tool_results is not None:
        conversation, results = cleared(conversation, body.clear_tool_results, counter)
    trimmed = trim(conversation.window, options.pick, room)
    known = [conversation.spoken[message.message_id] for message in trimmed.messages]
    if not body.include.window:
        trimmed = replace(trimmed, messages=(), tokens=0, waiting=(), left_out=0)
    spoken = known if body.include.window else []
    # What was cleared is sent by nobody.
    less = sum(message.tokens for message in scene.conversation.window.messages)
    less -= sum(message.tokens for message in conversation.window.messages)
    return ConversationParts(
        instructions, blocks, summary, trimmed, spoken, known, results, room, beside,
        _window_tokens(scene, body) - less,
    )  # fmt: skip


def _blocks(scene: Scene, body: ContextRequest, counter: TokenCounter) -> Piece:
    """Always whole: a block has a limit of its own, and its agents always see it."""
    if not body.include.blocks:
        return excluded("blocks")
    return whole("blocks", render_blocks(scene.blocks), len(scene.blocks), counter)


def _summary(scene: Scene, body: ContextRequest, counter: TokenCounter) -> Piece:
    """Always whole: nothing else in the context covers those messages."""
    if not body.include.summary:
        return excluded("summary")
    lines = summary_lines(scene.summaries)
    return Piece("summary", section("summary", SUMMARY, lines, None, counter))


def _beside(
    scene: Scene, body: ContextRequest, instructions: Piece, blocks: Piece, counter: TokenCounter
) -> int:
    """What of the window's budget is for neither messages nor summaries.

    What the policy reserves is for instructions and tools: the larger counts, never both.
    """
    tools = body.tools_tokens
    if tools is None:
        tools = tool_tokens(counter, body.tools or ())
    own = max(scene.policy.reserved_tokens, instructions.section.tokens + tools)
    return own + blocks.section.tokens


def _room(scene: Scene, body: ContextRequest, taken: int) -> int:
    """Tokens that are left for messages, as we count them.

    A provider that counts more than we do leaves less room.
    """
    budget = body.window_tokens or scene.policy.budget_tokens
    return max(0, int(budget / scene.row["token_scale"]) - taken)


def _window_tokens(scene: Scene, body: ContextRequest) -> int:
    """Tokens of all messages that the conversation has after its summaries."""
    if body.messages is None:
        return counters(scene.row).window_tokens
    return sum(message.tokens for message in scene.conversation.window.messages)


@dataclass(frozen=True, slots=True)
class Composition:
    """Everything a context is made of.

    Args:
        recalled: the found memories; None when no memories were searched for.
        off_by: where injection is switched off; None when it is on.
        passages: of documents, best first.
        excerpts: pieces of earlier messages; None when none were looked for.

    """

    scene: Scene
    options: ContextOptions
    conversation: ConversationParts
    recalled: RecallResult | None
    counter: TokenCounter
    off_by: Off | None
    passages: Sequence[PassageHit] = ()
    excerpts: Excerpts | None = None

    @property
    def characters(self) -> int:
        """The characters of all text that is read for it."""
        found = [] if self.recalled is None else self.recalled.found
        return (
            len(self.options.instructions)
            + self.scene.characters
            + sum(len(memory.row["content"]) for memory in found)
            + sum(len(passage.content) for passage in self.passages)
            + (0 if self.excerpts is None else EXCERPT_CHARACTERS)
        )

    def answer(self) -> dict[str, Any]:
        """The fields of a `ContextAnswer`, without `query`."""
        body, scene, own = self.options.body, self.scene, self.conversation
        lines = self._excerpt_lines()
        total = self.options.memory_tokens
        share = self._excerpt_budget(min(int(total * EXCERPTS_SHARE), total - self._correction()))
        least = self._excerpts(lines, share)
        rest = total - least.section.tokens
        known = self._remembered(rest)
        passages = self._passages(rest - known.tokens)
        taken = known.tokens + sum(piece.section.tokens for piece in passages)
        budget = self._excerpt_budget(max(share, total - taken))
        excerpts = self._excerpts(lines, budget) if budget > share else least
        profile, corrections, memories = known.pieces
        system = [own.instructions, profile, own.blocks, own.summary, corrections, memories]
        system += [*passages, self._excerpt_piece(excerpts, budget)]
        prompt, messages = rendered(body.render, system_section(system), own.spoken)
        window = _window_piece(own) if body.include.window else excluded("window")
        pieces = [*system, window]
        return {
            "session_id": scene.row["session_id"],
            "render": body.render,
            "prompt": prompt,
            "messages": messages,
            "summary": "\n".join(scene.summaries) if own.summary.section.lines else None,
            "parts": [piece.as_part(with_text=body.render == "parts") for piece in pieces],
            "used": self._used(known),
            "used_passages": [
                used_passage(hit, tokens)
                for piece in passages
                for hit, tokens in zip(self.passages, piece.section.line_tokens, strict=False)
            ],
            "used_excerpts": [used_excerpt(one, explain=body.explain) for one in excerpts.shown],
            "excerpt_source": self.excerpts
            and {"searched": self.excerpts.searched, "left_out": self.excerpts.left_out},
            "window": _window(own.trimmed, own.spoken) | {"cleared": own.cleared},
            "starts_with_user": bool(own.spoken) and own.trimmed.starts_with_user,
            "pressure": self._pressure(taken + excerpts.section.tokens),
            "tokens": sum(piece.section.tokens for piece in pieces),
            "memory_tokens": taken + excerpts.section.tokens,
            "counter": self.counter.name,
            "content_sha256": content_hash(prompt, messages),
            "injection": {"enabled": self.off_by is None, "off_by": self.off_by},
        }

    def _remembered(self, budget: int) -> Remembered:
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
            budget,
            self.counter,
            corrections=body.include.corrections,
            memories=body.include.memories,
            reserved=int(budget * PASSAGES_SHARE) if self.passages else 0,
        )

    def _passages(self, budget: int) -> list[Piece]:
        """The part of the passages, where they are asked for."""
        if self.options.body.passages is None:
            return []
        if self.off_by is not None:
            return [Piece("passages", NOTHING, 0, 0, "injection_off")]
        return [passages_within(self.passages, budget, self.counter)]

    def _correction(self) -> int:
        """Tokens that excerpts leave for the best correction."""
        if self.recalled is None or not self.options.body.include.corrections:
            return 0
        return least_corrections(self.recalled.found, self.options.memory_tokens, self.counter)

    def _excerpt_budget(self, left: int) -> int:
        """Tokens for excerpts where so many are left for them."""
        most = self.options.body.excerpts.tokens
        return left if most is None else min(most, left)

    def _excerpt_lines(self) -> ExcerptLines | None:
        if self.excerpts is None:
            return None
        return ExcerptLines(self.excerpts, self.scene.row["session_id"], self.counter)

    def _excerpts(self, lines: ExcerptLines | None, budget: int) -> ChosenExcerpts:
        if lines is None:
            return ChosenExcerpts()
        return lines.chosen(budget, self.options.body.excerpts.limit)

    def _excerpt_piece(self, chosen: ChosenExcerpts, budget: int) -> Piece:
        if self.off_by is not None or not self.options.body.include.excerpts:
            reason: LeftOut = "injection_off" if self.off_by is not None else "excluded"
            return Piece("excerpts", NOTHING, 0, 0, reason)
        reason_left: LeftOut | None = None
        if chosen.dropped:
            reason_left = "limit" if chosen.limited else "budget"
        return Piece("excerpts", chosen.section, budget, chosen.dropped, reason_left)

    def _pressure(self, memory_tokens: int) -> dict[str, Any]:
        """As in the answer to an append, of what this context has."""
        own, row, policy = self.conversation, self.scene.row, self.scene.policy
        counted = replace(
            counters(row),
            window_tokens=own.window_tokens,
            summary_tokens=own.summary.section.tokens,
            beside_tokens=own.beside_tokens,
            memory_tokens=memory_tokens,
        )
        budget = self.options.body.window_tokens or policy.budget_tokens
        pressure = pressure_of(counted, replace(policy, budget_tokens=budget))
        shown = pressure.shown(job_id=row["compaction_job"], left_out=own.trimmed.left_out)
        return {**shown, "counter": self.counter.name}

    @property
    def beside_tokens(self) -> int:
        """What an append counts of this context besides messages and summaries."""
        summary = self.conversation.summary.section.tokens
        header = max(0, summary - counters(self.scene.row).summary_tokens)
        return self.conversation.beside_tokens + header

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


def _window_piece(own: ConversationParts) -> Piece:
    trimmed = own.trimmed
    shown = Section("", trimmed.tokens, [message.tokens for message in trimmed.messages])
    reason: LeftOut | None = "budget" if trimmed.left_out else None
    return Piece("window", shown, own.room, trimmed.left_out, reason)


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
