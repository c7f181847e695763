"""What images, audio and files take of a model's window: an estimate from their headers. Pure.

- An image: OpenAI's formula for tiles ("Images and vision" of its documentation). 85 tokens in low
  detail; else it is scaled into 2048 × 2048 and its shorter side to 768, and takes 85 tokens and
  170 for each 512 × 512 tile. Anthropic counts width × height / 750, which is within a third of
  that for photographs, and never more than 1,600.
- Audio: 10 tokens a second, as OpenAI bills what users say.
- A PDF: 2,000 tokens a page; Anthropic names 1,500 to 3,000.

Where a size cannot be told, because only a URL or an id is known, there are flat estimates.
"""

import binascii
import math
import re
from base64 import b64decode
from typing import Final

from app.language.llm.content_parts import ContentPart

LOW_DETAIL: Final = 85
TILE: Final = 170
UNKNOWN_IMAGE: Final = LOW_DETAIL + 4 * TILE
"""Of an image of 1024 × 1024."""

TOKENS_PER_SECOND: Final = 10
UNKNOWN_AUDIO: Final = 60 * TOKENS_PER_SECOND
BYTES_PER_SECOND: Final = 16_000
"""Of audio that is no WAV: 128 kbit/s."""

TOKENS_PER_PAGE: Final = 2_000
BYTES_PER_PAGE: Final = 50_000
"""Of a file whose pages cannot be counted."""

BYTES_PER_TOKEN: Final = 4
"""Of a file that is text."""

_HEADER: Final = 256 * 1024
"""Characters of Base64 in which the size of an image is looked for; in a photograph it stands
behind the preview and the colour profile."""

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_TEXT_TYPES: Final = ("text/", "application/json", "application/xml")

_START_OF_FRAME: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def media_tokens(part: ContentPart) -> int:
    """Tokens of an image, an audio or a file."""
    if part.kind == "image":
        return image_tokens(part)
    return audio_tokens(part) if part.kind == "audio" else file_tokens(part)


def image_tokens(part: ContentPart) -> int:
    """As OpenAI counts tiles; `detail` other than `low` counts as high."""
    if part.detail == "low":
        return LOW_DETAIL
    size = None if part.data is None else image_size(_decoded(part.data[:_HEADER]))
    return UNKNOWN_IMAGE if size is None else tile_tokens(*size)


def tile_tokens(width: int, height: int) -> int:
    """Tokens of an image of so many pixels, at high detail."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    # Rounded, or 767.9999 and 768.0001 of the same image would be different tiles.
    tiles = [math.ceil(round(side * scale, 3) / 512) for side in (width, height)]
    return LOW_DETAIL + TILE * math.prod(max(each, 1) for each in tiles)


def image_size(header: bytes) -> tuple[int, int] | None:
    """Width and height from the first bytes of a PNG, JPEG, GIF or WebP; None for others."""
    if header.startswith(b"\x89PNG\r\n\x1a\n") and len(header) >= 24:
        size = int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")
    elif header.startswith((b"GIF87a", b"GIF89a")) and len(header) >= 10:
        size = int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little")
    elif header.startswith(b"RIFF") and header[8:12] == b"WEBP" and len(header) >= 30:
        size = _webp_size(header)
    elif header.startswith(b"\xff\xd8"):
        size = _jpeg_size(header)
    else:
        return None
    return size if min(size) > 0 else None


def _webp_size(header: bytes) -> tuple[int, int]:
    chunk = header[12:16]
    if chunk == b"VP8X":
        sides = header[24:27], header[27:30]
        return int.from_bytes(sides[0], "little") + 1, int.from_bytes(sides[1], "little") + 1
    if chunk == b"VP8L":
        bits = int.from_bytes(header[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    bits = int.from_bytes(header[26:30], "little")
    return bits & 0x3FFF, bits >> 16 & 0x3FFF


def _jpeg_size(header: bytes) -> tuple[int, int]:
    """(0, 0) where no frame begins in these bytes."""
    place = 2
    while place + 9 <= len(header) and header[place] == 0xFF:
        marker = header[place + 1]
        if marker in _START_OF_FRAME:
            height, width = header[place + 5 : place + 7], header[place + 7 : place + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        # Fill bytes may stand before a marker.
        length = int.from_bytes(header[place + 2 : place + 4], "big")
        place += 1 if marker == 0xFF else 2 + length
    return 0, 0


def audio_tokens(part: ContentPart) -> int:
    """By its seconds: those of a WAV are known, others are taken for 128 kbit/s."""
    size = part.size
    if part.data is None or size is None:
        return UNKNOWN_AUDIO
    header = _decoded(part.data[:64])
    rate = BYTES_PER_SECOND
    if header.startswith(b"RIFF") and header[8:16] == b"WAVEfmt ":
        rate = int.from_bytes(header[28:32], "little") or rate
    return max(1, math.ceil(TOKENS_PER_SECOND * size / rate))


def file_tokens(part: ContentPart) -> int:
    """By its pages, or by its bytes where it is text."""
    size = part.size
    if part.data is None or size is None:
        return TOKENS_PER_PAGE
    if (part.media_type or "").startswith(_TEXT_TYPES):
        return max(1, size // BYTES_PER_TOKEN)
    pages = 0
    if part.is_pdf:
        # Those in compressed objects are not found.
        pages = len(_PAGE.findall(_decoded(part.data)))
    return TOKENS_PER_PAGE * (pages or math.ceil(size / BYTES_PER_PAGE) or 1)


def _decoded(data: str) -> bytes:
    """The bytes of Base64, or of its beginning; none where it is not valid."""
    try:
        return b64decode(data[: len(data) // 4 * 4].translate(_URL_SAFE))
    except (binascii.Error, ValueError):
        return b""


_URL_SAFE: Final = str.maketrans("-_", "+/")
