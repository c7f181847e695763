"""Two texts that say the same in other clothes have one hash; any other two do not."""

import sys
from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.normal_forms import content_hash, has_cjk, length, normalise

texts = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Likes   Tea ", "likes tea"),
        ("likes\u3000tea\u00a0and\u2003milk", "likes tea and milk"),
        ("ＬＩＫＥＳ　ｔｅａ", "likes tea"),
        ("Straße", "strasse"),
        ("ﬁsh", "fish"),
        ("cafe\u0301", "café"),
        ("我　住在\n北京", "我 住在 北京"),
        ("１２３", "123"),
        ("", ""),
        (" \t\u3000", ""),
    ],
    ids=[
        "runs of spaces",
        "unicode spaces",
        "full width",
        "sharp s",
        "ligature",
        "combining accent",
        "chinese with spaces",
        "full-width digits",
        "empty",
        "only spaces",
    ],
)
def test_clothes_are_taken_off(text, expected):
    assert normalise(text) == expected


@given(texts)
def test_normalising_twice_changes_nothing(text):
    once = normalise(text)
    assert normalise(once) == once


@pytest.mark.slow
def test_no_character_alone_or_after_a_mark_needs_a_second_round():
    """Every code point there is, so that no rare one is left to chance."""
    for point in range(sys.maxunicode + 1):
        for text in (chr(point), f"\u0301{chr(point)}", f"a{chr(point)}\u0345\u0300"):
            once = normalise(text)
            assert normalise(once) == once, f"{point:x}"


@given(texts)
def test_the_form_is_composed_and_has_no_outer_or_double_space(text):
    form = normalise(text)
    assert is_normalized("NFKC", form)
    assert form == form.strip()
    assert "  " not in form


@given(texts)
def test_case_and_spaces_do_not_change_the_hash(text):
    assert content_hash(f"\u3000{text}\n") == content_hash(text)
    assert len(content_hash(text)) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [("v1.2", "v12"), ("likes tea", "like tea"), ("喜欢茶", "不喜欢茶"), ("a b", "ab")],
)
def test_other_words_have_another_hash(one, other):
    assert content_hash(one) != content_hash(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("我叫张三", 4), ("  tea\u3000", 3), ("", 0), ("👍🏽", 2), ("𠮷野家", 3)],
)
def test_length_counts_code_points_after_trimming(text, expected):
    assert length(text) == expected


@pytest.mark.parametrize("text", ["我", "a我", "カナ", "ｶﾅ", "한국", "𠮷", "〇", "々"])
def test_cjk_is_seen(text):
    assert has_cjk(text)


@pytest.mark.parametrize("text", ["", "tea", "café", "чай", "，。！", "１２", "👍", "\u3000"])
def test_other_scripts_and_punctuation_are_not_cjk(text):
    assert not has_cjk(text)
