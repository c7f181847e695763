"""The built page and its files, as `make dashboard` writes them and the package carries them."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

PAGE: Final = "index.html"

_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class BuiltFile:
    media_type: str
    content: bytes

    @cached_property
    def compressed(self) -> bytes:
        """With gzip; made when it is first asked for, since the largest file takes longest."""
        return gzip.compress(self.content, mtime=0)


@cache
def built_files() -> Mapping[str, BuiltFile]:
    """All built files by name, as they are when they are first asked for: they belong together, and
    an update replaces them while the service goes on.
    """
    folder = files(__package__) / "assets"
    return {
        file.name: BuiltFile(_MEDIA_TYPES[file.name.rpartition(".")[2]], file.read_bytes())
        for file in folder.iterdir()
    }


def find_built(name: str) -> BuiltFile | None:
    """The built file of this name, or None."""
    return built_files().get(name)
