"""What the parts of a message are, in whatever dialect they were appended, and their names. Pure.

Read are the parts of OpenAI's Chat Completions and Responses, of Anthropic's Messages and of
LangChain. A part of another type is kept as it came. Whoever cannot take a part shows its
placeholder instead, such as `[image, png, 312 kB, message msg_1]`: nothing is left out silently.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["text", "thinking", "refusal", "image", "audio", "file", "other"]

TEXT_BLOCKS: Final = ("text", "input_text", "output_text")
"""Types of parts whose `text` was said; a part with a `text` and no type is one too."""

ANTHROPIC_BLOCKS: Final = frozenset(
    {
        "redacted_thinking", "tool_use", "tool_result", "search_result", "server_tool_use",
        "web_search_tool_result",
    }
)  # fmt: skip
"""Types of blocks that only Anthropic's API takes; it gets them back as they came."""

MEDIA: Final = frozenset({"image", "audio", "file"})

_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(TEXT_BLOCKS, "text"),
    "thinking": "thinking",
    "refusal": "refusal",
    **dict.fromkeys(("image_url", "input_image", "image"), "image"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
}
_HOLDERS: Final = ("image_url", "input_audio", "file", "source")
"""Keys under which a dialect puts where a part's data are."""

_MEDIA_TYPES: Final = {"image/jpg": "image/jpeg"}
"""Names that are in use beside the registered ones, which providers want."""

_LONGEST_NAME: Final = 100

# Of a text that has an image in it, as Markdown and HTML do.
_DATA_URL: Final = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[\w.%+-]*)*;base64,"
    r"((?:[\w+/=-]|%[0-9A-Fa-f]{2})+(?:\r?\n[\w+/=-]{60,})*)",
    re.ASCII,
)
BASE64: Final = ";base64"
"""In every data URL that is not written out."""


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A part, read from any dialect.

    Args:
        type: as the part itself says.
        data: Base64, where the part has its data with it.
        url: where they are otherwise; never a data URL in Base64.
        detail: how closely a model is to look at an image.

    """

    type: str
    kind: Kind
    text: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    detail: str | None = None

    @property
    def is_media(self) -> bool:
        """Whether it is an image, an audio or a file; a document that is given as text is none."""
        return self.kind in MEDIA and (self.kind != "file" or self.text is None)

    @property
    def is_said(self) -> bool:
        """Whether it is words of whose message it is."""
        return self.kind in {"text", "refusal"}

    @property
    def is_for_model(self) -> bool:
        """Whether it is only for the model that made it, or for its API."""
        return self.kind == "thinking" or self.type in ANTHROPIC_BLOCKS

    @property
    def is_pdf(self) -> bool:
        # `%PDF-`: some give the data of a file without its type.
        return self.media_type == "application/pdf" or (self.data or "").startswith("JVBERi0")

    @property
    def size(self) -> int | None:
        """Bytes of its data; None where they are not with it."""
        return None if self.data is None else _decoded(len(self.data), self.data[-2:])

    def placeholder(self, message_id: str | None = None, *, sized: bool = True) -> str:
        """Its name in one line: what it is, its type or file name, its size, its message."""
        kind = self.type if self.kind == "other" else self.kind
        subtype = (self.media_type or "").rpartition("/")[2]
        where = self.url if (self.url or "").startswith(("http://", "https://")) else None
        words = [kind, self.name or subtype]
        if sized:
            size = self.size
            words += [] if self.name else [self.file_id or where or ""]
            words += [readable_size(size)] if size is not None else []
            words += [f"message {message_id}"] if message_id else []
        return f"[{', '.join(_plain(word) for word in words if word)}]"


def read_part(part: object) -> ContentPart:
    """What a part is; a bare text is one of type `text`."""
    if not isinstance(part, Mapping):
        return ContentPart("text", "text", text=part if isinstance(part, str) else None)
    given = str(part.get("type") or ("text" if "text" in part else "part without a type"))
    kind = _KINDS.get(given, "other")
    if kind in MEDIA:
        return _media(given, kind, part)
    return ContentPart(given, kind, text=_text(part.get(kind, part.get("text"))), name=_name(part))


def _media(given: str, kind: Kind, part: Mapping[str, Any]) -> ContentPart:
    holders = (part[key] for key in _HOLDERS if isinstance(part.get(key), Mapping))
    holder: Mapping[str, Any] = next(holders, {})
    told = {**part, **holder}
    image = part.get("image_url")
    url = _text(image) or _text(told.get("url")) or _text(told.get("file_url"))
    data = _text(told.get("data")) or _text(told.get("base64")) or _text(told.get("file_data"))
    media_type = _text(told.get("media_type")) or _text(told.get("mime_type"))
    if media_type is None and _text(told.get("format")):
        media_type = f"{kind}/{told['format']}"
    text = _text(part.get("text"))
    if holder.get("type") in {"text", "content"} and kind == "file":
        # A document of Anthropic's that is a text.
        text, data = data or _texts(holder.get("content")), None
    for link in (url, data):
        if link is not None and link.startswith("data:"):
            header, _, rest = link[len("data:") :].partition(",")
            if header.endswith(BASE64):
                media_type, data, url = header.removesuffix(BASE64), rest, None
    media_type = (media_type or "").partition(";")[0].strip().lower()
    return ContentPart(
        given,
        kind,
        text=text,
        media_type=_MEDIA_TYPES.get(media_type, media_type) or None,
        data=data,
        url=url,
        file_id=_text(told.get("file_id")),
        name=_name(told),
        detail=_text(told.get("detail")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(content: object) -> str | None:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(filter(None, (read_part(block).text for block in blocks))) or None


def _name(told: Mapping[str, Any]) -> str | None:
    return next((told[key] for key in ("filename", "title", "name") if _text(told.get(key))), None)


def _plain(word: str) -> str:
    """A word of a placeholder: one line, short, and without brackets that would end it."""
    line = " ".join(word.split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def _decoded(characters: int, end: str) -> int:
    """Bytes that so many characters of Base64 stand for."""
    return max(characters * 3 // 4 - end.count("="), 0)


def readable_size(size: int) -> str:
    """`312 kB`; a kB is 1,000 bytes."""
    if size < 1000:
        return f"{size} bytes"
    if size < 999_500:
        return f"{round(size / 1000)} kB"
    return f"{size / 1_000_000:.1f} MB"


def without_data_urls(text: str) -> str:
    """The text with a placeholder for each data URL in it: Base64 is nothing to read."""
    if BASE64 not in text:
        return text
    return _DATA_URL.sub(_named_url, text)


def _named_url(found: re.Match[str]) -> str:
    media_type = found[1] or ""
    kind: Kind = "image" if media_type.startswith("image/") else "file"
    data = "".join(found[2].split())
    return ContentPart(kind, kind, media_type=media_type, data=data).placeholder()


def placeholders(parts: Sequence[object] | None, *, sized: bool = True) -> list[str]:
    """The placeholders of what somebody sent besides words, in order."""
    read = (read_part(part) for part in parts or ())
    return [
        part.placeholder(sized=sized) for part in read if not part.is_said and not part.is_for_model
    ]


def text_with_placeholders(
    content: str, parts: Sequence[object] | None, message_id: str | None = None
) -> str:
    """All that a message says, in order: its content, and texts and placeholders of its parts.

    The content is left out where the parts say it too.
    """
    if not parts:
        return without_data_urls(content)
    read = [read_part(part) for part in parts]
    said = [part.text or "" for part in read if part.kind == "text"]
    lines = [] if content in said or content == "".join(said) else [content]
    lines += [part.text or "" if part.is_said else part.placeholder(message_id) for part in read]
    return without_data_urls("\n".join(filter(None, lines)))


def without_media(
    parts: Iterable[Mapping[str, Any]], message_id: str | None, *, inline_only: bool = False
) -> list[Mapping[str, Any]]:
    """The parts with a text part that names it for each image, audio and file.

    Args:
        parts: as they were appended.
        message_id: where they can be read whole.
        inline_only: leave those that only say where their data are.

    """
    return [
        {"type": "text", "text": read.placeholder(message_id)}
        if read.is_media and (read.data is not None or not inline_only)
        else part
        for part, read in ((part, read_part(part)) for part in parts)
    ]
