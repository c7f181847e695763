"""Parts of a message as a provider's API takes them, from whatever dialect they came in. Pure.

A part in the provider's own form comes back as it came. What the provider has no form for, or does
not take from this role, is named by its placeholder, with the message in which it can be read.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from app.language.llm.content_parts import (
    ANTHROPIC_BLOCKS,
    ContentPart,
    read_part,
)

OPENAI_PARTS: Final = frozenset({"image_url", "input_audio", "file", "refusal"})
"""Types of the Chat Completions API besides `text`."""

ANTHROPIC_PARTS: Final = ANTHROPIC_BLOCKS | {"image", "document", "thinking"}

ANTHROPIC_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
OPENAI_AUDIO: Final[Mapping[str, str]] = {
    "audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3",
}  # fmt: skip

Part = dict[str, Any]


def openai_parts(
    parts: Sequence[Mapping[str, Any]], role: str, message_id: str | None
) -> list[Part]:
    """Parts as Chat Completions takes them."""
    return list(_converted(parts, role, message_id, OPENAI_PARTS, _openai, {"user"}))


def anthropic_parts(
    parts: Sequence[Mapping[str, Any]], role: str, message_id: str | None
) -> list[Part]:
    """Blocks as the Messages API takes them."""
    return list(_converted(parts, role, message_id, ANTHROPIC_PARTS, _anthropic, {"user", "tool"}))


def _converted(
    parts: Iterable[Mapping[str, Any]],
    role: str,
    message_id: str | None,
    own: Iterable[str],
    convert: Callable[[ContentPart], Part | None],
    roles: Iterable[str],
) -> Iterable[Part]:
    """Each part in the provider's form.

    Args:
        parts: as they were appended.
        role: whose they are.
        message_id: where they can be read.
        own: types that the provider takes as they are.
        convert: makes its form of another part, None where there is none.
        roles: from whom it takes images, audio and files.

    """
    for part in parts:
        read = read_part(part)
        if read.kind == "text":
            yield _text(read.text or "")
        elif read.type in own and _is_whole(part, read) and (role in roles or not read.is_media):
            yield dict(part)
        elif read.kind == "refusal" or (read.kind == "file" and not read.is_media):
            yield _text(read.text or "")
        else:
            made = convert(read) if role in roles else None
            yield made or _text(read.placeholder(message_id))


def _is_whole(part: Mapping[str, Any], read: ContentPart) -> bool:
    """Whether it has its content in the place where the provider looks for it.

    `file` and `image` are types of several dialects.
    """
    if not read.is_media:
        return True
    holder = "source" if read.type in {"image", "document"} else read.type
    return bool(part.get(holder)) and bool(read.data or read.url or read.file_id)


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _openai(part: ContentPart) -> Part | None:
    if part.kind == "image":
        url = _data_url(part, "image/png") if part.data else part.url
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": url} | detail} if url else None
    if part.kind == "audio":
        form = OPENAI_AUDIO.get(part.media_type or "")
        if not (part.data and form):
            return None
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}}
    if part.kind == "file" and (part.data or (part.file_id and part.type == "input_file")):
        name = part.name or ("document.pdf" if part.data and part.is_pdf else None)
        where = (
            {"file_data": _data_url(part, "application/pdf")}
            if part.data
            else {"file_id": part.file_id}
        )
        return {"type": "file", "file": ({"filename": name} if name else {}) | where}
    return None


def _data_url(part: ContentPart, otherwise: str) -> str:
    return f"data:{part.media_type or otherwise};base64,{part.data}"


def _anthropic(part: ContentPart) -> Part | None:
    if part.kind == "image":
        source = _source(part) if _takes_image(part) else None
        return source and {"type": "image", "source": source}
    if part.kind != "file":
        return None
    source = None
    if part.is_pdf or (part.url or "").partition("?")[0].lower().endswith(".pdf"):
        source = _source(part, "application/pdf")
    elif part.data and (part.media_type or "").startswith("text/"):
        source = _plain_source(part.data)
    title = {"title": part.name} if part.name else {}
    return source and {"type": "document", "source": source} | title


def _takes_image(part: ContentPart) -> bool:
    return part.data is None or part.media_type in ANTHROPIC_IMAGES


def _source(part: ContentPart, otherwise: str | None = None) -> Part | None:
    if part.data:
        media_type = part.media_type or otherwise
        return {"type": "base64", "media_type": media_type, "data": part.data}
    if (part.url or "").startswith(("https://", "http://")):
        return {"type": "url", "url": part.url}
    return None


def _plain_source(data: str) -> Part | None:
    try:
        text = b64decode(data).decode()
    except (binascii.Error, ValueError):
        return None
    return {"type": "text", "media_type": "text/plain", "data": text}
