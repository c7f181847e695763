"""What the model sees of a thread: the context of its session, as messages of the thread."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from kemem.calls import Operation, post
from kemem.context import Context
from kemem.langgraph.transcript import (
    Transcript,
    digest_of,
    messages_of,
    shown_message,
    size_of,
)

GIVEN_MESSAGES = 1000
GIVEN_BYTES = 1_000_000
"""The service takes bodies of 2 MiB by default."""


def context(
    transcript: Transcript, options: Mapping[str, Any]
) -> Operation[tuple[str, list[AnyMessage]]]:
    """The system section, and the messages of the thread that fit, for the next call of a model.

    The service chooses from what is stored. Where the session has messages that the thread has not,
    such as another branch of it, the thread's own are sent along instead.
    """
    body = {**options, "render": "parts"}
    shown = yield from _context(transcript, body)
    messages = _shown_messages(transcript, shown)
    if messages is None:
        shown = yield from _context(transcript, {**body, "messages": given_messages(transcript)})
        messages = _shown_messages(transcript, shown) or []
    return shown.prompt, messages


def _context(transcript: Transcript, body: Mapping[str, Any]) -> Operation[Context]:
    shown: Context = yield post(Context, "sessions", transcript.session_id, "context", body=body)
    return shown


def _shown_messages(transcript: Transcript, shown: Context) -> list[AnyMessage] | None:
    """The messages that a context shows; None if some are not of the thread, or in no order."""
    places = _places(transcript, shown.messages)
    if places is None:
        return None
    messages: list[AnyMessage] = []
    for message, place in zip(shown.messages, places, strict=True):
        if place is None:
            messages += messages_of([message])
            continue
        own, form = transcript.messages[place], transcript.form(place)
        changed = form is None or digest_of(form["message_id"]) != digest_of(message["message_id"])
        messages.append(own if changed or form is None else shown_message(own, form, message))
    return messages


def _places(transcript: Transcript, shown: Sequence[Mapping[str, Any]]) -> list[int | None] | None:
    """The place of each shown message; None for one that the service has written itself."""
    places: list[int | None] = []
    for message in shown:
        message_id = message.get("message_id")
        place = transcript.place_of(message_id)
        if message_id is not None and place is None:
            known = [place for place in places if place is not None]
            place = transcript.twin(message_id, after=max(known, default=-1))
            if place is None:
                return None
        places.append(place)
    known = [place for place in places if place is not None]
    return places if known == sorted(set(known)) else None


def given_messages(transcript: Transcript) -> list[Mapping[str, Any]]:
    """The newest messages that a request may hold, behind the request they belong to."""
    chosen: list[Mapping[str, Any]] = []
    asked = next((form for form in _forms(transcript) if form["role"] == "user"), None)
    size = 0 if asked is None else size_of(asked)
    for form in _forms(transcript):
        size += 0 if form is asked else size_of(form)
        if chosen and (size > GIVEN_BYTES or len(chosen) == GIVEN_MESSAGES - 1):
            break
        chosen.append(form)
    if asked is not None and asked not in chosen:
        chosen.append(asked)
    return chosen[::-1]


def _forms(transcript: Transcript) -> Iterator[Mapping[str, Any]]:
    """The messages as they are stored, newest first."""
    forms = map(transcript.form, range(len(transcript.messages) - 1, -1, -1))
    return (form for form in forms if form is not None)
