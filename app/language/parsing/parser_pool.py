"""Reading files in processes of their own, which can be killed: a parser that hangs, or wants all
the memory there is, costs its file and nothing else.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import app
from app.language.parsing.documents import ParseError
from app.language.parsing.file_kinds import FileKind
from app.language.parsing.passages import VERSION, TextPassage

MEMORY_BYTES: Final = 1024 * 1024 * 1024
SECONDS: Final = 120
AT_ONCE: Final = 2

_ROOT: Final = str(Path(app.__path__[0]).parent)


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a file says.

    Args:
        parser: what read and cut it, with versions.

    """

    parser: str
    pages: int | None
    characters: int
    pieces: Sequence[TextPassage]


class ParserPool:
    """Starts parsers, few at a time. Belongs to one event loop."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        at_once: int = AT_ONCE,
    ) -> None:
        """Give each file so much time and memory."""
        self._seconds = seconds
        self._memory = memory_bytes
        self._turns = asyncio.Semaphore(at_once)

    async def read(self, kind: FileKind, content: AsyncIterable[bytes]) -> ParsedDocument:
        """A file's text in pieces; the same file gives the same.

        Args:
            kind: what it is.
            content: its bytes, asked for when it is this file's turn and handed on at once, so
                that no file is held here.

        Raises:
            ParseError: it can never be read.
            and what `content` raises.

        """
        async with self._turns:
            answer = await self._ask(kind, content)
        if "code" in answer:
            raise ParseError(answer["code"], answer["detail"])
        return ParsedDocument(
            f"{answer['parser']} {VERSION}",
            answer["pages"],
            answer["characters"],
            [TextPassage(*piece) for piece in answer["pieces"]],
        )

    async def _ask(self, kind: FileKind, content: AsyncIterable[bytes]) -> dict[str, Any]:
        """What the parser's process answers.

        Raises:
            ParseError: it took too long, or ended without an answer.

        """
        limit = max(1, round(self._seconds))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "app.language.parsing.child",
            kind, str(self._memory), str(limit),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Nothing of the service's environment: it holds keys.
            env={"PYTHONPATH": _ROOT, "PYTHONUTF8": "1"},
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._seconds) as limited:
                async for chunk in content:
                    # Time that the bytes took to come is not the parser's.
                    limited.reschedule(asyncio.get_running_loop().time() + self._seconds)
                    await _hand_on(process, chunk)
                await _hand_on(process, b"", last=True)
                answer, _ = await process.communicate()
        except TimeoutError:
            raise ParseError(
                "timed_out", f"Reading it takes longer than {limit} s: split it into several files."
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
        return await asyncio.to_thread(_read, answer, process.returncode)


async def _hand_on(
    process: asyncio.subprocess.Process, chunk: bytes, *, last: bool = False
) -> None:
    assert process.stdin is not None  # noqa: S101 (it is a pipe)
    # Who has ended already says why by its answer, or by having none.
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(chunk)
        await process.stdin.drain()
        if last:
            process.stdin.close()


def _read(answer: bytes, code: int | None) -> dict[str, Any]:
    """Raises ParseError when the process ended without an answer."""
    if code == 0:
        parsed: dict[str, Any] = json.loads(answer)
        return parsed
    raise ParseError("parser_failed", "The parser broke off: the file is damaged or far too large.")
