"""Messages with images and files in every size: within what is allowed, and nothing silent."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.conversation.messages.message_forms import MessageForms, Spoken
from app.conversation.messages.window import WindowMessage
from app.language.llm.content_parts import read_part
from app.language.llm.tokens import EstimatedTokens, message_tokens

COUNTER = EstimatedTokens()
NOON = datetime(2026, 11, 26, tzinfo=UTC)
PARTS = st.lists(
    st.one_of(
        st.builds(lambda number: {"type": "text", "text": f"Word {number}. " * 20}, st.integers()),
        st.sampled_from(
            [
                {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
                {"type": "image_url", "image_url": {"url": "https://a.b/d", "detail": "low"}},
                {"type": "file", "file": {"filename": "lease.pdf", "file_id": "file-1"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            ]
        ),
    ),
    min_size=1,
    max_size=6,
)


def tokens_of(said: Spoken) -> int:
    return message_tokens(COUNTER, content=said.content, content_parts=said.content_parts)


def forms_of(parts: Sequence[Mapping[str, Any]]) -> tuple[MessageForms, WindowMessage]:
    said = Spoken("user", "", parts, message_id="m1", sequence_no=1)
    message = WindowMessage("m1", 1, "user", tokens_of(said), NOON, (), None, None)
    return MessageForms(COUNTER, {"m1": said}), message


@given(PARTS, st.integers(0, 3000))
def test_every_part_is_shown_or_named_within_what_is_allowed(
    parts: list[dict[str, Any]], allowed: int
) -> None:
    forms, message = forms_of(parts)

    shown = forms.shown(message, max(allowed, forms.least(message)))

    assert shown.tokens == tokens_of(shown.spoken)
    assert shown.tokens <= max(allowed, forms.least(message))
    kept = list(shown.spoken.content_parts or ())
    text = shown.spoken.content + str([part.get("text") for part in kept])
    for part in parts:
        if read_part(part).is_media:
            assert part in kept or read_part(part).placeholder("m1") in text or "left out" in text


@given(PARTS)
def test_images_are_named_before_text_is_cut(parts: list[dict[str, Any]]) -> None:
    forms, message = forms_of(parts)
    media = [part for part in parts if read_part(part).is_media]
    named = [
        {"type": "text", "text": read_part(part).placeholder("m1")} if part in media else part
        for part in parts
    ]
    least = tokens_of(Spoken("user", "", named))

    if least < message.tokens:
        assert forms.shown(message, message.tokens).spoken.content_parts == parts
        for allowed in (message.tokens - 1, least):
            shown = forms.shown(message, allowed).spoken
            assert (shown.content, shown.content_parts) == ("", named)
        assert forms.shown(message, least - 1).spoken.content_parts != named
