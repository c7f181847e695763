"""Pages of LangGraph's checkpoints end by their bytes too."""

from collections.abc import Mapping, Sequence

import pytest

from app.integrations.langgraph.pages import PAGE_BYTES, Values, chunks_of, fitting, whole
from app.prompting.checkpoints.models import SaverCheckpoint


class TestFitting:
    """The arithmetic of it."""

    @staticmethod
    def steps(*chunks: str) -> tuple[Sequence[SaverCheckpoint], Values]:
        """Steps with one channel, named by their chunks, a letter each."""
        made = [SaverCheckpoint(checkpoint_id=one, channels={"a": one}) for one in chunks]
        return made, {one: ("raw", [letter.encode() for letter in one]) for one in chunks}

    def fitting(self, sizes: Mapping[bytes, int], *chunks: str) -> list[str]:
        steps, values = self.steps(*chunks)
        return [one.checkpoint_id for one in fitting(steps, values, sizes)]

    @pytest.mark.parametrize(("beyond", "number"), [(-1, 2), (0, 2), (1, 1)])
    def test_a_page_is_full_and_not_more(self, beyond: int, number: int) -> None:
        sizes = {b"a": PAGE_BYTES // 2, b"b": PAGE_BYTES // 2 + beyond}

        assert self.fitting(sizes, "a", "ab") == ["a", "ab"][:number]

    def test_the_first_is_always_shown(self) -> None:
        assert self.fitting({b"a": 2 * PAGE_BYTES, b"b": 0}, "a", "b") == ["a"]
        assert self.fitting({}) == []

    def test_what_was_deleted_meanwhile_is_not_shown(self) -> None:
        steps, values = self.steps("ab", "b", "c")
        content = {b"b": b"", b"c": b""}

        assert whole(steps, values, content) == steps[1:]
        without = {digest: value for digest, value in values.items() if digest != "c"}
        assert whole(steps, without, content) == steps[1:2]
        assert chunks_of(steps, without) == {b"a", b"b"}
