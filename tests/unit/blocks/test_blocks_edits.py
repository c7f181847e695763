"""What each edit makes of a text: pure, and as an answer to a client."""

from time import process_time
from typing import Any

import pytest

from app.prompting.blocks.block_text import ShownBlock, edit_text, edited, render_block
from app.prompting.blocks.errors import (
    LineNumbersError,
    LineOutOfRangeError,
    TextNotFoundError,
    TextNotUniqueError,
)
from app.prompting.blocks.schemas import BlockAppend, BlockInsert, BlockReplace, BlockRewrite
from tests.support.threads import watched_threads


class TestAppend:
    @pytest.mark.parametrize(
        ("value", "result"),
        [("", "c"), ("a", "a\nc"), ("a\n", "a\nc"), ("a\n\n", "a\n\nc"), ("中", "中\nc")],
    )
    def test_appended_text_begins_a_line_of_its_own(self, value: str, result: str) -> None:
        assert edited(value, BlockAppend(text="c")) == result


class TestInsert:
    @pytest.mark.parametrize(
        ("value", "line", "result"),
        [
            ("a\nb", 0, "x\na\nb"),
            ("a\nb", 1, "a\nx\nb"),
            ("a\nb", 2, "a\nb\nx"),
            ("a\nb", None, "a\nb\nx"),
            ("a\nb\n", 2, "a\nb\nx"),
            ("a\r\nb", 1, "a\r\nx\nb"),
            ("\n\n", 1, "\nx\n\n"),
            ("", 0, "x"),
            ("", None, "x"),
        ],
    )
    def test_inserted_line_stands_after_the_line(
        self, value: str, line: int | None, result: str
    ) -> None:
        assert edited(value, BlockInsert(text="x", line=line)) == result

    @pytest.mark.parametrize(("value", "lines"), [("", 0), ("a", 1), ("a\nb", 2), ("a\nb\n", 2)])
    def test_there_is_no_line_behind_the_last(self, value: str, lines: int) -> None:
        edited(value, BlockInsert(text="x", line=lines))
        with pytest.raises(LineOutOfRangeError) as refused:
            edited(value, BlockInsert(text="x", line=lines + 1))

        assert refused.value.members["lines"] == lines

    @pytest.mark.parametrize("value", ["a\nb", "a\r\nb\n", "a\x0bb\u2028c", "", "\n"])
    def test_lines_are_counted_as_they_are_shown(self, value: str) -> None:
        block = ShownBlock("b", "l", value, 100, None, False, 1, None, False)
        lines = render_block(block, numbered=True).count("→")

        edited(value, BlockInsert(text="x", line=lines))
        with pytest.raises(LineOutOfRangeError):
            edited(value, BlockInsert(text="x", line=lines + 1))


class TestReplace:
    def test_what_occurs_once_is_replaced(self) -> None:
        edit = BlockReplace(old="住在慕尼黑", new="住在波恩")

        assert edited("安娜住在慕尼黑。", edit) == "安娜住在波恩。"

    def test_an_empty_text_takes_the_old_one_out(self) -> None:
        assert edited("a b c", BlockReplace(old=" b", new="")) == "a c"

    def test_letters_are_compared_as_they_are(self) -> None:
        for value in ("munich", "Munic\u0308h", "Mun ich"):
            with pytest.raises(TextNotFoundError):
                edited(value, BlockReplace(old="Munich", new="Bonn"))

    @pytest.mark.parametrize(
        ("value", "old", "count"), [("a a", "a", 2), ("aaa", "aa", 2), ("x\nx\nx", "x", 3)]
    )
    def test_what_occurs_more_often_is_refused_with_the_count(
        self, value: str, old: str, count: int
    ) -> None:
        with pytest.raises(TextNotUniqueError) as refused:
            edited(value, BlockReplace(old=old, new="y"))

        assert refused.value.members["occurrences"] == count
        assert f"{count} times" in refused.value.detail

    @pytest.mark.parametrize(
        ("there", "counted", "often"),
        [(19, 19, "occurs 19 times"), (20, 20, "occurs at least 20 times"),
         (21, 20, "occurs at least 20 times"), (9000, 20, "occurs at least 20 times")],
    )  # fmt: skip
    def test_the_count_ends_where_it_helps_no_more(
        self, there: int, counted: int, often: str
    ) -> None:
        with pytest.raises(TextNotUniqueError) as refused:
            edited("住 " * there, BlockReplace(old="住", new="y"))

        assert refused.value.members["occurrences"] == counted
        assert often in refused.value.detail

    def test_a_text_that_repeats_itself_is_soon_refused(self) -> None:
        """Counting all 50,001 places took 15 seconds."""
        started = process_time()
        with pytest.raises(TextNotUniqueError):
            edited("a" * 100_000, BlockReplace(old="a" * 50_000, new="b"))

        assert process_time() - started < 2

    def test_a_model_may_give_back_what_it_was_shown(self) -> None:
        edit = BlockReplace(old="a &lt; b", new="a &lt;= b")

        assert edited("if a < b", edit) == "if a <= b"

    def test_what_stands_there_written_out_is_left_so(self) -> None:
        edit = BlockReplace(old="&lt;", new="&gt;")

        assert edited("1 &lt; 2, 1 < 2", edit) == "1 &gt; 2, 1 < 2"


class TestLineNumbers:
    @pytest.mark.parametrize("text", ["1→ a", "a\n 12→b", "\t3→"])
    def test_text_that_carries_them_is_refused(self, text: str) -> None:
        for edit, field in (
            (BlockAppend(text=text), "text"),
            (BlockInsert(text=text), "text"),
            (BlockReplace(old=text, new="b"), "old"),
            (BlockReplace(old="a", new=text), "new"),
            (BlockRewrite(value=text), "value"),
        ):
            with pytest.raises(LineNumbersError) as refused:
                edited("a", edit)
            errors: Any = refused.value.members["errors"]
            assert errors[0]["location"] == ["body", field]

    @pytest.mark.parametrize("text", ["1. a", "Line 3: the bus", "from 1→2", "→", "1 → 2"])
    def test_other_numbers_are_text(self, text: str) -> None:
        assert edited("", BlockRewrite(value=text)) == text


class TestLongTexts:
    @pytest.mark.parametrize(
        ("value", "text", "aside"),
        [("a" * 1990, "b" * 10, False), ("a" * 1990, "b" * 11, True), ("a" * 2001, "b", True)],
    )
    async def test_they_are_edited_while_others_go_on(
        self, value: str, text: str, aside: bool
    ) -> None:
        edit = BlockAppend(text=text)

        with watched_threads() as ran:
            assert await edit_text(value, edit) == edited(value, edit)

        assert ran == ["edited"] * aside
