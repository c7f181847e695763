"""Composing one context: what fits, in order, rendered and counted. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.conversation.messages.errors import WindowTooSmallError
from app.conversation.messages.excerpts import Excerpts
from app.conversation.messages.message_forms import Spoken
from app.conversation.messages.pressure import pressure_of
from app.conversation.messages.window_trim import Pick
from app.language.llm.tokens import TokenCounter, tool_tokens
from app.memory.memories.candidate_search import explained
from app.memory.memories.recall_service import RecallResult
from app.memory.profiles.prompt_lines import ProfileLine
from app.prompting.blocks.block_text import render_blocks
from app.prompting.context.assembly import (
    EXCERPTS_SHARE,
    NOTHING,
    PASSAGES_SHARE,
    SEPARATOR,
    SUMMARY,
    Piece,
    Remembered,
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
from app.prompting.context.dialects import inserted_tokens
from app.prompting.context.excerpts import (
    ChosenExcerpts,
    ExcerptLines,
    used_excerpt,
)
from app.prompting.context.scene import Off, Scene, counters
from app.prompting.context.schemas import ContextRequest, LeftOut
from app.prompting.context.window_part import WindowPart, window_part
from app.prompting.documents.schemas import PassageHit

EXCERPT_CHARACTERS: Final = 1_000
"""Laying out excerpts takes as long as scanning so many characters."""

COUNTED: Final = 10
"""How many characters are counted in the time that it takes to scan one."""


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
        window: the messages that are shown, and the line that names the others.
        known: those that fit, also where the window is excluded: whoever excludes it shows the
            conversation in another way.
        beside_tokens: what else the window's budget is for, summaries aside.
        window_tokens: of all messages of the window, also of those that do not fit.

    """

    instructions: Piece
    blocks: Piece
    summary: Piece
    window: WindowPart
    known: Sequence[Spoken]
    beside_tokens: int
    window_tokens: int


def conversation_parts(
    scene: Scene, options: ContextOptions, counter: TokenCounter
) -> ConversationParts:
    """The conversation's own parts, the window cut to what they leave of its budget.

    Raises:
        WindowTooSmallError: not even the shortest form of what must be shown fits.

    """
    body = options.body
    said = options.instructions
    instructions = whole("instructions", said, int(bool(said)), counter)
    blocks, summary = _blocks(scene, body, counter), _summary(scene, body, counter)
    beside = _beside(scene, body, instructions, blocks, counter)
    separators = counter.count(SEPARATOR) * sum(
        bool(piece.section.text) for piece in (blocks, summary)
    )
    room = _room(scene, body, beside + summary.section.tokens + separators)
    # Who renders messages in another way inserts results in another way, or none.
    inserts = body.render in {"openai", "anthropic"}
    window = window_part(
        scene.conversation,
        options.pick,
        max(0, room),
        counter,
        body.clear_tool_results,
        inserted_tokens(counter) if inserts else 0,
    )
    known = window.spoken
    if not body.include.window:
        window = window.excluded()
    elif not window.trimmed.fits:
        budget = body.window_tokens or scene.policy.budget_tokens
        missing = math.ceil(scene.row["token_scale"] * (window.needed - room))
        raise WindowTooSmallError(budget, budget + max(missing, 1))
    # What was cleared is sent by nobody.
    sent = _window_tokens(scene, body) - window.cleared_tokens + window.trimmed.inserted
    if window.left_out is not None:
        beside += window.left_out.section.tokens
    return ConversationParts(instructions, blocks, summary, window, known, beside, sent)


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
    """Tokens that are left for messages, as we count them; below 0 where the others take more.

    A provider that counts more than we do leaves less room.
    """
    budget = body.window_tokens or scene.policy.budget_tokens
    return int(budget / scene.row["token_scale"]) - taken


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
        """The characters that are to be scanned of all its text."""
        found = [] if self.recalled is None else self.recalled.found
        counted = sum([len(memory.row["content"]) for memory in found])
        counted += sum([len(passage.content) for passage in self.passages])
        return (
            len(self.options.instructions)
            + self.scene.characters
            + counted // COUNTED
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
        system += [own.window.left_out] if own.window.left_out else []
        spoken = own.window.spoken
        prompt, messages = rendered(body.render, system_section(system), spoken)
        window = own.window.piece if body.include.window else excluded("window")
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
            "used_excerpts": [
                used_excerpt(excerpt, explain=body.explain) for excerpt in excerpts.shown
            ],
            "excerpt_source": self.excerpts
            and {"searched": self.excerpts.searched, "left_out": self.excerpts.left_out},
            "window": own.window.answer(),
            "starts_with_user": bool(spoken) and own.window.trimmed.starts_with_user,
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
        shown = pressure.shown(job_id=row["compaction_job"], left_out=own.window.trimmed.left_out)
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
