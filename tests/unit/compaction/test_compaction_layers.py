"""Summaries of summaries, and how long one may be."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import EstimatedTokens
from app.language.text.pieces import cut_at_sentence, sentences, word_count
from app.prompting.compaction.eviction import (
    MERGED_AT_ONCE,
    SUMMARY_SHARE,
    SummaryLimits,
    SummaryMerge,
    next_merge,
)

POLICY = WindowPolicy()


def standing(*levels: int, tokens: int = 10):
    return [SimpleNamespace(level=level, tokens=tokens) for level in levels]


class TestFolding:
    @pytest.mark.parametrize(
        ("levels", "fold"),
        [
            ((), None),
            ((0, 0, 0), None),
            ((0, 0, 0, 0), SummaryMerge(0, 4, 1)),
            ((1, 0, 0, 0), None),
            ((1, 0, 0, 0, 0), SummaryMerge(1, 5, 1)),
            ((1, 1, 1, 1), SummaryMerge(0, 4, 2)),
            ((2, 1, 1, 1, 0, 0, 0), None),
            ((2, 1, 1, 1, 1, 0), SummaryMerge(1, 5, 2)),
        ],
    )
    def test_four_of_a_level_become_one_of_the_next(self, levels, fold):
        assert next_merge(standing(*levels), POLICY) == fold

    def test_summaries_that_fill_the_window_are_folded_early(self):
        """Else nothing would be left to evict, and it would run in a loop."""
        room = int(SUMMARY_SHARE * POLICY.budget_tokens)

        assert next_merge(standing(0, 0, tokens=room // 2), POLICY) is None
        assert next_merge(standing(0, 0, tokens=room // 2 + 1), POLICY) == SummaryMerge(0, 2, 1)
        assert next_merge(standing(1, 0, tokens=room), POLICY) == SummaryMerge(0, 2, 1)
        assert next_merge(standing(5, 2, 0, tokens=room), POLICY) == SummaryMerge(0, 3, 5)
        assert next_merge(standing(3, tokens=10 * room), POLICY) is None

    @given(st.integers(1, 300))
    def test_never_more_than_three_of_a_level_stand_beside_each_other(self, count):
        present = []
        for _ in range(count):
            present += standing(0)
            while (fold := next_merge(present, POLICY)) is not None:
                present[fold.start : fold.stop] = standing(fold.level)
            levels = [one.level for one in present]
            assert levels == sorted(levels, reverse=True)
            assert all(levels.count(level) < MERGED_AT_ONCE for level in levels)
        assert sum(4**one.level for one in present) == count


class TestWordLimit:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", 0),
            ("one", 1),
            ("one two-three, don't 12.5", 4),
            ("我", 1),
            ("我们", 1),
            ("我们住", 2),
            ("我 住在 Munich", 3),
            ("東京へ行きました", 4),
            ("안녕 세계", 2),
            ("…!?", 0),
        ],
    )
    def test_two_signs_count_as_one_word(self, text, words):
        assert word_count(text) == words

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("One. Two! Three?", ["One.", "Two!", "Three?"]),
            ("Dr. Smith paid 3.5 euros. J. R. left.", ["Dr. Smith paid 3.5 euros.", "J. R. left."]),
            ("你好。我来了！真的？是", ["你好。", "我来了！", "真的？", "是"]),
            ("“Really?” she said. Yes.", ["“Really?”", "she said.", "Yes."]),
            ("One\nTwo", ["One", "Two"]),
            ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
            ("   ", []),
        ],
    )
    def test_sentences_end_where_they_end(self, text, found):
        assert sentences(text) == found

    @pytest.mark.parametrize(
        ("words", "left", "shortened"),
        [
            (5, "One two. Three four five.", False),
            (4, "One two.", True),
            (2, "One two.", True),
            (1, "One…", True),
        ],
    )
    def test_what_is_too_long_is_cut_at_the_end_of_a_sentence(self, words, left, shortened):
        text = "One two. Three four five."

        cut = cut_at_sentence(text, lambda part: word_count(part) <= words)

        assert cut == (left, shortened)

    @given(st.text(max_size=300), st.integers(1, 40))
    def test_the_rest_is_a_beginning_that_fits(self, text, words):
        left, shortened = cut_at_sentence(text, lambda part: word_count(part) <= words)

        assert word_count(left) <= words
        assert text.strip().startswith(left.removesuffix("…") if shortened else left)
        assert shortened == (word_count(text) > words)

    @pytest.mark.parametrize(
        ("budget", "words", "limits"),
        [
            (4000, 100, SummaryLimits(100, 500)),
            (800, 100, SummaryLimits(100, 200)),
            (798, 100, SummaryLimits(99, 199)),
            (100, 100, SummaryLimits(12, 25)),
            (100, 10, SummaryLimits(10, 25)),
        ],
    )
    def test_a_small_budget_has_small_summaries(self, budget, words, limits):
        assert SummaryLimits.of(WindowPolicy(budget_tokens=budget, summary_words=words)) == limits

    def test_tokens_are_capped_too(self):
        digits = "1234567890 " * 9

        text, shortened = SummaryLimits(10, 20).applied(digits, EstimatedTokens())

        assert shortened
        assert EstimatedTokens().count(text) <= 20


@pytest.mark.parametrize("text", ["User: " + "a" * 500, "用户：" + "a" * 500])
def test_nothing_is_left_of_which_only_the_speaker_fits(text: str) -> None:
    assert cut_at_sentence(text, lambda part: len(part) <= 100) == ("", True)
