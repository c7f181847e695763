import pytest

from app.language.text.sensitive import stop_words

FOUND = stop_words(["Password", "项目代号", "  ", "c++"])


@pytest.mark.parametrize(
    "text",
    [
        "my password is gone",
        "PASSWORD!",
        "ｐａｓｓｗｏｒｄ",
        "这是项目代号的事",
        "I write C++.",
        "(password)",
    ],
)
def test_a_word_is_found_in_whatever_case_and_width(text):
    assert FOUND(text)


@pytest.mark.parametrize("text", ["passwords", "a passwordless login", "项目的代号", "c+", ""])
def test_part_of_a_latin_word_is_another_word(text):
    assert not FOUND(text)


def test_no_words_find_nothing():
    assert not stop_words([])("anything")
