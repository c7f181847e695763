"""The graph arm of search: what the query names, and what is one relation away."""

import pytest

from app.language.text.names import name_keys
from app.memory.memories.graph_sql import MOST_MENTIONS, links_of


def test_names_are_whole_words_or_pieces_of_chinese() -> None:
    assert {"tom", "new york", "new york city"} <= set(name_keys("Tom's New York City", most=50))
    assert "yor" not in name_keys("New York", most=50)
    assert {"张教授", "北京大学"} <= set(name_keys("张教授在北京大学吗？", most=100))
    assert name_keys("the", most=9) == []
    long = " ".join(f"word{number}" for number in range(400))
    assert len(name_keys(long, most=300)) == 300


@pytest.mark.parametrize(
    ("mentions", "told"), [(1, True), (MOST_MENTIONS, True), (MOST_MENTIONS + 1, False)]
)
def test_widely_mentioned_entity_gives_no_links(mentions: int, told: bool) -> None:
    found = f'[["mem_1", 0, {mentions}, "Tom"], ["mem_1", 1, 1, "Tom owns Rex"]]'
    links = links_of(found, 10_000)
    assert (links["mem_1"].path == "Tom") is (mentions == 1)
    assert (links_of(f'[["mem_1", 0, {mentions}, "Tom"]]', 10_000) != {}) is told
    assert links_of(None, 10) == {}
