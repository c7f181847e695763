"""The content words of a text, in order, once each, without those that every text has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.function_words import content_words


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("What does she drink in the morning?", "drink morning"),
        ("tea, Tea and tea", "tea Tea"),
        ("Don't use e-mail at all!", "use e-mail"),
        ("What's at five o'clock? I’m sure she’d know.", "five o'clock sure know"),
        ("version 2.14.0", "version 2 14 0"),
        ("她喜欢喝什么茶?", "喜欢喝茶"),
        ("我的猫叫什么名字?", "猫叫名字"),
        ("她用 Python 写代码吗?", "用 Python 写代码"),
        ("猫猫", "猫猫"),
        ("日本語で書く", "日本語で書く"),
        ("Where is Zoë's café?", "Zoë's café"),
    ],
)
def test_words_of_its_own_are_left_in_order(text: str, own: str) -> None:
    assert content_words(text) == own


@pytest.mark.parametrize("text", ["", "   ", "?!", "what is it", "是的吗", "😀", "_"])
def test_a_text_without_any_is_empty(text: str) -> None:
    assert content_words(text) == ""


@given(st.text(max_size=200))
def test_content_text_is_made_of_words_of_the_text_and_stays_as_it_is(text: str) -> None:
    own = content_words(text)

    assert content_words(own) == own
    assert len(own) <= 2 * len(text)
    assert own == own.strip()
