"""Methods that export everything and import it again."""

from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Iterable

import httpx

from kemem._async.sender import AsyncSender
from kemem.calls import Call
from kemem.exports import (
    ExportCheck,
    Imported,
    LineSplitter,
    broken_off,
    export_call,
    import_call,
    parts,
)
from kemem.options import OnConflict


class AsyncExportMethods(AsyncSender):
    """Methods about exports and imports."""

    async def export(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        project_id: str | None = None,
        *,
        vectors: bool = True,
    ) -> AsyncIterator[bytes]:
        """Iterate over all data as lines of JSON, line breaks included, as of the first line.

        Args:
            user_id: only the data of this user; a key of that user suffices.
            agent_id: only the data of this agent.
            project_id: only what is shared in this project.
            vectors: include vectors; without them an import computes them again.

        Raises:
            BrokenExportError: at the end, if the export is not whole. A broken export is not
                resumed: start again.
            NotFoundError, ForbiddenError: before the first line.

        """
        call = export_call(
            user_id=user_id,
            agent_id=agent_id,
            project_id=project_id,
            vectors=None if vectors else "false",
        )
        answer = await self._open(call)
        check, splitter = ExportCheck(), LineSplitter()
        try:
            async for chunk in answer.aiter_bytes():
                for line in splitter.split(chunk):
                    check.check(line)
                    yield line
        except httpx.RequestError as error:
            raise broken_off(error) from error
        finally:
            await answer.aclose()
        check.finish()

    async def _open(self, call: Call[httpx.Response]) -> httpx.Response:
        """The answer with its body still to be read, after retries."""
        exchange = self._exchange(call)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._http.send(
                    exchange.request(self._http), auth=None, follow_redirects=False, stream=True
                )
                if outcome.is_success:
                    return outcome
                await outcome.aread()
            except httpx.RequestError as error:
                outcome = error
            pause = exchange.pause(outcome)
            if pause is None:
                return exchange.result(outcome)
            await sleep(pause)

    async def import_(
        self,
        lines: Iterable[bytes],
        *,
        on_conflict: OnConflict = "fail",
        dry_run: bool = False,
        restore_erased: bool = False,
        sent: Callable[[int], None] | None = None,
    ) -> Imported:
        """Import the lines of an export and return the number of rows by outcome.

        Safe to repeat: rows that exist already are not changed. After an error, repeat all of it.

        Args:
            lines: of a whole export, as `export` or an open binary file gives them.
            on_conflict: `fail` or `skip` for a row that exists with other content. A row that is
                a different one under the same id always fails.
            dry_run: only check and count.
            restore_erased: also import users who were erased after the export was made.
            sent: called after each part with its number of rows.

        Raises:
            BrokenExportError: the export is not whole; earlier parts were imported.
            ConflictError: a row exists with other content, or a user was erased since the export
                (`erased`); earlier parts were imported.
            UnprocessableError: a line is invalid; earlier parts were imported.

        """
        total = Imported(dry_run=dry_run)
        for part in parts(lines):
            call = import_call(
                part, on_conflict=on_conflict, dry_run=dry_run, restore_erased=restore_erased
            )
            total += await self._send(call)
            if sent is not None:
                sent(part.rows)
        return total
