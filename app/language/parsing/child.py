"""What a parser's process runs: a file comes in, its passages go out, and nothing else is here.

`python -m app.language.parsing.child KIND` reads the file from its standard input. It has no
network address, no key and no database, and the operating system holds it to its memory and time.
"""

import importlib
import json
import sys
from dataclasses import asdict
from typing import Any, Final

from app.language.parsing.documents import LIMITS, Limits, Parser
from app.language.parsing.errors import ParseError
from app.language.parsing.passages import pieces

if sys.platform != "win32":
    import resource

MODULES: Final = {
    "text": "app.language.parsing.plain_text",
    "markdown": "app.language.parsing.plain_text",
    "html": "app.language.parsing.web_pages",
    "pdf": "app.language.parsing.pdf_pages",
    "docx": "app.language.parsing.word_documents",
    "json": "app.language.parsing.trees",
    "jsonl": "app.language.parsing.trees",
    "csv": "app.language.parsing.tables",
}


def answer(kind: str, content: bytes, limits: Limits = LIMITS) -> dict[str, Any]:
    """What became of a file, as JSON can say it."""
    # By name, since each format's library takes time to load and one is used.
    parser: Parser = importlib.import_module(MODULES[kind])
    try:
        document = parser.read(content, limits)
    except ParseError as error:
        return {"code": error.code, "detail": error.detail}
    except MemoryError:
        return {"code": "too_large", "detail": "Reading it takes more memory than a file may."}
    return {
        "parser": parser.NAME,
        "pages": len(document.page_starts) or None,
        "characters": len(document.text),
        "pieces": [
            list(asdict(piece).values()) for piece in pieces(document.text, document.page_starts)
        ],
    }


def _hold_to(memory: int, seconds: int) -> None:
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    kind, memory, seconds = sys.argv[1:]
    _hold_to(int(memory), int(seconds))
    told = json.dumps(answer(kind, sys.stdin.buffer.read()), ensure_ascii=False)
    sys.stdout.buffer.write(told.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
