"""What scrapers may see, and that labels of callers are bounded."""

import pytest

from app.platform.http.health import is_loopback
from app.platform.observability.metrics import BoundedNames


@pytest.mark.parametrize(
    "server",
    [("127.0.0.1", 8000), ("127.8.9.1", 1), ("::1", 8000), ("localhost", 80), None],
    ids=str,
)
def test_loopback_address_is_this_machine_alone(server: tuple[str, int] | None) -> None:
    assert is_loopback(server)


@pytest.mark.parametrize(
    "server",
    [("0.0.0.0", 80), ("::", 80), ("10.0.0.1", 80), ("fe80::1%eth0", 80), ("128.0.0.1", 80),
     ("example.com", 80), ("", 80)],
    ids=str,
)  # fmt: skip
def test_any_other_address_is_not(server: tuple[str, int]) -> None:
    assert not is_loopback(server)


def test_names_beyond_the_most_are_one() -> None:
    bounded = BoundedNames(2)

    assert [bounded(name) for name in "abcadb"] == ["a", "b", "other", "a", "other", "b"]
