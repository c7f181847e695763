"""Which cases of a long table run with every `make test`."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_fast(name: str, cases: Iterable[Any], **options: Any) -> pytest.MarkDecorator:
    """Parametrise with all cases; those behind the first are slow."""
    first, *rest = cases
    slow = (pytest.param(case, marks=pytest.mark.slow) for case in rest)
    return pytest.mark.parametrize(name, [first, *slow], **options)
