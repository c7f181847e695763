"""How values are cut: pure, so anything may be cut."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemem.langgraph.chunks import (
    LONGEST,
    PART_BYTES,
    PART_CHUNKS,
    REFERENCE_BYTES,
    SHORTEST,
    Content,
    compressed,
    fits,
    parts,
    split,
    split_value,
)

RANDOM = random.Random(7)
WORDS = [RANDOM.randbytes(RANDOM.randint(2, 9)).hex() for _ in range(500)]


def prose(size: int, seed: int = 1) -> bytes:
    chosen = random.Random(seed)
    return " ".join(chosen.choice(WORDS) for _ in range(size // 10)).encode()


texts = st.one_of(
    st.binary(max_size=3000),
    st.builds(prose, st.integers(0, 60_000), st.integers(0, 9)),
    st.builds(
        lambda one, size: one * size, st.binary(min_size=1, max_size=9), st.integers(0, 9000)
    ),
)


@given(texts)
def test_chunks_join_to_the_data_and_none_is_too_long(data: bytes) -> None:
    found = split(data)

    assert b"".join(found) == data
    assert all(SHORTEST < len(one) <= LONGEST for one in found[:-1])
    assert all(found)


@given(texts, texts)
def test_appending_does_not_change_earlier_chunks(data: bytes, more: bytes) -> None:
    before = split(data)[:-1]

    assert split(data + more)[: len(before)] == before


def test_chunks_after_a_change_are_the_same_again() -> None:
    data = prose(200_000)
    changed = data[:50_000] + b"something else" + data[50_100:]

    before, after = set(split(data)), set(split(changed))

    assert len(before - after) <= 3
    assert len(before) > 50


def test_average_chunk_has_two_to_six_kibibytes() -> None:
    found = split(prose(500_000))

    assert 2048 < 500_000 / len(found) < 6144


def test_compressed_chunks_are_restored() -> None:
    value = split_value("msgpack", prose(20_000))

    content = Content(compressed(value.chunks, value.digests))
    assert content.joined(value.digests) == prose(20_000)
    assert content.missing([*value.digests, "f", "f"]) == ["f"]
    assert split_value("null", b"").digests == ()


@given(st.lists(st.integers(0, 200), max_size=60))
def test_parts_have_everything_once_and_fit(sizes: list[int]) -> None:
    packed = {f"{number:032}": "x" * size for number, size in enumerate(sizes)}

    found = list(parts(packed, 300))

    assert [one for part in found for one in part.items()] == [*packed.items()]
    for part in found:
        size = sum(len(text) + REFERENCE_BYTES for text in part.values())
        assert size <= 300 or len(part) == 1
    # As few as fit: what begins a part had no room in the one before.
    for before, after in pairwise(found):
        first = len(next(iter(after.values())))
        assert sum(map(len, before.values())) + first + REFERENCE_BYTES * (len(before) + 1) > 300


@pytest.mark.parametrize(("beyond", "expected"), [(-1, True), (0, True), (1, False)])
def test_request_has_room_for_so_much(beyond: int, expected: bool) -> None:
    text = "x" * (PART_BYTES - 11 * REFERENCE_BYTES + beyond)

    assert fits({"a": text}, 10) is expected
    assert fits({f"{number}": "" for number in range(PART_CHUNKS + beyond)}, 0) is expected


def test_as_many_chunks_as_a_request_may_have_are_one_part() -> None:
    packed = {f"{number}": "" for number in range(PART_CHUNKS + 1)}

    assert [len(part) for part in parts(packed)] == [PART_CHUNKS, 1]
