"""The release of the service; the client of the same release has the same number."""

from typing import Final

VERSION: Final = "0.2.0"
