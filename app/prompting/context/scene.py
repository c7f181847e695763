"""The result of the first statement of a context: a session and all that belongs to it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import asyncpg
from pydantic_core import from_json

from app.conversation.messages.capture import readable_text
from app.conversation.messages.message_forms import Spoken, TextEnds, ends_of, spoken_of
from app.conversation.messages.schemas import MessageCreate, call_ids
from app.conversation.messages.window import EVENT_TYPE, Window, WindowMessage, window_message
from app.conversation.sessions.models import lineage_of
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import TokenCounter, message_tokens
from app.memory.profiles.prompt_lines import ProfileLine, RenderedProfile, project_lines, user_lines
from app.prompting.blocks.block_text import ShownBlock
from app.prompting.context.assembly import profile_lines

Off = Literal["deployment", "agent", "session"]

STORED: Final = 40
"""How many characters of stored messages are read in the time that it takes to scan one: their
tokens are known, and their texts are only passed on."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A session as a context sees it.

    Args:
        row: the row of the statement in `context_sql.py`.
        policy: the resolved policy of its window.
        summaries: the summaries of evicted messages, oldest first.
        conversation: the messages of the window that may be shown.

    """

    row: asyncpg.Record
    policy: WindowPolicy
    blocks: Sequence[ShownBlock]
    summaries: Sequence[str]
    conversation: "SceneConversation"

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """Where variables are looked up that the request's own context does not have."""
        return [self.row["state"] or {}, self.row["context"]]

    @property
    def profile_lines(self) -> list[ProfileLine]:
        """Lines of the user's profile, and of the project's if the user is a member."""
        row = self.row
        lines = [ProfileLine(line) for line in profile_lines(row["user_name"], row["profile"])]
        known = row["user_profile"] or {}
        lines += user_lines(
            _rendered_values(known), known.get("instructions"), name=row["user_name"]
        )
        shared = (row["project_profile"] if row["in_project"] else None) or {}
        return lines + project_lines(_rendered_values(shared))

    @property
    def characters(self) -> int:
        """The characters that are to be scanned of all its text."""
        return (
            sum(len(block.value) for block in self.blocks)
            + sum(len(summary) for summary in self.summaries)
            + self.conversation.characters // STORED
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

    @property
    def lineage(self) -> list[tuple[str, int]]:
        """Sessions that this one has copies of, each with the last number; none of no fork."""
        return lineage_of(self.row["forked_from"])

    def off_by(self, *, enabled: bool) -> Off | None:
        """Where injection is switched off, the outermost; None when it is on."""
        if not enabled:
            return "deployment"
        if not self.row["agent_injects"]:
            return "agent"
        return None if self.row["session_injects"] else "session"


@dataclass(frozen=True, slots=True)
class SceneCounters:
    """How full the window is, as `messages/pressure.py` takes it."""

    window_tokens: int
    window_messages: int
    summary_tokens: int
    token_scale: float
    in_context_from: int
    last_user_seq: int
    beside_tokens: int | None = None
    memory_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SceneConversation:
    """Messages that may be shown: as the window counts them, and in full by their id."""

    window: Window
    spoken: Mapping[str, Spoken]
    characters: int
    """Of all messages, as JSON where they are stored."""
    ends: Mapping[str, TextEnds] = field(default_factory=dict)
    """Of messages that are too long to be shown whole."""

    @property
    def last_request(self) -> str | None:
        """The newest text of the user; None when there is none."""
        for message in reversed(self.window.messages):
            if message.role == "user":
                spoken = self.spoken[message.message_id]
                text = readable_text(spoken.content, spoken.content_parts).strip()
                if text:
                    return text
        return None


def stored_conversation(
    row: Mapping[str, Any], policy: WindowPolicy, answerable_since: datetime
) -> SceneConversation:
    """The stored window in a row of the statement."""
    rows = from_json(row["tail"]) if row["tail"] else []
    for stored in rows:
        stored["create_time"] = datetime.fromisoformat(stored["create_time"])
    return SceneConversation(
        Window(
            messages=tuple(map(window_message, rows)),
            pointer=row["in_context_from"],
            total=counters(row).window_messages,
            answerable_since=answerable_since,
            instructions_tokens=policy.carried_tokens,
            waiting=frozenset(row["waiting"]),
            unbroken_from=rows[0]["unbroken_from"] if rows else None,
        ),
        spoken_of(rows),
        len(row["tail"] or ""),
        ends_of(rows),
    )


def _rendered_values(profile: Mapping[str, Any]) -> dict[str, RenderedProfile]:
    """The values of a profile, as `profiles/repository.py` returns them."""
    values = profile.get("values") or {}
    return {
        slot: RenderedProfile(value["value"], value["memory_ids"]) for slot, value in values.items()
    }


def counters(row: Mapping[str, Any]) -> SceneCounters:
    """The counters of the session's row, or fresh counts where those are behind."""
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
    answerable_since: datetime,
    now: datetime,
    counter: TokenCounter,
) -> SceneConversation:
    """The messages of a request, which are not stored."""
    window, spoken = [], {}
    for number, message in enumerate(messages, start=1):
        # The ids of a caller may repeat; positions do not.
        key = f"#{number}"
        event_type = message.metadata.get(EVENT_TYPE)
        window.append(
            WindowMessage(
                key,
                number,
                message.role,
                message_tokens(
                    counter,
                    content=message.content,
                    tool_calls=message.tool_calls,
                    content_parts=message.content_parts,
                    name=message.name,
                ),
                now,
                tuple(call_ids(message.tool_calls)),
                message.tool_call_id,
                event_type if isinstance(event_type, str) else None,
            )
        )
        spoken[key] = Spoken(
            message.role,
            message.content,
            message.content_parts,
            message.tool_calls,
            message.tool_call_id,
            message.name,
            message.message_id,
        )
    return SceneConversation(
        Window(
            messages=tuple(window),
            pointer=0,
            total=len(window),
            answerable_since=answerable_since,
            instructions_tokens=policy.carried_tokens,
        ),
        spoken,
        _length_of(messages),
    )


def _length_of(messages: Sequence[MessageCreate]) -> int:
    return sum(
        len(message.content) + sum(len(str(part)) for part in message.content_parts or ())
        for message in messages
    )


def blocks_of(shown: str | None) -> list[ShownBlock]:
    """Blocks from their JSON, in its order; empty for none."""
    return [ShownBlock(**block) for block in from_json(shown)] if shown else []
