"""Summaries of summaries, and how long one may be."""

from itertools import pairwise
from types import SimpleNamespace

from app.conversation.sessions.policy import WindowPolicy
from app.language.text.pieces import word_count
from tests.support.api import append, every_page
from tests.support.conversations import compact, policy, turns, window

POLICY = WindowPolicy()


def standing(*levels: int, tokens: int = 10):
    return [SimpleNamespace(level=level, tokens=tokens) for level in levels]


class TestFolding:
    async def test_sixteen_evictions_give_a_summary_of_level_two(self, client):
        await policy(client, "talk", budget_tokens=4000, automatic=False, summary_words=30)
        stood = []
        for number in range(17):
            await append(client, "talk", *turns(8, first=1 + 8 * number))
            answer = await compact(client, "talk", force=True, keep_messages=2)
            assert answer["compacted"], answer
            present = (await window(client, "talk"))["summary_ids"]
            rows = {
                one["summary_id"]: one
                for one in await every_page(client, "/sessions/talk/summaries")
            }
            stood.append([rows[one]["level"] for one in present])
            spans = [(rows[one]["from_seq"], rows[one]["to_seq"]) for one in present]
            assert spans[0][0] == 1
            assert all(later[0] == last[1] + 1 for last, later in pairwise(spans))
            assert spans[-1][1] == answer["evicted"]["to_seq"]
            assert {one for one, row in rows.items() if row["in_context"]} == set(present)

        assert stood[2] == [0, 0, 0]
        assert stood[3] == [1]
        assert stood[4] == [1, 0]
        assert stood[14] == [1, 1, 1, 0, 0, 0]
        assert stood[15] == [2]
        assert stood[16] == [2, 0]

    async def test_merged_summary_names_the_messages_it_covers(self, client):
        await policy(client, "talk", budget_tokens=4000, automatic=False, summary_words=30)
        parts = []
        for number in range(4):
            await append(client, "talk", *turns(8, first=1 + 8 * number))
            answer = await compact(client, "talk", force=True, keep_messages=2)
            parts.append(answer["summary"])

        [folded] = answer["folded"]
        assert folded["level"] == 1
        assert folded["reason"] == "fold"
        assert (folded["from_seq"], folded["to_seq"]) == (1, parts[-1]["to_seq"])
        assert folded["evicted_messages"] == sum(one["evicted_messages"] for one in parts)
        assert word_count(folded["content"]) <= 30
        assert [one["in_context"] for one in parts] == [True, True, True, False]
        assert [one["parent_id"] for one in parts] == [
            None, *(one["summary_id"] for one in parts[:-1]),
        ]  # fmt: skip
