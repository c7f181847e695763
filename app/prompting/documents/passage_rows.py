"""What is stored of a passage besides its text: an id, its words, its place. Pure."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from app.language.parsing.passages import TextPassage
from app.language.ranking.indexed_text import index_values
from app.platform.database.ids import new_id


def rows_of(
    pieces: Sequence[TextPassage],
    *,
    folder_id: str,
    file_id: str | None,
    first: int,
    tags: Sequence[str],
    creator: str | None,
) -> list[dict[str, Any]]:
    """Rows of passages without their vectors, `first` being the place of the first.

    Those of a file count from -1 down until all are there. Read again, it gives the same ids as
    long as it says the same, so that what was extracted from a passage still names it.
    """
    return [
        {
            "passage_id": new_id("psg") if file_id is None else id_of(file_id, ordinal, piece),
            "folder_id": folder_id,
            "file_id": file_id,
            "ordinal": ordinal,
            "start_char": piece.start,
            "end_char": piece.end,
            "page": piece.page,
            "content": piece.content,
            "tags": list(tags),
            "creator": creator,
            **index_values(piece.content),
        }
        for ordinal, piece in (
            (place if file_id is None else -1 - place, piece)
            for place, piece in enumerate(pieces, first)
        )
    ]


def id_of(file_id: str, ordinal: int, piece: TextPassage) -> str:
    """The id of a file's passage: its place and what it says."""
    return f"psg_{sha256(f'{file_id} {ordinal} {piece.content}'.encode()).hexdigest()[:32]}"
