"""Memories through the public routes."""

from httpx import AsyncClient


async def save(client: AsyncClient, text: str, **fields) -> dict:
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    response = await client.post("/memories", json=body)
    assert response.status_code in {200, 201}, response.text
    return response.json()["results"][0]


class TestSave:
    async def test_a_statement_is_stored_as_given(self, client: AsyncClient) -> None:
        outcome = await save(client, "  She drinks green tea.  ", metadata={"topic": "tea"})

        assert outcome["event"] == "ADD"
        memory = (await client.get(f"/memories/{outcome['memory_id']}")).json()
        assert memory["content"] == "She drinks green tea."
        assert memory["metadata"] == {"topic": "tea"}
        assert (memory["scope"], memory["scope_id"], memory["tier"]) == ("user", "ana", "long")

    async def test_the_same_text_again_changes_nothing(self, client: AsyncClient) -> None:
        first = await save(client, "她早上喝绿茶")

        again = await save(client, "她早上喝绿茶　")

        assert (again["event"], again["memory_id"]) == ("NONE", first["memory_id"])


class TestSearch:
    async def test_the_nearest_statement_comes_first(self, client: AsyncClient) -> None:
        tea = await save(client, "She drinks green tea in the morning.")
        cat = await save(client, "The cat sleeps on the sofa.")

        response = await client.post(
            "/memories/search", json={"query": "green tea", "user_id": "ana"}
        )

        found = [hit["memory_id"] for hit in response.json()["results"]]
        assert found == [tea["memory_id"], cat["memory_id"]]

    async def test_another_tenants_memory_does_not_exist(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        tea = await save(client, "She drinks green tea.")

        response = await stranger.get(f"/memories/{tea['memory_id']}")

        assert response.status_code == 404
