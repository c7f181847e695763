"""One test over all rows of a table, where a case of its own for each would mostly cost set-up."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

Test = Callable[..., Coroutine[Any, Any, None]]


def for_each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run an async test once for every row, in order; what fails is raised at the end.

    Args:
        names: what the values of a row are called, as `pytest.mark.parametrize` takes it.
        rows: a value for each, or a tuple of values where there are several names.

    """
    single = isinstance(names, str)
    wanted = (names,) if single else names
    table = [dict(zip(wanted, (row,) if single else row, strict=True)) for row in rows]
    assert table, "a table without rows tests nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        async def over_all_rows(*args: Any, **kwargs: Any) -> None:
            with every_row() as trying:
                for row in table:
                    with trying(**row):
                        await test(*args, **kwargs, **row)

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in wanted]
        over_all_rows.__signature__ = signature.replace(parameters=kept)
        return over_all_rows

    return decorate


@contextmanager
def every_row() -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """Make the test of a row, by its values: one that fails stops no other, and is named.

    A row that skips itself fails: nobody would see that it was left out.
    """
    failed: list[BaseException] = []
    tried = 0

    @contextmanager
    def trying(**row: Any) -> Iterator[None]:
        nonlocal tried
        tried += 1
        try:
            yield
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001
            error.add_note(f"in the row {shown(row)}")
            failed.append(error)

    yield trying
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {tried} rows failed", failed)


def shown(row: dict[str, Any]) -> str:
    """The row in a line, also where values are long or cannot be printed."""
    return ", ".join(f"{name}={ascii(value)[:200]}" for name, value in row.items())
