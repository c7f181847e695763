"""Quotas as arithmetic: what counts, what bars, until when."""

from datetime import UTC, date, datetime
from typing import get_args

import pytest

from app.identity.tenants.service import QUOTAS
from app.identity.usage.quota import Exhausted, Quota, QuotaName, Totals, exhausted

DAY = date(2026, 12, 31)
MIDNIGHT = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("calls", "barred"), [(9, False), (10, True), (11, True)])
def test_calls_bar_when_the_last_one_is_used(calls: int, barred: bool) -> None:
    found = exhausted(Totals(DAY, calls=calls), Quota(daily_calls=10))

    assert found == (Exhausted("daily_calls", MIDNIGHT) if barred else None)


@pytest.mark.parametrize(("written", "barred"), [(39, False), (40, True), (41, True)])
def test_tokens_read_and_written_count_together(written: int, barred: bool) -> None:
    totals = Totals(DAY, calls=1, input_tokens=60, output_tokens=written)

    found = exhausted(totals, Quota(daily_tokens=100))

    assert found == (Exhausted("daily_tokens", MIDNIGHT) if barred else None)


def test_no_quota_is_never_used_up() -> None:
    totals = Totals(DAY, calls=10**12, input_tokens=10**15)

    assert exhausted(totals, Quota()) is None


def test_of_two_quotas_either_bars() -> None:
    quota = Quota(daily_calls=10, daily_tokens=100)

    by_calls = exhausted(Totals(DAY, calls=10), quota)
    by_tokens = exhausted(Totals(DAY, calls=1, input_tokens=100), quota)

    assert (by_calls and by_calls.reason, by_tokens and by_tokens.reason) == (
        "daily_calls",
        "daily_tokens",
    )


def test_a_tenant_has_more_less_or_no_limit_of_its_own() -> None:
    quota = Quota(daily_calls=10, daily_tokens=100)

    assert quota.overridden({}) == quota
    assert quota.overridden({"daily_calls": 5}) == Quota(5, 100)
    assert quota.overridden({"daily_calls": 50, "daily_tokens": 0}) == Quota(50, 0)


@pytest.mark.parametrize("value", [None, -1, 1.5, "20", True, [], {}, 2**63])
def test_what_is_no_limit_leaves_the_deployments(value: object) -> None:
    quota = Quota(daily_calls=10, daily_tokens=100)

    assert quota.overridden({"daily_calls": value, "daily_tokens": value}) == quota


def test_a_tenant_that_is_changed_hastens_what_waits_for_any_quota() -> None:
    assert get_args(QuotaName) == QUOTAS
