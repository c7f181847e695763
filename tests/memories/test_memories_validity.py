"""Which rows count now and around now, at the microsecond, and what is said of them."""

from app.memory.memories.validity_sql import (
    ENDED_DAYS,
    counts_around_now,
    counts_now,
    validity,
)
from tests.support.api import execute
from tests.support.rows import for_each

TICK = "interval '1 microsecond'"
MONTH = f"interval '{ENDED_DAYS} days'"


@for_each(
    ("row", "now", "around", "word"),
    [
        ({}, True, True, "current"),
        ({"valid_from": "now()"}, True, True, "current"),
        ({"valid_from": f"now() + {TICK}"}, False, True, "upcoming"),
        ({"valid_from": "now() + interval '10 years'"}, False, True, "upcoming"),
        ({"valid_to": f"now() + {TICK}"}, True, True, "current"),
        ({"valid_to": "now()"}, False, True, "ended"),
        ({"valid_to": f"now() - {MONTH} + {TICK}"}, False, True, "ended"),
        ({"valid_to": f"now() - {MONTH}"}, False, False, "ended"),
        ({"valid_to": f"now() - {MONTH} - {TICK}"}, False, False, "ended"),
        ({"valid_to": "now()", "superseded_by": "'m2'"}, False, False, "ended"),
        ({"valid_to": f"now() + {TICK}", "superseded_by": "'m2'"}, True, True, "current"),
        # Replaced before it could begin.
        ({"valid_from": f"now() + 2 * {TICK}", "valid_to": f"now() + {TICK}"},
         False, False, "upcoming"),
        ({"valid_from": f"now() + {TICK}", "valid_to": f"now() + {TICK}"},
         False, False, "upcoming"),
        ({"valid_from": f"now() + {TICK}", "valid_to": f"now() + 2 * {TICK}"},
         False, True, "upcoming"),
        ({"expires_at": "now()"}, False, False, "current"),
        ({"expires_at": "now()", "valid_to": "now()"}, False, False, "ended"),
        ({"status": "'superseded'", "valid_to": "now()"}, False, False, "ended"),
        ({"status": "'archived'", "valid_from": f"now() + {TICK}"}, False, False, "upcoming"),
    ],
)  # fmt: skip
async def test_row_counts_by_its_times(
    dsn: str, row: dict[str, str], *, now: bool, around: bool, word: str
) -> None:
    columns = dict.fromkeys(("valid_from", "valid_to", "expires_at"), "NULL::timestamptz")
    columns |= {"superseded_by": "NULL::text", "status": "'active'"} | row
    values = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    [found] = await execute(
        dsn,
        f"SELECT {counts_now('m')} AS now, {counts_around_now('m')} AS around, "
        f"{validity('m')} AS word FROM (SELECT {values}) AS m",
    )

    assert tuple(found) == (now, around, word)
