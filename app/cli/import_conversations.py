"""kemem import-conversations: what was said elsewhere, with its dates, into sessions."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo, available_timezones

import typer
from pydantic import TypeAdapter

from app.cli.conversation_formats import FilesRead, read_conversations
from app.cli.conversation_messages import FileConversation, Times, check
from app.cli.conversation_plan import (
    BudgetWatch,
    ImportBudget,
    StoppedError,
    UnpricedError,
    plan_of,
    tell_plan,
)
from app.cli.conversation_records import Record, UnreadableError, records_of
from app.cli.import_export import told_failures
from app.cli.options import (
    DataDirOption,
    JsonOption,
    KeyOption,
    UrlOption,
    service_meant,
    settings_with,
)
from app.console import REFUSED, UNUSABLE, err, fail, print_json, progress
from app.conversation.messages.schemas import BATCH
from app.platform.values.fields import OwnId
from app.runtime import utc_now
from kemem import Memory
from kemem.calls import json_bytes
from kemem.errors import ApiError, KememError, NotFoundError
from kemem.sessions import Extraction, Message

BATCH_BYTES: Final = 512 * 1024
"""Of the texts of a request; the service takes 2 MiB when nothing else is set."""

ROUNDS: Final = 5
"""How many waits of a minute may bring nothing, before the command stops waiting."""

LEFT_OUT: Final = "before stored ones are left out: they were deleted, or are new in the file"

CONVERSATION_CODES: Final = {"id_not_allowed", "rate_limited"}
"""Refusals besides 409, 413 and 422 that are about one conversation."""

QUOTA_EXHAUSTED: Final = "quota_exhausted"

FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        exists=True,
        dir_okay=False,
        readable=True,
        help="JSONL or JSON in a shape of docs/import.md, or the archive of a chat export.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        help="Whose the conversations are that name no user; the key's user when left out.",
        show_default=False,
    ),
]
SinceOption = Annotated[
    datetime | None,
    typer.Option(
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z"],
        help="Only conversations in which something was said since then.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(min=1, help="Only so many conversations, the oldest.", show_default=False),
]


def _zone(name: str) -> tzinfo | None:
    """Raises typer.BadParameter."""
    try:
        if re.fullmatch(r"[+-]\d\d(:?\d\d)?", name):
            return datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
        if name in available_timezones():
            return ZoneInfo(name)
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{name!r} is no time zone that this machine knows; give one like Asia/Shanghai or +08:00."
    )


ZoneOption = Annotated[
    tzinfo | None,
    typer.Option(
        "--time-zone",
        parser=_zone,
        metavar="ZONE",
        help="Where users were when they wrote, such as Asia/Shanghai or +08:00, for times in "
        'UTC or without a zone: it decides which day "yesterday" is.',
        show_default=False,
    ),
]


def import_conversations_command(
    files: FilesArgument,
    user: UserOption = None,
    zone: ZoneOption = None,
    since: SinceOption = None,
    limit: LimitOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count the files; send nothing.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait after each conversation until its memories are made."),
    ] = False,
    budget_calls: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when so many calls of models are used.", show_default=False),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Stop when so many tokens are used.", show_default=False),
    ] = None,
    budget_money: Annotated[
        float | None,
        typer.Option(min=0, help="Stop when so much is spent, by the service's prices."),
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    data_dir: DataDirOption = None,
    json: JsonOption = False,
) -> None:
    """Import conversations with their dates: JSONL, or exports of ChatGPT and Claude.

    The oldest conversation comes first. A conversation is imported as a whole, or not at all if
    a part of it cannot be read. What is there already stays as it is, so run it again after an
    interruption, or with a newer export. A budget stops it between two conversations, each of
    which is then waited for.
    """
    reading = _chosen(_read(files, user, zone), since, limit)
    for sentence in reading.unreadable:
        err.print(sentence, markup=False)
    settings = settings_with(data_dir=data_dir)
    if dry_run:
        tell_plan(plan_of(reading, url, key, settings), as_json=json)
        raise typer.Exit(REFUSED if reading.unreadable else 0)
    service = service_meant(url, key, settings)
    budget = ImportBudget(budget_calls, budget_tokens, budget_money)
    with told_failures(), Memory(service.base_url, service.key) as memory:
        done = _import_all(memory, reading.conversations, budget, wait=wait or bool(budget))
    _tell_done(done, len(reading.unreadable), as_json=json)
    if done.counts["refused"] or done.stopped or reading.unreadable:
        raise typer.Exit(REFUSED)


@dataclass(slots=True)
class Done:
    """What an import did; `stopped` is why it ended early."""

    counts: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    spent: dict[str, Any] | None = None


def _import_all(
    memory: Memory, conversations: Sequence[FileConversation], budget: ImportBudget, *, wait: bool
) -> Done:
    """Raises KememError."""
    done = Done()
    try:
        spending = BudgetWatch.opened(memory, budget) if wait else None
    except UnpricedError as error:
        fail(str(error), code=UNUSABLE)
    with progress("messages") as bar:
        task = bar.add_task(
            "Importing", total=sum(len(conversation.messages) for conversation in conversations)
        )
        conversation = None
        try:
            for conversation in conversations:
                if spending is not None:
                    spending.check()
                refusal = _import(memory, conversation, done.counts, spending, wait=wait)
                bar.advance(task, len(conversation.messages))
                if refusal is not None:
                    done.counts["refused"] += 1
                    err.print(f"{conversation.place}: {refusal}", markup=False)
        except StoppedError as error:
            done.stopped = f"at {conversation.place if conversation else 'the start'}: {error}"
        except KememError:
            err.print("Not finished. What is done stays done: run the command again.")
            raise
    if spending is not None:
        done.spent = spending.told()
    return done


def _read(files: Sequence[Path], user: str | None, zone: tzinfo | None) -> FilesRead:
    if user is not None:
        try:
            check(TypeAdapter(OwnId).validate_python, user, "--user")
        except UnreadableError as error:
            fail(f"{error}.", code=UNUSABLE)
    records: list[Record] = []
    unreadable = []
    for file in files:
        try:
            records += records_of(file)
        except UnreadableError as error:
            unreadable.append(str(error))
    reading = read_conversations(records, user_id=user, times=Times(utc_now(), zone))
    return replace(reading, unreadable=unreadable + reading.unreadable)


def _chosen(reading: FilesRead, since: datetime | None, limit: int | None) -> FilesRead:
    start = since and since.replace(tzinfo=since.tzinfo or UTC)
    kept = [
        conversation
        for conversation in reading.conversations
        # What has no time is said now.
        if start is None or not conversation.times or max(conversation.times) >= start
    ]
    return replace(reading, conversations=kept[:limit])


def _import(
    memory: Memory,
    conversation: FileConversation,
    counts: Counter[str],
    spending: BudgetWatch | None,
    *,
    wait: bool,
) -> str | None:
    """Append what is not there yet; why the service refuses it, if it does.

    Raises:
        KememError: it would refuse the next one, too.
        StoppedError: the quota of the day is used up.

    """
    try:
        messages = conversation.to_append()
        stored = _stored(memory, conversation.session_id)
        known = {message.message_id for message in stored}
        absent = _absent(messages, stored)
        counts["there"] += sum(message["message_id"] in known for message in messages)
        left_out = sum(message["message_id"] not in known for message in messages) - len(absent)
        if left_out:
            counts["left_out"] += left_out
            err.print(f"{conversation.place}: {left_out:,} messages {LEFT_OUT}", markup=False)
        for batch in _batches(absent):
            memory.append(conversation.session_id, batch, conversation.user_id)
            counts["messages"] += len(batch)
        counts["conversations"] += 1
        return _wait(memory, conversation.session_id, spending) if wait else None
    except ApiError as error:
        if error.code == QUOTA_EXHAUSTED:
            raise StoppedError(error.detail) from error
        if error.code == "model_unavailable":
            return f"it is imported, but not read yet: {error.detail}"
        if error.status in {409, 413, 422} or error.code in CONVERSATION_CODES:
            return f"{error.status} {error.code}: {error.detail}"
        raise


def _stored(memory: Memory, session_id: str) -> Sequence[Message]:
    try:
        return memory.messages(session_id, limit=None)
    except NotFoundError:
        return []


def _absent(messages: list[dict[str, Any]], stored: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages to append.

    A message that is not stored although a later one is may be new, or deleted. It is new if no
    number of a stored message is missing; otherwise nobody can tell, and it is left out.
    """
    known = {message.message_id for message in stored}
    gaps = max((message.sequence_no for message in stored), default=0) > len(stored)
    behind = 0
    for number, message in enumerate(messages, 1):
        if gaps and message["message_id"] in known:
            behind = number
    return [message for message in messages[behind:] if message["message_id"] not in known]


def _batches(messages: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Parts that one request takes; each is stored as a whole."""
    batch: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        more = len(json_bytes(message))
        if batch and (len(batch) == BATCH or size + more > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += more
    if batch:
        yield batch


def _wait(memory: Memory, session_id: str, spending: BudgetWatch | None) -> str | None:
    """Have a session read to its end; why that takes too long, if it does.

    Raises StoppedError.
    """
    read, rounds = -1, 0
    answer: Extraction
    while not (answer := memory.extract(session_id, wait=True)).done:
        if spending is not None:
            spending.refuse_exhausted()
        rounds = 0 if answer.last_extracted_seq > read else rounds + 1
        read = max(read, answer.last_extracted_seq)
        if rounds == ROUNDS or answer.status in {"dead", "cancelled"}:
            why = f", {answer.deferred_reason}" if answer.deferred_reason else ""
            status = f"{answer.status}{why}"
            return f"it is imported, but not read yet: the job {answer.job_id} is {status}"
    return None


def _tell_done(done: Done, unreadable: int, *, as_json: bool) -> None:
    names = ("conversations", "messages", "there", "left_out", "refused")
    told = {name: done.counts[name] for name in names}
    if as_json:
        more = {} if done.spent is None else {"spent": done.spent, "stopped": done.stopped}
        print_json(told | {"unreadable": unreadable} | more)
        return
    err.print(
        f"{told['conversations']:,} conversations, {told['messages']:,} messages imported, "
        f"{told['there']:,} were there, {told['left_out']:,} left out, "
        f"{told['refused']:,} conversations refused, "
        f"{unreadable:,} unreadable."
    )
    if done.spent is not None and done.spent["calls"]:
        err.print(f"{done.spent['calls']:,} calls of models, {done.spent['tokens']:,} tokens.")
    if done.stopped is not None:
        err.print(
            f"Stopped {done.stopped}. Run the command again, with a new budget, to go on there.",
            markup=False,
        )
