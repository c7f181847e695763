"""Storing a thread's messages in its session.

The thread is the truth. What a killed attempt has stored and the thread does not have is deleted
when the thread goes on, unless the user said it.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from kemem.answers import Answer
from kemem.calls import Call, Operation, Page, fetch_pages, post
from kemem.errors import NotFoundError
from kemem.langgraph.transcript import Transcript, digest_of, key_of, size_of
from kemem.sessions import Appended, Message, refuse_others

BATCH_MESSAGES = 100
BATCH_BYTES = 1_000_000
"""The service takes bodies of 2 MiB by default."""
TAIL = 10
"""Messages in the first page of those that were stored last."""
PAGE_ROWS = 50
MOST_ROWS = 1000
"""LangGraph stores checkpoints in the background: a killed attempt may be many steps ahead."""
RUN = 30


@dataclass(frozen=True, slots=True)
class Stored:
    """The message of a thread that was stored last."""

    key: str
    sequence_no: int


Thread = tuple[str, str | None, str | None]
"""A session, and the user and the agent whose it was found to be, where a run names them."""


class KnownThreads:
    """What was stored last of each thread; what is not known is asked for."""

    THREADS = 1024

    def __init__(self) -> None:
        self._stored: OrderedDict[Thread, Stored] = OrderedDict()
        self._lock = Lock()

    def get(self, thread: Thread) -> Stored | None:
        with self._lock:
            return self._stored.get(thread)

    def set(self, thread: Thread, stored: Stored | None) -> None:
        with self._lock:
            self._stored.pop(thread, None)
            if stored is not None:
                self._stored[thread] = stored
            while len(self._stored) > self.THREADS:
                self._stored.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deleted(Answer):
    message_ids: tuple[str, ...] = ()


def store(
    transcript: Transcript, owner: Mapping[str, str | None], known: KnownThreads
) -> Operation[bool]:
    """Store what is new in the thread. Safe to repeat.

    Returns:
        Whether the session has messages, and so is that of `owner`.

    """
    thread = (transcript.session_id, owner.get("user_id"), owner.get("agent_id"))
    last = known.get(thread)
    place = transcript.place(None if last is None else last.key)
    known.set(thread, None)
    if last is None or place is None:
        start, sequence_no = yield from _found_start(transcript, owner)
    else:
        start, sequence_no = place + 1, last.sequence_no
    bound = sequence_no
    sequence_no, seamless = yield from _append(transcript, start, sequence_no, owner)
    if not seamless:
        again = yield from _clear(transcript, bound, start, owner)
        if again is not None:
            sequence_no, _ = yield from _append(transcript, again, 0, owner)
    if sequence_no and transcript.messages:
        known.set(thread, Stored(transcript.key(len(transcript.messages) - 1), sequence_no))
    return bool(sequence_no)


def _append(
    transcript: Transcript, start: int, sequence_no: int, owner: Mapping[str, str | None]
) -> Operation[tuple[int, bool]]:
    """Append what stands from `start` on.

    Returns:
        The number of the message stored last, and whether all follow `sequence_no` without a gap.

    """
    seamless = True
    for batch in _batches(transcript.storable(start)):
        body = {"messages": batch, **owner}
        appended: Appended = yield post(
            Appended, "sessions", transcript.session_id, "messages", body=body
        )
        for message in appended.messages:
            seamless = seamless and message.sequence_no == sequence_no + 1
            sequence_no = message.sequence_no
    return sequence_no, seamless


def _batches(forms: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    size = 0
    for form in forms:
        length = size_of(form)
        if batch and (len(batch) == BATCH_MESSAGES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(form)
        size += length
    if batch:
        yield batch


def _found_start(
    transcript: Transcript, owner: Mapping[str, str | None]
) -> Operation[tuple[int, int]]:
    """Where the messages begin that are not stored, and the number of the last that is."""
    rows, complete = yield from _tail(transcript, 0, owner)
    sequence_no = rows[-1].sequence_no if rows else 0
    known = [place for place, row in enumerate(rows) if _place(transcript, row) is not None]
    if known:
        matched = _place(transcript, rows[known[-1]])
        start = 0 if matched is None else matched + 1
        newer: Sequence[Message] = rows[known[-1] + 1 :]
        while newer and _same_content(transcript, start, newer[0]):
            start, newer = start + 1, newer[1:]
    else:
        # A caller that sends the whole conversation each time, with other ids.
        start, newer = _start_by_content(transcript, rows, complete=complete)
    deleted = yield from _delete(transcript, newer, start)
    return min([start, *deleted]), sequence_no


def _clear(
    transcript: Transcript, bound: int, start: int, owner: Mapping[str, str | None]
) -> Operation[int | None]:
    """Delete what others have stored after number `bound` and the thread does not have.

    Returns:
        From where messages have to be appended again, because they were deleted along.

    """
    rows, _ = yield from _tail(transcript, bound, owner)
    unknown = [row for row in rows if row.sequence_no > bound and _place(transcript, row) is None]
    deleted = yield from _delete(transcript, unknown, start)
    return min(deleted, default=None)


def _tail(
    transcript: Transcript, bound: int, owner: Mapping[str, str | None]
) -> Operation[tuple[list[Message], bool]]:
    """What was stored last, oldest first, and whether that is all of the session.

    Back to number `bound`; with 0, to the first message that the thread has. Nothing of a session
    of somebody else, which the append will refuse.
    """
    rows: list[Message] = []
    call: Call[Page[Message]] | None = fetch_pages(
        Message, "sessions", transcript.session_id, "messages", limit=TAIL, order="desc"
    )
    while call is not None and len(rows) < MOST_ROWS:
        try:
            page: Page[Message] = yield call
        except NotFoundError:
            return [], True
        for row in page.items:
            refuse_others(transcript.session_id, row, owner)
        rows += page.items
        call = page.following and replace(
            page.following, params={**page.following.params, "limit": str(PAGE_ROWS)}
        )
        if bound and rows and rows[-1].sequence_no <= bound:
            break
        if not bound and _is_near(transcript, page.items, rows):
            break
    return rows[::-1], call is None


def _is_near(transcript: Transcript, page: Sequence[Message], rows: Sequence[Message]) -> bool:
    """Whether the rows reach back to what the thread has."""
    if any(_place(transcript, row) is not None for row in page):
        return True
    # With other ids, a run of messages with the same content shows it.
    twins = (transcript.twin(row.message_id, after=-1) for row in page)
    return len(rows) > RUN and any(twin is not None for twin in twins)


def _delete(transcript: Transcript, rows: Sequence[Message], start: int) -> Operation[list[int]]:
    """Delete what a killed attempt has stored, if it is nothing else.

    Returns:
        Where the deleted messages stand that the thread has: the other half of a tool call.

    """
    ours = [row for row in rows if key_of(row.message_id) is not None]
    if not ours or not all(_is_repeated(transcript, row, start) for row in ours):
        return []
    body = {"message_ids": [row.message_id for row in ours]}
    path = ("sessions", transcript.session_id, "messages", "delete")
    try:
        deleted: _Deleted = yield post(_Deleted, *path, body=body)
    except NotFoundError:
        # Another process was faster.
        return []
    places = (transcript.place_of(message_id) for message_id in deleted.message_ids)
    return [place for place in places if place is not None]


def _is_repeated(transcript: Transcript, row: Message, start: int) -> bool:
    """Whether the thread goes on without the message: what a user says once stays stored."""
    if row.role != "user":
        return True
    return any(
        _same_content(transcript, place, row) for place in range(start, len(transcript.messages))
    )


def _start_by_content(
    transcript: Transcript, rows: Sequence[Message], *, complete: bool
) -> tuple[int, Sequence[Message]]:
    """Where the messages begin that are not stored, and replies that were stored behind them all.

    The latter are of an attempt that is repeated.
    """
    forms = [place for place in range(len(transcript.messages)) if transcript.form(place)]
    ends = [len(rows)] if rows else []
    while ends and ends[-1] > 1 and rows[ends[-1] - 1].role != "user":
        ends.append(ends[-1] - 1)
    # A conversation that was sent in part fits in more places than a whole one.
    for whole in (True, False):
        for end in ends:
            overlap = _overlap(transcript, forms, rows[:end], whole=whole, complete=complete)
            if overlap == len(forms) or (overlap and end == len(rows)):
                return forms[overlap - 1] + 1, rows[end:]
    return 0, ()


def _overlap(
    transcript: Transcript,
    forms: Sequence[int],
    rows: Sequence[Message],
    *,
    whole: bool,
    complete: bool,
) -> int:
    """How many of the messages at the places `forms` have the content of rows up to the last.

    Args:
        whole: all rows have to be found, in a session that is `complete` from its first on.

    """
    if whole:
        ends = [len(rows)] if complete else range(len(forms), len(rows) - 1, -1)
        lengths = [(end, len(rows)) for end in ends if end <= len(forms)]
    else:
        lengths = [(end, end) for end in range(min(len(forms), len(rows)), 0, -1)]
    for end, length in lengths:
        pairs = zip(forms[end - length : end], rows[len(rows) - length :], strict=True)
        if all(_same_content(transcript, *pair) for pair in pairs):
            return end
    return 0


def _same_content(transcript: Transcript, place: int, row: Message) -> bool:
    if place >= len(transcript.messages) or key_of(row.message_id) is None:
        return False
    form = transcript.form(place)
    return form is not None and digest_of(form["message_id"]) == digest_of(row.message_id)


def _place(transcript: Transcript, row: Message) -> int | None:
    return transcript.place_of(row.message_id)
