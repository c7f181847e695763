"""Unit tests run the cases of a table as one item."""

import pytest

from tests.support.case_tables import are_single, table_item


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> pytest.Item | None:
    return None if are_single(collector.config) else table_item(collector, name, obj)
