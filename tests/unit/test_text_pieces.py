"""A text is cut into pieces where a reader would pause, and nothing of it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.pieces import (
    MOST_ALONE,
    MOST_WORDS,
    cut_at_sentence,
    first_words,
    parts_within,
    piece_ends,
    piece_texts,
    word_count,
)

SENTENCE = "We talked about the move to Munich and the rent. "
PARTS = [
    SENTENCE, "我昨天搬到慕尼黑了。", "word ", "字", "# Plan\n", "- one item\n", "x = f(y)\n", ", ",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=20), max_size=60).map("".join)


def cut(text: str, most: int = MOST_WORDS, alone: int = MOST_ALONE) -> list[str]:
    return piece_texts(text, piece_ends(text, most, alone))


@pytest.mark.parametrize(("words", "pieces"), [(-1, 1), (0, 1), (1, 2)])
def test_sentences_of_at_most_the_limit_are_one_piece(words: int, pieces: int) -> None:
    assert len(cut("One two. " + "word " * (MOST_WORDS - 2 + words))) == pieces


@pytest.mark.parametrize(("words", "pieces"), [(-1, 1), (0, 1), (1, 2)])
def test_a_sentence_alone_may_be_longer(words: int, pieces: int) -> None:
    assert len(cut("word " * (MOST_ALONE + words))) == pieces


def test_an_empty_text_is_one_piece() -> None:
    assert piece_ends("") == [0]


def test_pieces_end_where_sentences_do() -> None:
    assert all(piece.endswith(SENTENCE) for piece in cut(SENTENCE * 20))


def test_a_list_is_cut_between_its_items() -> None:
    items = [f"{number}. Buy the ticket for the concert on the river.\n" for number in range(1, 20)]

    assert all(piece[0].isdigit() and piece.endswith("\n") for piece in cut("".join(items)))


def test_a_heading_stands_with_what_comes_behind_it() -> None:
    text = SENTENCE * 4 + "\n### Costs\n" + SENTENCE * 4

    assert not any(piece.rstrip().endswith("Costs") for piece in cut(text))


def test_a_long_sentence_is_cut_behind_a_comma() -> None:
    assert all(piece.rstrip().endswith(",") for piece in cut("we went to the lake, " * 30))


def test_chinese_is_cut_at_its_own_stops() -> None:
    text = "我上周三搬到了慕尼黑，住在城北的一个小公寓里。房租每个月一千二百欧元，离公司很近。" * 6

    pieces = cut(text)
    assert len(pieces) > 3
    assert all(piece.endswith("。") for piece in pieces)


@given(TEXTS, st.integers(2, 60), st.integers(0, 20))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, most: int, more: int) -> None:
    pieces = cut(text, most, most + more)

    assert "".join(pieces) == text
    # Two characters of a script without spaces are one word, of which a cut may make two halves.
    assert all(word_count(piece) <= most + more + 1 for piece in pieces)
    assert len(pieces) == 1 or all(pieces)


@pytest.mark.parametrize(("characters", "parts"), [(0, 1), (9, 1), (10, 1), (11, 2), (21, 3)])
def test_parts_have_at_most_so_many_characters(characters: int, parts: int) -> None:
    assert len(parts_within("字" * characters, 10)) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One two. Three go. Five.", ["One two. ", "Three go. ", "Five."]),
        ("One two\nThree\nFour", ["One two\n", "Three\nFour"]),
        ("One. Two three four", ["One. Two", " three four"]),
        ("one two three four", ["one two", " three four"]),
        ("我们都去了。他也去了，真的。好", ["我们都去了。", "他也去了，真的。好"]),
        ("x" * 25, ["x" * 11, "x" * 11, "xxx"]),
    ],
)
def test_parts_end_where_a_reader_would_pause(text: str, parts: list[str]) -> None:
    assert parts_within(text, 11) == parts


@given(TEXTS, st.integers(1, 80))
def test_parts_lose_nothing(text: str, longest: int) -> None:
    parts = parts_within(text, longest)

    assert "".join(parts) == text
    assert all(len(part) <= longest for part in parts)
    assert all(parts) or parts == [""]


WORDY = st.lists(
    st.sampled_from(["a.b", "don't ", "e.g. ", "User: ", ". ", "! ", "…", "。", "1/2-3 ", "\n"])
    | st.sampled_from(PARTS)
    | st.text(max_size=9),
    max_size=40,
).map("".join)


@given(WORDY, st.integers(0, 20))
def test_first_words_are_what_a_cut_by_their_number_leaves(text: str, most: int) -> None:
    assert first_words(text, most) == cut_at_sentence(text, lambda part: word_count(part) <= most)
