"""Pages of LangGraph's checkpoints end by their bytes too."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.integrations.langgraph.pages import PAGE_BYTES, Listed, first_chunks
from app.prompting.checkpoints.models import SaverCheckpoint, SaverWrite


class TestFitting:
    """The arithmetic of it."""

    @staticmethod
    def listed(*chunks: str, written: str = "") -> Listed:
        """Steps with one channel, named by their chunks, a letter each; writes of the first."""
        own = {"session_id": "s", "namespace": ""}
        made = [SaverCheckpoint(**own, checkpoint_id=one, channels={"a": one}) for one in chunks]
        values = {one: ("raw", [letter.encode() for letter in one]) for one in chunks}
        pieces = [letter.encode() for letter in written] or None
        writes = [SaverWrite(**own, checkpoint_id=one, chunks=pieces) for one in chunks[:1]]
        return Listed(made, values, writes)

    def fitting(self, sizes: Mapping[bytes, int], *chunks: str, written: str = "") -> list[str]:
        listed = self.listed(*chunks, written=written)
        return [one.checkpoint_id for one in listed.first(listed.fitting(sizes)).steps]

    @pytest.mark.parametrize(("beyond", "number"), [(-1, 2), (0, 2), (1, 1)])
    def test_a_page_is_full_and_not_more(self, beyond: int, number: int) -> None:
        sizes = {b"a": PAGE_BYTES // 2, b"b": PAGE_BYTES // 2 + beyond}

        assert self.fitting(sizes, "a", "ab") == ["a", "ab"][:number]
        assert self.fitting(sizes, "a", "", written="b") == ["a", ""][:number]
        assert self.fitting(sizes | {b"c": 2}, "a", "c", written="b") == ["a"]

    def test_the_first_is_always_shown(self) -> None:
        assert self.fitting({b"a": 2 * PAGE_BYTES, b"b": 0}, "a", "b") == ["a"]
        assert self.fitting({}) == []

    def test_what_was_deleted_meanwhile_is_not_shown(self) -> None:
        listed = self.listed("ab", "b", "c")

        assert listed.whole([b"b", b"c"]) == listed.steps[1:]
        without = {digest: value for digest, value in listed.values.items() if digest != "c"}
        assert replace(listed, values=without).whole([b"a", b"b", b"c"]) == listed.steps[:2]
        assert self.listed("b", written="c").whole([b"b"]) == []

    @pytest.mark.parametrize(("beyond", "number"), [(-1, 2), (0, 2), (1, 1)])
    def test_first_chunks_that_fit_are_read(self, beyond: int, number: int) -> None:
        sizes = {b"a": PAGE_BYTES // 2, b"b": PAGE_BYTES // 2 + beyond}

        assert first_chunks([b"a", b"b"], sizes) == number
        assert first_chunks([b"gone", b"a"], sizes) == 2
        assert first_chunks([b"b"], {b"b": 2 * PAGE_BYTES}) == 1
        assert first_chunks([], sizes) == 0
