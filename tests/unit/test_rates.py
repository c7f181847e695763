"""Token buckets at, below and above their limits, with a clock of the test's own."""

from contextlib import nullcontext
from typing import Any

import pytest

from app.platform.http.rates import MOST_BUCKETS, RateLimitedError, RateLimits


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    def __init__(self, processes: int = 1, **defaults: int) -> None:
        self.clock = Clock()
        self.limits = RateLimits(defaults, processes=processes, clock=self.clock)

    def charge(
        self, kind: Any = "read", tenant: str = "acme", key: str = "k", **config: int
    ) -> Any:
        return self.limits.charge(tenant, key, {"rate_limits": config} if config else {}, kind)

    def charge_more(self, count: int) -> Any:
        """Of a request that was counted once."""
        return self.limits.charge("acme", "k", {}, "write", count=count, counted=1)


def test_without_a_limit_nothing_is_said() -> None:
    scene = Scene()
    assert all(scene.charge() == {} for _ in range(1000))
    assert scene.charge(write=1) == {}
    assert scene.charge(read=0) == {}


def test_what_fits_is_counted_and_the_next_is_refused() -> None:
    scene = Scene(read=3)
    rests = [scene.charge()["RateLimit"] for _ in range(3)]
    assert rests == ['"read";r=2;t=20', '"read";r=1;t=40', '"read";r=0;t=60']
    with pytest.raises(RateLimitedError) as raised:
        scene.charge()
    assert raised.value.headers == {
        "Retry-After": "20",
        "RateLimit-Policy": '"read";q=3;w=60',
        "RateLimit": '"read";r=0;t=60',
    }
    assert raised.value.members["violated-policies"] == ["read"]


def test_a_bucket_fills_evenly_and_not_beyond_its_limit() -> None:
    scene = Scene(read=3)
    for _ in range(3):
        scene.charge()
    scene.clock.now += 19.9
    with pytest.raises(RateLimitedError):
        scene.charge()
    scene.clock.now += 0.2
    scene.charge()
    scene.clock.now += 3600
    for _ in range(3):
        scene.charge()
    with pytest.raises(RateLimitedError):
        scene.charge()


def test_classes_tenants_and_keys_have_buckets_of_their_own() -> None:
    scene = Scene(read=1)
    scene.charge()
    with pytest.raises(RateLimitedError):
        scene.charge(key="another")
    scene.charge("write")
    scene.charge(tenant="other")


def test_a_key_has_a_part_and_a_refused_request_costs_the_tenant_nothing() -> None:
    scene = Scene()
    limits = {"read": 3, "key_read": 1}
    assert scene.charge(**limits)["RateLimit-Policy"] == '"read";q=3;w=60, "key_read";q=1;w=60'
    for _ in range(5):
        with pytest.raises(RateLimitedError) as raised:
            scene.charge(**limits)
        assert raised.value.members["violated-policies"] == ["key_read"]
    scene.charge(key="second", **limits)
    scene.charge(key="third", **limits)
    with pytest.raises(RateLimitedError) as raised:
        scene.charge(key="fourth", **limits)
    assert raised.value.members["violated-policies"] == ["read"]


def test_the_config_of_a_tenant_comes_before_the_defaults() -> None:
    scene = Scene(read=1, write=1)
    for _ in range(2):
        scene.charge(read=2)
    with pytest.raises(RateLimitedError):
        scene.charge(read=2)
    scene.charge("write", read=2)
    with pytest.raises(RateLimitedError):
        scene.charge("write", read=2)
    assert scene.charge("write", write=0) == {}


@pytest.mark.parametrize(("most", "processes", "allowed"), [(10, 3, 3), (2, 4, 1)])
def test_a_process_allows_its_part(most: int, processes: int, allowed: int) -> None:
    scene = Scene(processes, read=most)
    for _ in range(allowed):
        scene.charge()
    with pytest.raises(RateLimitedError):
        scene.charge()


def test_full_buckets_are_forgotten_and_others_are_not() -> None:
    scene = Scene(read=2)
    for number in range(MOST_BUCKETS):
        scene.charge(tenant=f"t{number}")
    scene.clock.now += 30
    scene.charge(tenant="t1")
    scene.charge(tenant="t1")
    scene.clock.now += 30
    scene.charge(tenant="new")
    scene.charge(tenant="t1")
    with pytest.raises(RateLimitedError):
        scene.charge(tenant="t1")


def test_a_request_that_stands_for_many_takes_as_many() -> None:
    scene = Scene(write=10)
    scene.charge("write")
    assert scene.charge_more(8)["RateLimit"].startswith('"write";r=2;')
    scene.charge("write")

    with pytest.raises(RateLimitedError) as raised:
        scene.charge_more(3)

    # One is left and two are wanted; a repeated request wants three.
    assert raised.value.headers["RateLimit"].startswith('"write";r=1;')
    assert raised.value.headers["Retry-After"] == "12"
    assert scene.charge_more(2)["RateLimit"].startswith('"write";r=0;')


@pytest.mark.parametrize("count", [9, 10, 11, 1000])
def test_what_stands_for_more_than_the_limit_takes_all_of_it(count: int) -> None:
    scene = Scene(write=10)
    scene.charge("write")
    left = 1 if count == 9 else 0
    assert scene.charge_more(count)["RateLimit"].startswith(f'"write";r={left};')

    scene.clock.now += 54
    scene.charge("write")
    with pytest.raises(RateLimitedError) if count > 9 else nullcontext():
        scene.charge_more(count)


def test_one_that_was_counted_and_stands_for_itself_takes_no_more() -> None:
    scene = Scene(write=1)
    scene.charge("write")
    assert scene.charge_more(1)["RateLimit"].startswith('"write";r=0;')
