"""Blocks: texts that always stand in the context of the agents they are attached to."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.reading import Answer, Listing
from kemem.rendering import escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Answer):
    """One block as it is now."""

    block_id: str
    label: str
    value: str = ""
    limit: int = 0
    """Most characters (code points) that it may hold."""
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False
    hidden: bool = False
    user_id: str | None = None
    """Whose it is; None when all users share it."""
    per_user: bool = False
    """A template: the first edit in a session makes that user's own copy."""
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
    """What a block said after one change."""

    history_no: int
    event: str
    value: str = ""
    description: str | None = None
    current: bool = False
    actor: str | None = None
    session_id: str | None = None
    """Where a tool made it."""
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.history_no} {self.event} {escape_line(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlockHistory(Listing[BlockChange]):
    """What a block said after each of its last changes, newest first."""

    results: tuple[BlockChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDeleted(Answer):
    """What went with a block, or with `dry_run` would go."""

    block_id: str
    agents: int = 0
    """It was attached to so many."""
    copies: int = 0
    """Users' own copies, which went with it."""
    dry_run: bool = False
