"""A log whose reader is gone."""

import io
import logging
import sys
from typing import NoReturn

from app.platform.observability.logging import TolerantStream, told_without_frames


class Gone(io.StringIO):
    def write(self, _text: str) -> NoReturn:
        raise BrokenPipeError

    def flush(self) -> NoReturn:
        raise BrokenPipeError


def test_a_line_nobody_reads_is_dropped_without_an_error() -> None:
    stream = TolerantStream(Gone())

    assert stream.write("service_stopping") == 0
    stream.flush()


def test_a_line_somebody_reads_arrives() -> None:
    heard = io.StringIO()

    TolerantStream(heard).write("request_served")

    assert heard.getvalue() == "request_served"


def warned(logger: str, level: int = logging.WARNING) -> logging.LogRecord:
    try:
        raise ConnectionRefusedError
    except ConnectionRefusedError:
        raised = sys.exc_info()
    return logging.LogRecord(logger, level, __file__, 1, "It is tried again", None, raised)


def test_a_pool_that_tries_again_is_told_in_a_line() -> None:
    record = warned("asyncpg.pool")

    assert told_without_frames(record)
    assert record.getMessage() == "It is tried again (ConnectionRefusedError)"
    assert record.exc_info is None


def test_every_other_exception_keeps_its_frames() -> None:
    for record in (warned("asyncpg.pool", logging.ERROR), warned("uvicorn.error")):
        assert told_without_frames(record)
        assert record.exc_info is not None
