"""How long a reader of an export may take nothing."""

from app.governance.exports.service import STALLED_SECONDS
from app.platform.http.connections import ConnectionLimits


def test_an_export_gives_up_on_its_reader_before_the_connection_does() -> None:
    limits = ConnectionLimits()

    assert limits.unread_seconds - 2 * limits.look_seconds > STALLED_SECONDS
