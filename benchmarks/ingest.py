"""Pages per second: documents read and made searchable, and the parser alone in the same run.

`python -m benchmarks.ingest [--pages 60] [--out F]`
"""

import argparse
import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from app.identity.tenants.access import Access, Principal
from app.language.parsing.parser_pool import ParserPool
from app.prompting.documents.file_service import FileService, Upload
from app.prompting.documents.schemas import FolderCreate
from app.prompting.documents.service import FolderService
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from app.worker import worker_of
from benchmarks.database import AGENT, TENANT, open_cluster
from benchmarks.publishing import publish

WORDS = "The filter of pump {0} is changed every {1} weeks, and its seal once a year."


def document(pages: int) -> bytes:
    """A PDF with some 400 words on each page."""
    writer = PdfWriter()
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})  # noqa: SLF001
    for number in range(pages):
        page = writer.add_blank_page(width=600, height=800)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        lines = " T* ".join(f"({WORDS.format(number, line)}) Tj" for line in range(26))
        stream.set_data(f"BT /F1 10 Tf 14 TL 40 760 Td {lines} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)  # noqa: SLF001
    made = BytesIO()
    writer.write(made)
    return made.getvalue()


async def ingested(runtime: Runtime, dsn: str, content: bytes) -> float:
    """Seconds from the upload to the last passage, a worker running beside."""
    key = Principal(Access(TENANT), "bench", frozenset({"admin"}), {})
    folder = await FolderService(runtime.work, auto_create=True).add(
        key, FolderCreate(folder_name="F", scope="agent", agent_id=AGENT)
    )
    files = FileService(runtime.work, upload_max_bytes=2**30)
    worker = worker_of(runtime, dsn, tickers=())
    running = asyncio.create_task(worker.run())
    started = time.perf_counter()
    digest = sha256(content).digest()
    upload = Upload(BytesIO(content), len(content), digest, "pumps.pdf", None)
    accepted, _ = await files.add(key, folder.folder_id, upload)
    while True:
        file = await files.get(key, folder.folder_id, accepted.file.file_id)
        if file.state in {"completed", "error"}:
            break
        await asyncio.sleep(0.02)
    seconds = time.perf_counter() - started
    assert file.state == "completed", file.error_code
    print(f"{file.passage_count} passages of {file.pages} pages")
    await worker.drain(timedelta(seconds=5))
    await running
    return seconds


async def whole(content: bytes) -> AsyncIterator[bytes]:
    """A file handed over at once."""
    yield content


async def measure(pages: int) -> dict[str, float]:
    """Pages per second, by how far the work goes."""
    content = document(pages)
    started = time.perf_counter()
    for page in PdfReader(BytesIO(content)).pages:
        page.extract_text()
    alone = time.perf_counter() - started
    started = time.perf_counter()
    await ParserPool().read("text", whole(b"Hello."))
    start = time.perf_counter() - started
    started = time.perf_counter()
    await ParserPool().read("pdf", whole(content))
    apart = time.perf_counter() - started
    async with (
        open_cluster() as cluster,
        open_runtime(Settings(_env_file=None), cluster.dsn) as runtime,
    ):
        searchable = await ingested(runtime, cluster.dsn, content)
    return {
        "pages": pages,
        "pypdf": pages / alone,
        "process": pages / apart,
        "start_seconds": start,
        "searchable": pages / searchable,
        "load": os.getloadavg()[0],
    }


def markdown(found: dict[str, float]) -> str:
    """What was measured, for people."""
    return "\n".join(
        [
            "# Documents",
            "",
            f"A PDF of {found['pages']:.0f} pages with some 400 words each, in the same run: its "
            "text taken by pypdf alone, by the parser's process, and from the upload until every "
            "passage can be found, a worker running beside.",
            "",
            "| | pages/s |",
            "|:--|--:|",
            f"| pypdf alone | {found['pypdf']:.0f} |",
            f"| in a process apart, {found['start_seconds']:.2f} s of it to start "
            f"| {found['process']:.0f} |",
            f"| upload to searchable | {found['searchable']:.0f} |",
            "",
            f"Load of the machine at the end: {found['load']:.1f}.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ingest.json"))
    given = parser.parse_args()
    found = asyncio.run(measure(given.pages))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
