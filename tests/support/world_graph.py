"""A row of every kind in the graph: entities, an alias, relations, a mention, a merge."""

from typing import Any

from httpx import AsyncClient


async def relate(client: AsyncClient, user_id: str, memory_id: str) -> dict[str, str]:
    """Somebody's graph, in which two entities were merged; ids for the paths of the API."""

    async def state(source: str, relation: str, destination: str) -> dict[str, Any]:
        body = {"source": source, "relation": relation, "destination": destination}
        response = await client.post(
            "/graph/relations", json=body | {"user_id": user_id, "memory_ids": [memory_id]}
        )
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    moved = await state("Ana", "moved_to", "Munich")
    twin = await state("Ana Maria", "likes", "maples")
    entity_id = moved["source"]["entity_id"]
    merged = await client.post(
        f"/graph/entities/{entity_id}/merge",
        json={"entity_ids": [twin["source"]["entity_id"]]},
    )
    assert merged.is_success, merged.text
    return {
        "entity_id": entity_id,
        "other_entity_id": moved["destination"]["entity_id"],
        "relation_id": moved["relation_id"],
        "change_id": merged.json()["change_id"],
    }
