"""Which memories share telling words with a statement, in both languages."""

import pytest

from app.memory.extraction.shared_words import (
    MOST,
    asked_vector,
    sharing_words,
    spoken_of,
    words_of,
)


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


class TestSpokenOf:
    @pytest.mark.parametrize(
        ("memory", "other", "about_it"),
        [
            ("用户在2024年和小王订婚了。", "用户在公司喜欢喝茶。", "用户和小王分手了。"),
            ("用户在2024年和小王订婚了。", "用户在2024年和小李去了北京。", "用户取消了订婚。"),
            ("用户有一个未婚妻。", "用户有一辆自行车。", "用户的未婚妻离开了他。"),
            (
                "The user got engaged to Ben in 2024.",
                "The user bought a bike in 2024.",
                "The user has broken up with Ben.",
            ),
            ("用户养猫。", "用户养鱼。", "用户的猫走丢了，养猫太难。"),
            ("The user owns 17 boats.", "The user has 17 cousins.", "The user sold his boats."),
            (
                "The user has three children.",
                "The user has three meetings today.",
                "The user's children live with Ben.",
            ),
            (
                "The user was born on 3 May.",
                "The user's dentist appointment is on 3 May.",
                "The user's passport says that he was born in June.",
            ),
        ],
    )
    def test_takes_more_than_a_subject_a_number_or_a_date(self, memory, other, about_it):
        assert spoken_of({"mem_1": memory}, [other]) == frozenset()
        assert spoken_of({"mem_1": memory}, [other, about_it]) == {"mem_1"}

    def test_what_most_memories_say_is_no_sign(self):
        memories = {f"mem_{n}": f"The user likes {what}." for n, what in enumerate(("tea", "ham"))}

        assert spoken_of(memories, ["The user likes tea."]) == {"mem_0"}

    def test_nothing_is_spoken_of_where_nothing_is_said(self):
        assert spoken_of({"mem_1": "The user likes tea."}, []) == frozenset()
