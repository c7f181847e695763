"""One test over all rows of a table, where a case of its own for each would mostly cost set-up."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

Test = Callable[..., Coroutine[Any, Any, None]]


def for_each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run an async test once for every row, in order; a failure names its row.

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
            for row in table:
                try:
                    await test(*args, **kwargs, **row)
                except Exception as error:
                    error.add_note(f"in the row {shown(row)}")
                    raise

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in wanted]
        over_all_rows.__signature__ = signature.replace(parameters=kept)
        return over_all_rows

    return decorate


def shown(row: dict[str, Any]) -> str:
    """The row in a line, also where values are long or cannot be printed."""
    return ", ".join(f"{name}={ascii(value)[:200]}" for name, value in row.items())
