"""mem0's hosted API over HTTP: lists and their filters, changes, deletes, history."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.builders.factory import Factory
from app.errors import VersionConflictError
from app.identity.tenants.access import Principal
from app.integrations.mem0.change_service import Mem0ChangeService
from app.integrations.mem0.schemas import UpdateRequest
from app.memory.memories.edit_service import EditService
from app.memory.memories.schemas import MemoryRead
from app.memory.memories.service import MemoryService
from app.runtime import Runtime
from tests.exports.exports_support import principal_of
from tests.support.mem0 import mem0_client, store_text
from tests.support.rows import for_each
from tests.support.tenants import Caller, make_key

UNKNOWN = "01997b6a-5c7e-7f8a-9b0c-1d2e3f4a5b6c"


async def listed(mem0: AsyncClient, filters: object = None, **fields) -> set[str]:
    body = {"filters": {"user_id": "*"} if filters is None else filters} | fields
    response = await mem0.post("/v3/memories/", json=body)
    assert response.status_code == 200, response.text
    return {one["memory"] for one in response.json()["results"]}


TEA = "She drinks green tea in the morning."
COFFEE = "He drinks black coffee."
STAMPS = "He collects old stamps."


@pytest.fixture
async def three(mem0: AsyncClient) -> dict[str, str]:
    """Three memories, and their ids."""
    return {
        TEA: await store_text(
            mem0, TEA, user_id="ana", agent_id="helper", run_id="chat-1", app_id="shop",
            metadata={"topic": "tea", "rating": 5, "place": {"city": "Lisbon"}},
            timestamp=1700000000, expiration_date="2998-12-31",
        ),
        COFFEE: await store_text(
            mem0, COFFEE, user_id="bo", metadata={"topic": "coffee", "rating": 3}
        ),
        STAMPS: await store_text(mem0, STAMPS, user_id="bo", run_id="chat-2", app_id="desk"),
    }  # fmt: skip


FILTERS: list[tuple[object, set[str]]] = [
    ({"user_id": "bo"}, {COFFEE, STAMPS}),
    ({"user_id": ["ana", "bo"]}, {TEA, COFFEE, STAMPS}),
    ({"user_id": {"in": ["ana"]}}, {TEA}),
    ({"user_id": {"ne": "ana"}}, {COFFEE, STAMPS}),
    ({"user_id": "*"}, {TEA, COFFEE, STAMPS}),
    ({"agent_id": "*"}, {TEA}),
    ({"run_id": "chat-2"}, {STAMPS}),
    ({"app_id": "shop"}, {TEA}),
    ({"app_id": "*"}, {TEA, STAMPS}),
    ({"app_id": {"in": ["shop", "desk"]}}, {TEA, STAMPS}),
    ({"AND": [{"user_id": "bo"}, {"app_id": "*"}]}, {STAMPS}),
    ({"OR": [{"user_id": "ana"}, {"run_id": "chat-2"}]}, {TEA, STAMPS}),
    ({"NOT": [{"user_id": "ana"}, {"run_id": "chat-2"}]}, {COFFEE}),
    ({"NOT": {"user_id": "ana"}}, {COFFEE, STAMPS}),
    ({"AND": [{"user_id": "bo"}, {"NOT": [{"app_id": "desk"}]}]}, {COFFEE}),
    ({"metadata": {"topic": "tea"}}, {TEA}),
    ({"metadata": {"topic": {"ne": "tea"}}}, {COFFEE, STAMPS}),
    ({"metadata": {"topic": {"contains": "off"}}}, {COFFEE}),
    ({"metadata": {"rating": {"gte": 4}}}, {TEA}),
    ({"metadata": {"place": {"city": "Lisbon"}}}, {TEA}),
    ({"metadata": {"topic": "coffee", "rating": 3}}, {COFFEE}),
    ({"categories": {"in": ["fact"]}}, {TEA, COFFEE, STAMPS}),
    ({"categories": {"contains": "preference"}}, set()),
    ({"categories": {"contains": "preference", "in": ["fact"]}}, set()),
    ({"categories": {"in": ["fact", "preference"], "eq": "fact"}}, {TEA, COFFEE, STAMPS}),
    ({"app_id": {"ne": "*"}}, {COFFEE}),
    ({"user_id": {"eq": "bo", "ne": "*"}}, set()),
    ({"metadata": {"topic": {"ne": "*", "in": ["tea"]}}}, set()),
    ({"keywords": {"contains": "Drinks"}}, set()),
    ({"keywords": {"icontains": "DRINKS"}}, {TEA, COFFEE}),
    ({"created_at": {"lt": "2024-01-01"}}, {TEA}),
    ({"timestamp": {"gte": 1700000000, "lte": 1700000001}}, {TEA}),
    ({"created_at": {"gte": "2024-01-01T00:00:00Z"}}, {COFFEE, STAMPS}),
    ({"updated_at": {"gte": "2024-01-01"}}, {TEA, COFFEE, STAMPS}),
    ({"expiration_date": "2998-12-31"}, {TEA}),
    ({"expiration_date": {"lt": "2998-12-31"}}, set()),
    ({"expiration_date": {"lte": "2998-12-31"}}, {TEA}),
    ({}, {TEA, COFFEE, STAMPS}),
]

WRONG: list[object] = [
    {"colour": "red"},
    {"user_id": {"like": "a"}},
    {"user_id": {}},
    {"OR": []},
    {"AND": [{}]},
    {"NOT": "ana"},
    {"metadata": "tea"},
    {"created_at": {"gte": "soon"}},
    {"created_at": "0001-01-01T00:00+14:00"},
    {"created_at": "9999-12-31T23:00-14:00"},
    {"expiration_date": "tomorrow"},
    {"memory_ids": ["not-an-id"]},
    {"keywords": {"in": ["a"]}},
    {"categories": {"gt": "fact"}},
    {"categories": {}},
    {"user_id": 5},
]


class TestFilters:
    async def test_each_filter_chooses_its_memories(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        for filters, expected in FILTERS:
            assert await listed(mem0, filters) == expected, filters

    async def test_a_search_takes_the_same_filters(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        for filters, expected in FILTERS:
            response = await mem0.post(
                "/v3/memories/search/", json={"query": "Who drinks?", "filters": filters}
            )
            assert response.status_code == 200, filters
            assert {one["memory"] for one in response.json()["results"]} == expected, filters

    async def test_ids_choose_memories(self, mem0: AsyncClient, three: dict[str, str]) -> None:
        assert await listed(mem0, {"memory_ids": [three[TEA], three[STAMPS]]}) == {TEA, STAMPS}
        assert await listed(mem0, {"memory_ids": {"in": [three[TEA], UNKNOWN]}}) == {TEA}

    @for_each("filters", [str(number) for number in range(len(WRONG))])
    async def test_what_is_no_filter_is_refused(self, mem0: AsyncClient, filters: str) -> None:
        wrong = WRONG[int(filters)]
        for path, body in (
            ("/v3/memories/", {}),
            ("/v3/memories/search/", {"query": "tea"}),
        ):
            response = await mem0.post(path, json=body | {"filters": wrong})
            assert response.status_code == 400, wrong
            assert response.json()["detail"]

    async def test_filters_have_at_most_32_levels(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        for levels, status in ((31, 200), (32, 200), (33, 400), (200, 400)):
            filters: dict = {"user_id": "ana"}
            for _ in range(levels - 1):
                filters = {"AND": filters}
            asked = {"query": "Who drinks?", "filters": filters}
            for path in ("/v3/memories/", "/v3/memories/search/", "/v1/summary/"):
                body = asked if "search" in path else {"filters": filters}
                response = await mem0.post(path, json=body)
                assert response.status_code == status, (path, levels)

    async def test_fields_beside_filters_narrow_too(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        assert await listed(mem0, metadata={"topic": "tea"}) == {TEA}
        assert await listed(mem0, categories=["preference"]) == set()
        assert await listed(mem0, keywords="STAMPS") == {STAMPS}
        assert await listed(mem0, end_date="2024-01-01") == {TEA}
        assert await listed(mem0, start_date="2024-01-01") == {COFFEE, STAMPS}


class TestPages:
    async def test_pages_lead_to_their_neighbours(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        async def page(address: str) -> dict:
            return (await mem0.post(address, json={"filters": {"user_id": "*"}})).json()

        first = await page("/v3/memories/?page=1&page_size=2")
        second = await page(first["next"])
        whole = await page("/v3/memories/?page=1&page_size=3")

        assert (first["count"], first["previous"], second["next"]) == (3, None, None)
        assert first["results"] + second["results"] == whole["results"]
        assert (await page(second["previous"]))["results"] == first["results"]
        assert whole["next"] is None
        for number in (3, 9):
            beyond = await page(f"/v3/memories/?page={number}&page_size=2")
            assert beyond["results"] == []
            assert (await page(beyond["previous"]))["results"] == second["results"]

    async def test_limits_of_a_page(self, mem0: AsyncClient) -> None:
        for number in range(101):
            await store_text(mem0, f"She has seen film number {number}.", user_id="ana")
        body = {"filters": {"user_id": "ana"}}

        for query, status in (
            ("page_size=0", 400), ("page_size=1", 200), ("page_size=200", 200),
            ("page_size=201", 400), ("page=0", 400), ("page=1000001", 400),
        ):  # fmt: skip
            response = await mem0.post(f"/v3/memories/?{query}", json=body)
            assert response.status_code == status, query
        assert len((await mem0.post("/v3/memories/", json=body)).json()["results"]) == 100

    async def test_older_clients_get_a_list_without_a_page(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        whole = (await mem0.post("/v2/memories/", json={"user_id": "bo"})).json()
        page = (await mem0.post("/v2/memories/?page=1&page_size=1", json={"user_id": "bo"})).json()

        assert {one["memory"] for one in whole} == {COFFEE, STAMPS}
        assert (page["count"], len(page["results"])) == (2, 1)

    async def test_expired_memories_are_shown_when_asked_for(self, mem0: AsyncClient) -> None:
        await store_text(mem0, TEA, user_id="ana", expiration_date="2020-01-01")

        assert await listed(mem0) == set()
        assert await listed(mem0, show_expired=True) == {TEA}


class TestUpdate:
    async def test_text_metadata_and_dates_change(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        path = f"/v1/memories/{three[TEA]}/"
        shown = (await mem0.put(path, json={"text": "She drinks black tea."})).json()
        assert (shown["memory"], shown["metadata"]["topic"]) == ("She drinks black tea.", "tea")

        shown = (await mem0.put(path, json={"metadata": {"topic": "drinks"}})).json()
        assert (shown["metadata"], shown["app_id"]) == ({"topic": "drinks"}, "shop")

        shown = (await mem0.put(path, json={"expiration_date": "2997-01-01"})).json()
        assert shown["expiration_date"] == "2997-01-01"
        shown = (await mem0.put(path, json={"expiration_date": None})).json()
        assert shown["expiration_date"] is None
        assert (await mem0.get(path)).json() == shown

    async def test_what_changes_nothing_is_refused(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        path = f"/v1/memories/{three[TEA]}/"
        assert (await mem0.put(path, json={})).status_code == 400
        assert (await mem0.put(path, json={"expiration_date": "soon"})).status_code == 400
        assert (await mem0.put(path, json={"timestamp": "soon"})).status_code == 400
        missing = await mem0.put(f"/v1/memories/{UNKNOWN}/", json={"text": "It is gone."})
        assert (missing.status_code, missing.json()["error"]) == (404, "Memory not found!")

    async def test_a_key_that_only_reads_changes_nothing(
        self, app: FastAPI, acme: Caller, runtime: Runtime, three: dict[str, str]
    ) -> None:
        reader = await make_key(runtime, acme.tenant_id, "read")
        path = f"/v1/memories/{three[TEA]}/"
        async with mem0_client(app, reader.key) as opened:
            assert (await opened.put(path, json={"text": "No."})).status_code == 403
            assert (await opened.delete(path)).status_code == 403
            assert (await opened.delete("/v1/memories/?user_id=ana")).status_code == 403
            assert (await opened.get(path)).json()["memory"] == TEA


class TestHistory:
    async def test_every_change_is_an_entry(self, mem0: AsyncClient, three: dict[str, str]) -> None:
        path = f"/v1/memories/{three[TEA]}/"
        await mem0.put(path, json={"text": "She drinks black tea."})
        entries = (await mem0.get(f"{path}history/")).json()

        assert [one["event"] for one in entries] == ["ADD", "UPDATE"]
        added, updated = entries
        assert (added["old_memory"], added["new_memory"]) == (None, TEA)
        assert (updated["old_memory"], updated["new_memory"]) == (TEA, "She drinks black tea.")
        assert added["memory_id"] == updated["memory_id"] == three[TEA]
        assert (added["user_id"], added["metadata"]["topic"]) == ("ana", "tea")


class TestDelete:
    async def test_a_memory_is_deleted_once(self, mem0: AsyncClient, three: dict[str, str]) -> None:
        path = f"/v1/memories/{three[TEA]}/"
        done = await mem0.delete(path)
        assert done.json() == {"message": "Memory deleted successfully!"}
        assert (await mem0.delete(path)).status_code == 404
        assert await listed(mem0) == {COFFEE, STAMPS}

    async def test_what_a_memory_replaced_goes_with_it(
        self, mem0: AsyncClient, client: AsyncClient, three: dict[str, str]
    ) -> None:
        newest = f"mem_{three[TEA].replace('-', '')}"
        for content in ("She drinks white tea.", "She drinks black tea."):
            response = await client.post(f"/memories/{newest}/supersede", json={"content": content})
            assert response.status_code == 201, response.text
            newest = response.json()["memory_id"]

        done = await mem0.delete(f"/v1/memories/{newest}/?delete_linked=true")

        assert done.json()["cascade_count"] == 2
        assert (await mem0.get(f"/v1/memories/{three[TEA]}/")).status_code == 404

    async def test_all_of_one_user_are_deleted(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        assert (await mem0.delete("/v1/memories/?user_id=bo")).json()["deleted"] == 2
        assert await listed(mem0) == {TEA}

    @pytest.mark.parametrize(
        "query",
        [
            "filters={'AND': [{'user_id': 'bo'}, {'app_id': 'desk'}]}",
            'filters={"run_id": "chat-2"}',
            "app_id=desk",
            "user_id=bo&run_id=chat-2",
            "user_id=bo&metadata={'mem0_app_id': 'desk'}",
        ],
    )
    async def test_a_filter_in_the_query_is_read(
        self, mem0: AsyncClient, three: dict[str, str], query: str
    ) -> None:
        assert (await mem0.delete(f"/v1/memories/?{query}")).json()["deleted"] == 1
        assert await listed(mem0) == {TEA, COFFEE}

    @for_each(
        "query",
        [
            "", "filters=", "filters={}", "filters=everything", "filters={'user_id'",
            "filters=['bo']", "filters={'user_id': open('x')}", "filters={1: 'bo'}",
            "filters={'colour': 'red'}", "user_id=bo&filters={}", "user_id=bo&metadata=nothing",
            "unheard=1", "filters=" + "(" * 5000, "filters=" + "x" * 8001,
            "filters={'user_id': ('bo', 'ana')}", "filters={'user_id': {'bo'}}",
            "filters={'metadata': {'rating': {'lt': 1e999}}}", "metadata={'rating': 1e999}",
            "filters={'metadata': {'rating': {'lt': Infinity}}}", "metadata={1: 2}",
            "filters=" + '{"NOT":' * 250 + '{"user_id": "bo"}' + "}" * 250,
            "metadata=" + '{"a":' * 250 + "1" + "}" * 250,
            "user_id=bo&filters={'categories': {}}", "user_id=王/小明", "user_id=", "user_id=a/b",
            "agent_id=%E2%80%8B", "user_id=bo&run_id=", "user_id=bo&user_id=bo",
            "filters={'user_id': 'bo'}&filters={'user_id': 'bo', 'app_id': 'desk'}",
        ],
    )  # fmt: skip
    async def test_what_is_no_filter_deletes_nothing(
        self, mem0: AsyncClient, three: dict[str, str], query: str
    ) -> None:
        response = await mem0.delete(f"/v1/memories/?{query}")

        assert response.status_code == 400
        assert await listed(mem0) == {TEA, COFFEE, STAMPS}

    async def test_every_operator_of_a_field_counts(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        for filters in (
            "{'categories': {'contains': 'preference', 'in': ['fact']}}",
            "{'agent_id': {'eq': 'helper', 'ne': '*'}}",
        ):
            done = await mem0.delete("/v1/memories/", params={"filters": filters})
            assert done.json()["deleted"] == 0, filters
        assert await listed(mem0) == {TEA, COFFEE, STAMPS}

    async def test_a_delete_with_a_body_is_refused(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        path = "/v1/memories/?user_id=bo"
        filters = {"filters": {"app_id": "desk"}}
        assert (await mem0.request("DELETE", path, json=filters)).status_code == 400
        assert await listed(mem0) == {TEA, COFFEE, STAMPS}
        assert (await mem0.request("DELETE", path, json={})).json()["deleted"] == 2

    async def test_everything_takes_a_wildcard(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        assert (await mem0.delete("/v1/memories/?user_id=*")).json()["deleted"] == 3

    async def test_four_wildcards_take_what_has_no_agent_app_or_run_too(
        self, mem0: AsyncClient, three: dict[str, str]
    ) -> None:
        every = dict.fromkeys(("user_id", "agent_id", "app_id", "run_id"), "*")
        some = every | {"filters": '{"keywords": "nothing has this"}', "source": "CLI"}
        assert (await mem0.delete("/v1/memories/", params=some)).json()["deleted"] == 0
        done = (await mem0.delete("/v1/memories/", params=every)).json()
        assert done["deleted"] == len(three)

    async def test_a_bound_key_deletes_its_users_memories_alone(
        self, app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime, three: dict
    ) -> None:
        bound = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with mem0_client(app, bound.key) as ana:
            assert (await ana.delete("/v1/memories/?user_id=bo")).json()["deleted"] == 0
            assert (await ana.delete(f"/v1/memories/{three[COFFEE]}/")).status_code == 404
            assert (await ana.delete("/v1/memories/?user_id=*")).json()["deleted"] == 1
        assert await listed(mem0) == {COFFEE, STAMPS}


class ChangedMeanwhile:
    """Reads memories, each of which another request changes right after it was read."""

    def __init__(self, memories: MemoryService, client: AsyncClient, times: int) -> None:
        self._memories = memories
        self._client = client
        self._times = times

    async def get(self, principal: Principal, memory_id: str) -> MemoryRead:
        seen = await self._memories.get(principal, memory_id)
        if self._times:
            body = {"metadata": {"mem0_app_id": f"shop-{self._times}"}}
            assert (await self._client.patch(f"/memories/{memory_id}", json=body)).is_success
            self._times -= 1
        return seen


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_new_metadata_keep_the_app_that_another_request_has_set(
    runtime: Runtime, client: AsyncClient, mem0: AsyncClient, acme: Caller, times: int
) -> None:
    memory_id = await store_text(mem0, TEA, user_id="ana", app_id="shop")
    memories = ChangedMeanwhile(Factory(runtime).get(MemoryService), client, times)
    service = Mem0ChangeService(runtime.work, memories, Factory(runtime).get(EditService))  # type: ignore[arg-type]
    update = service.update(principal_of(acme), memory_id, UpdateRequest(metadata={"topic": "tea"}))

    if times == 2:
        with pytest.raises(VersionConflictError):
            await update
    else:
        shown = await update
        assert shown["app_id"] == ("shop-1" if times else "shop")
        assert shown["metadata"] == {"topic": "tea"}
