"""What each edit makes of a text: pure, and as an answer to a client."""

from httpx import AsyncClient

from tests.support.api import fields, ok, problem


class TestAnswers:
    async def test_each_edit_has_its_route(self, client: AsyncClient) -> None:
        made = ok(await client.post("/blocks", json={"label": "n", "value": "two"}), 201)
        path = f"/blocks/{made['block_id']}"

        said = [
            ok(await client.post(f"{path}/{verb}", json=body, headers={"If-Match": "*"}))["value"]
            for verb, body in (
                ("append", {"text": "four"}),
                ("insert", {"text": "three", "line": 1}),
                ("insert", {"text": "five"}),
                ("replace", {"old": "four", "new": "4"}),
                ("rewrite", {"value": ""}),
                ("append", {"text": "one"}),
            )
        ]

        assert said == [
            "two\nfour", "two\nthree\nfour", "two\nthree\nfour\nfive", "two\nthree\n4\nfive", "",
            "one",
        ]  # fmt: skip

    async def test_a_refusal_says_why_and_writes_nothing(self, client: AsyncClient) -> None:
        made = ok(await client.post("/blocks", json={"label": "n", "value": "a b a"}), 201)
        path = f"/blocks/{made['block_id']}"

        missing = await client.post(f"{path}/replace", json={"old": "c", "new": "d"})
        twice = await client.post(f"{path}/replace", json={"old": "a", "new": "d"})
        line = await client.post(f"{path}/insert", json={"text": "d", "line": 2})
        numbers = await client.post(f"{path}/append", json={"text": "2→ d"})

        assert problem(missing, 422, "text_not_found")["occurrences"] == 0
        assert problem(twice, 422, "text_not_unique")["occurrences"] == 2
        assert problem(line, 422, "line_out_of_range")["lines"] == 1
        assert fields(problem(numbers, 422, "line_numbers")) == ["body.text"]
        assert ok(await client.get(path)) == made

    async def test_an_empty_text_is_no_edit(self, client: AsyncClient) -> None:
        made = ok(await client.post("/blocks", json={"label": "n", "value": "a"}), 201)

        for verb, body, field in (
            ("append", {"text": ""}, "body.text"),
            ("insert", {"text": ""}, "body.text"),
            ("insert", {"text": "a", "line": -1}, "body.line"),
            ("replace", {"old": "", "new": "b"}, "body.old"),
        ):
            response = await client.post(f"/blocks/{made['block_id']}/{verb}", json=body)
            assert fields(problem(response, 422, "invalid_request")) == [field]
