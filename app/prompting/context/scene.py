"""What the first statement of a context told: a session and all that belongs to it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import asyncpg
from pydantic_core import from_json

from app.conversation.messages.capture import said_text
from app.conversation.messages.schemas import MessageCreate, call_ids
from app.conversation.messages.window import EVENT_TYPE, Window, WindowMessage, window_message
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import TokenCounter, message_tokens
from app.memory.profiles.prompt_lines import ProfileLine, RenderedProfile, project_lines, user_lines
from app.prompting.blocks.block_text import ShownBlock
from app.prompting.context.assembly import profile_lines
from app.prompting.context.dialects import Spoken

Off = Literal["deployment", "agent", "session"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A session as a context sees it.

    Args:
        row: of `context_sql.py`.
        policy: of its window, as resolved.
        summaries: what stands for evicted messages, oldest first.
        conversation: what may be shown of the window.

    """

    row: asyncpg.Record
    policy: WindowPolicy
    blocks: Sequence[ShownBlock]
    summaries: Sequence[str]
    conversation: "SceneConversation"

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """Where variables are looked up when the request's own context does not have them."""
        return [self.row["state"] or {}, self.row["context"]]

    @property
    def profile_lines(self) -> list[ProfileLine]:
        """What is known of the user, and of the project if the user is in it."""
        row = self.row
        lines = [ProfileLine(one) for one in profile_lines(row["user_name"], row["profile"])]
        known = row["user_profile"] or {}
        lines += user_lines(_told(known), known.get("instructions"), name=row["user_name"])
        shared = (row["project_profile"] if row["in_project"] else None) or {}
        return lines + project_lines(_told(shared))

    @property
    def characters(self) -> int:
        """How much text it holds."""
        return (
            sum(len(block.value) for block in self.blocks)
            + sum(len(summary) for summary in self.summaries)
            + self.conversation.characters
        )

    def scopes(self, wanted: Sequence[str] | None) -> dict[str, str]:
        """The id of every scope that the session's user may read here."""
        ids = {
            "session": self.row["session_id"],
            "project": self.row["project_id"] if self.row["in_project"] else None,
            "user": self.row["user_id"],
            "agent": self.row["agent_id"],
        }
        return {
            scope: scope_id
            for scope, scope_id in ids.items()
            if scope_id is not None and (wanted is None or scope in wanted)
        }

    def off_by(self, *, enabled: bool) -> Off | None:
        """Who has switched injection off, the outermost; None when nobody has."""
        if not enabled:
            return "deployment"
        if not self.row["agent_injects"]:
            return "agent"
        return None if self.row["session_injects"] else "session"


@dataclass(frozen=True, slots=True)
class SceneCounters:
    """How full the window is, as `messages/pressure.py` wants it."""

    window_tokens: int
    window_messages: int
    summary_tokens: int
    token_scale: float
    in_context_from: int
    last_user_seq: int


@dataclass(frozen=True, slots=True)
class SceneConversation:
    """Messages that may be shown: as cutting sees them, and whole, by their id."""

    window: Window
    spoken: Mapping[str, Spoken]
    characters: int
    """Of all messages, as JSON where they are stored."""

    @property
    def last_request(self) -> str | None:
        """What the user said last, if they said anything in words."""
        for message in reversed(self.window.messages):
            if message.role == "user":
                spoken = self.spoken[message.message_id]
                text = said_text(spoken.content, spoken.content_parts).strip()
                if text:
                    return text
        return None


def stored_conversation(
    row: Mapping[str, Any], policy: WindowPolicy, patience: datetime
) -> SceneConversation:
    """What the statement told of the stored window."""
    rows = from_json(row["tail"]) if row["tail"] else []
    for one in rows:
        one["create_time"] = datetime.fromisoformat(one["create_time"])
    return SceneConversation(
        Window(
            messages=tuple(window_message(one) for one in rows),
            pointer=row["in_context_from"],
            total=counters(row).window_messages,
            patience=patience,
            instructions_tokens=policy.carried_tokens,
            waiting=frozenset(row["waiting"]),
        ),
        {
            one["message_id"]: Spoken(
                one["role"],
                one["content"],
                one["content_parts"],
                one["tool_calls"],
                one["tool_call_id"],
                one["name"],
                one["message_id"],
                one["sequence_no"],
            )
            for one in rows
        },
        len(row["tail"] or ""),
    )


def _told(profile: Mapping[str, Any]) -> dict[str, RenderedProfile]:
    """Its values, as `profiles/repository.py` gives them."""
    values = profile.get("values") or {}
    return {slot: RenderedProfile(one["value"], one["memory_ids"]) for slot, one in values.items()}


def counters(row: Mapping[str, Any]) -> SceneCounters:
    """What the session's row counts, or what was counted anew where that is behind."""
    anew = row["counted"] or {}
    return SceneCounters(
        window_tokens=anew.get("tokens", row["window_tokens"]),
        window_messages=anew.get("messages", row["window_messages"]),
        last_user_seq=anew.get("asked", row["last_user_seq"]),
        summary_tokens=row["summary_tokens"],
        token_scale=row["token_scale"],
        in_context_from=row["in_context_from"],
    )


def given_conversation(
    messages: Sequence[MessageCreate],
    policy: WindowPolicy,
    patience: datetime,
    now: datetime,
    counter: TokenCounter,
) -> SceneConversation:
    """Messages of a request, which are stored nowhere."""
    window, spoken = [], {}
    for number, one in enumerate(messages, start=1):
        # An id of a caller may stand twice here; a place does not.
        key = f"#{number}"
        event_type = one.metadata.get(EVENT_TYPE)
        window.append(
            WindowMessage(
                key,
                number,
                one.role,
                message_tokens(
                    counter,
                    content=one.content,
                    tool_calls=one.tool_calls,
                    content_parts=one.content_parts,
                    name=one.name,
                ),
                now,
                tuple(call_ids(one.tool_calls)),
                one.tool_call_id,
                event_type if isinstance(event_type, str) else None,
            )
        )
        spoken[key] = Spoken(
            one.role,
            one.content,
            one.content_parts,
            one.tool_calls,
            one.tool_call_id,
            one.name,
            one.message_id,
        )
    return SceneConversation(
        Window(
            messages=tuple(window),
            pointer=0,
            total=len(window),
            patience=patience,
            instructions_tokens=policy.carried_tokens,
        ),
        spoken,
        _length_of(messages),
    )


def _length_of(messages: Sequence[MessageCreate]) -> int:
    return sum(
        len(one.content) + sum(len(str(part)) for part in one.content_parts or ())
        for one in messages
    )


def blocks_of(shown: str | None) -> list[ShownBlock]:
    """Blocks out of their JSON, in its order."""
    return [ShownBlock(**one) for one in from_json(shown)] if shown else []
