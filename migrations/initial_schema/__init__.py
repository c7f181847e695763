"""The first schema as SQL, one file for each group of tables."""

from collections.abc import Iterator
from pathlib import Path

TABLE_FILES = (
    "identity", "conversation", "memory", "graph", "prompting", "documents", "operations",
)  # fmt: skip


def statements(name: str) -> Iterator[str]:
    """The statements of one file, in order; each ends with a semicolon at the end of a line."""
    lines: list[str] = []
    body = False
    for line in (Path(__file__).parent / f"{name}.sql").read_text().splitlines():
        lines.append(line)
        # Between two `$$` stands the body of a function, whose semicolons end nothing.
        body ^= line.count("$$") % 2 == 1
        if line.endswith(";") and not body:
            yield "\n".join(lines)
            lines.clear()
