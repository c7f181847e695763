"""Words of mem0's client: an error names ours, before anything is sent."""

import pytest

from kemem import Memory
from kemem.memories import SearchResults


@pytest.fixture
def memory() -> Memory:
    # Nothing listens there: what is sent fails otherwise.
    return Memory("http://127.0.0.1:9", "kem_unused")


def test_parameters_of_other_names_are_refused_with_ours(memory: Memory) -> None:
    with pytest.raises(TypeError, match="top_k is called limit"):
        memory.search("tea", user_id="ana", top_k=5)  # type: ignore[call-arg]
    for name in ("text", "data"):
        with pytest.raises(TypeError, match=f"{name} is called content"):
            memory.update("mem_1", **{name: "Tea."})  # type: ignore[arg-type]


def test_a_listing_says_how_its_items_are_read() -> None:
    with pytest.raises(TypeError, match=r"iterate over it, or read \.results"):
        SearchResults()["results"]  # type: ignore[call-overload]
