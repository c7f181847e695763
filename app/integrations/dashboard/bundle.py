"""The built page and its files, as `make dashboard` writes them and the package carries them."""

import gzip
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

PAGE: Final = "index.html"

_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class BuiltFile:
    media_type: str
    content: bytes
    compressed: bytes
    """With gzip."""


@cache
def built_files() -> frozenset[str]:
    """Names of all built files."""
    folder = files(__package__) / "assets"
    return frozenset(file.name for file in folder.iterdir())


def find_built(name: str) -> BuiltFile | None:
    """The built file of this name, or None. Each is read and compressed once in a process."""
    return _read(name) if name in built_files() else None


@cache
def _read(name: str) -> BuiltFile:
    content = (files(__package__) / "assets" / name).read_bytes()
    return BuiltFile(
        media_type=_MEDIA_TYPES[name.rpartition(".")[2]],
        content=content,
        compressed=gzip.compress(content, mtime=0),
    )
