"""A log whose reader is gone."""

import io
from typing import NoReturn

from app.platform.observability.logging import TolerantStream


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
