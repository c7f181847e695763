"""The part of both clients that takes everything out and puts it in again."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Literal

import httpx

from kemem import exports
from kemem.exports import Imported, Part, Watch
from kemem.sending import AsyncSender, Sender

OnConflict = Literal["fail", "skip"]


class Exporting(Sender):
    """Exports and imports."""

    def export(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        project_id: str | None = None,
        *,
        vectors: bool = True,
    ) -> Iterator[bytes]:
        """Everything as lines of JSON, each with its line break, as it is at this moment.

        Args:
            user_id: only what is one user's; a key of the user may ask for that.
            agent_id: only what is one agent's.
            project_id: only what is shared in one project.
            vectors: whether they are in; without them an importer makes them anew.

        Raises:
            BrokenExportError: at the end, when it is not whole.
            NotFoundError, ForbiddenError: before the first line.

        """
        call = exports.fetch(
            user_id=user_id,
            agent_id=agent_id,
            project_id=project_id,
            vectors=None if vectors else "false",
        )
        exchange = self._exchange(call)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = self._http.send(
                    exchange.request(self._http), auth=None, follow_redirects=False, stream=True
                )
                if not outcome.is_success:
                    outcome.read()
            except httpx.RequestError as error:
                outcome = error
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                break
            pause = exchange.pause(outcome)
            if pause is None:
                exchange.result(outcome)
                return
            time.sleep(pause)
        watch, lines = Watch(), _Lines()
        try:
            for piece in outcome.iter_bytes():
                for line in lines.cut(piece):
                    watch.see(line)
                    yield line
        except httpx.RequestError as error:
            raise _broken(error) from error
        finally:
            outcome.close()
        watch.finish()

    def import_(
        self,
        lines: Iterable[bytes],
        *,
        on_conflict: OnConflict = "fail",
        dry_run: bool = False,
        restore_erased: bool = False,
        sent: Callable[[int], None] | None = None,
    ) -> Imported:
        """Put the lines of an export in, as they were. Repeatable: what is there stays.

        Args:
            lines: of a whole export, as `export` or an open binary file gives them.
            on_conflict: whether rows that are there with another content stop it, or stay. What
                is another row altogether always stops it: nothing may be attached to that.
            dry_run: check and count; write nothing.
            restore_erased: also bring back users who were erased after the export was made.
            sent: told after each part how many rows it had.

        Raises:
            BrokenExportError: it is not whole; parts before that were written.
            ConflictError: rows are there with another content, or users were erased since
                (`erased`); parts before were written.
            UnprocessableError: a line is not valid; parts before were written.

        """
        total = Imported(dry_run=dry_run)
        for part in exports.parts(lines):
            total += self._send(
                exports.send(
                    part,
                    on_conflict=on_conflict,
                    dry_run=dry_run,
                    restore_erased=restore_erased,
                )
            )
            _tell(sent, part)
        return total


class AsyncExporting(AsyncSender):
    """`Exporting` for asyncio."""

    async def export(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        project_id: str | None = None,
        *,
        vectors: bool = True,
    ) -> AsyncIterator[bytes]:
        """As `Memory.export`."""
        call = exports.fetch(
            user_id=user_id,
            agent_id=agent_id,
            project_id=project_id,
            vectors=None if vectors else "false",
        )
        exchange = self._exchange(call)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._http.send(
                    exchange.request(self._http), auth=None, follow_redirects=False, stream=True
                )
                if not outcome.is_success:
                    await outcome.aread()
            except httpx.RequestError as error:
                outcome = error
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                break
            pause = exchange.pause(outcome)
            if pause is None:
                exchange.result(outcome)
                return
            await asyncio.sleep(pause)
        watch, lines = Watch(), _Lines()
        try:
            async for piece in outcome.aiter_bytes():
                for line in lines.cut(piece):
                    watch.see(line)
                    yield line
        except httpx.RequestError as error:
            raise _broken(error) from error
        finally:
            await outcome.aclose()
        watch.finish()

    async def import_(
        self,
        lines: Iterable[bytes],
        *,
        on_conflict: OnConflict = "fail",
        dry_run: bool = False,
        restore_erased: bool = False,
        sent: Callable[[int], None] | None = None,
    ) -> Imported:
        """As `Memory.import_`."""
        total = Imported(dry_run=dry_run)
        for part in exports.parts(lines):
            total += await self._send(
                exports.send(
                    part,
                    on_conflict=on_conflict,
                    dry_run=dry_run,
                    restore_erased=restore_erased,
                )
            )
            _tell(sent, part)
        return total


class _Lines:
    """Cuts what comes into lines; what is not yet one waits for the rest."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def cut(self, piece: bytes) -> Iterator[bytes]:
        *whole, rest = piece.split(b"\n")
        for one in whole:
            yield b"".join(self._rest) + one + b"\n"
            self._rest.clear()
        if rest:
            self._rest.append(rest)


def _broken(error: httpx.RequestError) -> exports.BrokenExportError:
    return exports.BrokenExportError(
        f"The export broke off before its end ({type(error).__name__})."
    )


def _tell(sent: Callable[[int], None] | None, part: Part) -> None:
    if sent is not None:
        sent(part.rows)
