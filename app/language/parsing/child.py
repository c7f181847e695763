"""What a parser's process runs: a file comes in, its passages go out, and nothing else is here.

`python -m app.language.parsing.child KIND` reads the file from its standard input. It has no
network address, no key and no database, and the operating system holds it to its memory and time.
"""

import importlib
import json
import sys
from dataclasses import asdict
from typing import Any, Final

from app.language.parsing.documents import LIMITS, DocumentLimits, ParseError, Parser
from app.language.parsing.passages import text_passages

if sys.platform != "win32":
    import resource

PARSERS: Final = {
    "text": ("app.language.parsing.text_formats", "PLAIN_TEXT"),
    "markdown": ("app.language.parsing.text_formats", "PLAIN_TEXT"),
    "html": ("app.language.parsing.web_pages", "HTML"),
    "pdf": ("app.language.parsing.pdf_pages", "PDF"),
    "docx": ("app.language.parsing.word_documents", "DOCX"),
    "json": ("app.language.parsing.text_formats", "JSON"),
    "jsonl": ("app.language.parsing.text_formats", "JSON"),
    "csv": ("app.language.parsing.text_formats", "CSV"),
}


def answer(kind: str, content: bytes, limits: DocumentLimits = LIMITS) -> dict[str, Any]:
    """What became of a file, as JSON can say it."""
    # By name, since each format's library takes time to load and one is used.
    module, name = PARSERS[kind]
    parser: Parser = getattr(importlib.import_module(module), name)
    try:
        document = parser.read(content, limits)
    except ParseError as error:
        return {"code": error.code, "detail": error.detail}
    except MemoryError:
        return {"code": "too_large", "detail": "Reading it takes more memory than a file may."}
    return {
        "parser": parser.name,
        "pages": len(document.page_starts) or None,
        "characters": len(document.text),
        "pieces": [
            list(asdict(piece).values())
            for piece in text_passages(document.text, document.page_starts)
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
    parsed = json.dumps(answer(kind, sys.stdin.buffer.read()), ensure_ascii=False)
    sys.stdout.buffer.write(parsed.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
