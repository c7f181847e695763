"""Whole threads of LangGraph: deleted, copied, pruned, without what runs have put."""

from app.prompting.checkpoints.saver_thread_repository import Step, kept


class TestKeeping:
    """What pruning keeps, as arithmetic."""

    @staticmethod
    def step(name: str, parent: str | None = None, **fields) -> Step:
        namespace, _, checkpoint_id = name.rpartition("/")
        told = {"channels": (), "rebuilt": (), "outer": None} | fields
        return Step(
            namespace, checkpoint_id, parent,
            frozenset(told["channels"]), frozenset(told["rebuilt"]), told["outer"],
        )  # fmt: skip

    def kept(self, *steps: Step) -> list[str]:
        return sorted(f"{namespace}/{one}" for namespace, one in kept(steps))

    def test_nothing_of_nothing(self) -> None:
        assert self.kept() == []

    def test_the_newest_is_the_one_whose_id_sorts_last(self) -> None:
        assert self.kept(self.step("2"), self.step("10"), self.step("1")) == ["/2"]

    def test_the_call_of_a_subgraph_goes_with_the_step_that_made_it(self) -> None:
        steps = [
            self.step("1"), self.step("2", "1"),
            self.step("child:task/5", outer="1"), self.step("child:other/6", outer="2"),
            self.step("stays/7", outer="1"), self.step("child:new/8", outer="not saved yet"),
            self.step("child:alone/9"),
        ]  # fmt: skip

        assert self.kept(*steps) == [
            "/2", "child:alone/9", "child:new/8", "child:other/6", "stays/7",
        ]  # fmt: skip

    def test_a_channel_is_followed_back_to_its_value(self) -> None:
        steps = [
            self.step("1", channels=["a"]), self.step("2", "1", channels=["b"]),
            self.step("3", "2"), self.step("4", "3", rebuilt=["a", "b"]),
        ]  # fmt: skip

        assert self.kept(*steps) == ["/1", "/2", "/3", "/4"]
        assert self.kept(*steps[:3], self.step("4", "3", rebuilt=["b"])) == ["/2", "/3", "/4"]
        assert self.kept(*steps[:3], self.step("4", "3", rebuilt=["b"], channels=["b"])) == ["/4"]

    def test_a_chain_that_is_broken_or_closed_ends(self) -> None:
        assert self.kept(self.step("2", "gone", rebuilt=["a"])) == ["/2"]
        ring = [self.step("1", "2", rebuilt=["a"]), self.step("2", "1", rebuilt=["a"])]
        assert self.kept(*ring) == ["/1", "/2"]
