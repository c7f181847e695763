"""Answers about blocks: texts that are always in the context of the agents they are attached to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing, escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Answer):
    """The current version of a block. `str()` is one escaped line."""

    block_id: str
    label: str
    value: str = ""
    limit: int = 0
    """Maximum length in characters (code points)."""
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False
    hidden: bool = False
    user_id: str | None = None
    """The user it belongs to; None if all users share it."""
    session_id: str | None = None
    """The session that alone shows it."""
    per_user: bool = False
    """Whether it is a template: the first edit in a user's session makes a copy for that user."""
    template_id: str | None = None
    creator: str | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None
    chars_current: int = 0

    def __str__(self) -> str:
        return f"{self.label}: {escape_line(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlockList(Listing[Block]):
    """Blocks, newest first."""

    results: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChange(Answer):
    """The text of a block after one change."""

    history_no: int
    event: str
    value: str = ""
    description: str | None = None
    current: bool = False
    actor: str | None = None
    session_id: str | None = None
    """The session in which a tool made the change, if one did."""
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.history_no} {self.event} {escape_line(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlockHistory(Listing[BlockChange]):
    """The text of a block after each of its last changes, newest first."""

    results: tuple[BlockChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDeleted(Answer):
    """What was deleted with a block, or with `dry_run` would be."""

    block_id: str
    agents: int = 0
    """Number of agents it was attached to."""
    copies: int = 0
    """Number of users' copies, deleted too."""
    dry_run: bool = False
