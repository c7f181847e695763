"""Which memories share telling words with a statement, in both languages."""

import pytest

from app.memory.extraction.shared_words import MOST, asked_vector, sharing_words, words_of


def test_every_statement_is_about_the_user_so_that_tells_nothing():
    assert words_of("The user.") == words_of("用户") == frozenset()
    assert asked_vector("用户").indices() == []


def test_what_few_say_tells_more():
    candidates = {
        "mem_hike": "用户想去爬四姑娘山。",
        **{f"mem_{n}": f"用户上个月去过第{n}个城市。" for n in range(6)},
    }

    best = sharing_words("用户上个月登上了四姑娘山二峰。", candidates)

    assert best[0] == "mem_hike"


def test_what_most_say_is_no_reason():
    candidates = {f"mem_{n}": f"The user likes {what}." for n, what in enumerate("abcdef")}

    assert sharing_words("The user likes tea.", candidates) == []


@pytest.mark.parametrize(
    ("sharing", "shown"), [(MOST - 1, MOST - 1), (MOST, MOST), (MOST + 1, MOST)]
)
def test_so_many_are_shown(sharing, shown):
    alike = {f"mem_{n}": f"The user sold boat {n}." for n in range(sharing)}
    others = {f"mem_x{n}": f"The user met person {n}." for n in range(2 * sharing)}

    assert len(sharing_words("The user bought a boat.", alike | others)) == min(sharing, MOST)


def test_nothing_in_common_is_nothing_to_show():
    assert sharing_words("The user paints.", {"mem_1": "The user swims."}) == []
    assert sharing_words("The user paints.", {}) == []
