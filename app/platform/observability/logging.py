"""JSON log lines: events in the past tense, ids and sizes, never content."""

import logging
import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog


class TolerantStream:
    """A stream whose reader may go away: a lost log line must not fail a request or a shutdown."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


_frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False, max_frames=100)


def _exceptions_without_content(
    _logger: Any, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Types and places of raised exceptions. Their messages are omitted: those of a database or
    a parser quote content.
    """
    raised = event.pop("exc_info", None)
    if raised is True:
        raised = sys.exc_info()[1]
    if isinstance(raised, tuple):
        raised = raised[1]
    if isinstance(raised, BaseException):
        stacks = _frames((type(raised), raised, raised.__traceback__))
        event["exception"] = [
            {
                "type": stack["exc_type"],
                "frames": [
                    f"{frame['filename']}:{frame['lineno']} {frame['name']}"
                    for frame in stack["frames"]
                ],
            }
            for stack in stacks
        ]
    return event


def told_without_frames(record: logging.LogRecord) -> bool:
    """A pool that waits for its database tries again; where in the driver is no news."""
    if record.name == "asyncpg.pool" and record.levelno <= logging.WARNING and record.exc_info:
        kind = record.exc_info[0]
        record.msg = f"{record.msg} ({kind.__name__ if kind else 'unknown'})"
        record.exc_info = None
    return True


def configure_logging(level: str, *, pretty: bool = False) -> None:
    """Send every log line, other packages' too, to standard error.

    Args:
        level: debug, info, warning or error.
        pretty: readable lines for a terminal instead of JSON.

    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.types.Processor] = (
        [_exceptions_without_content, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
        if pretty
        else [_exceptions_without_content, structlog.processors.JSONRenderer()]
    )
    lines = cast("TextIO", TolerantStream(sys.stderr))
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # One write a line: printing writes the end of the line by itself.
        logger_factory=structlog.WriteLoggerFactory(lines),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    handler.addFilter(told_without_frames)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Other packages log the texts they handle at debug and info.
    root.setLevel(max(number, logging.WARNING))
