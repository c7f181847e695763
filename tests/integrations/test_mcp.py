"""POST /mcp with the official client: what a desktop does, and what each tool answers."""

import asyncio
import json

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from mcp import MCPError

from app.runtime import Runtime
from tests.support.api import append, ok, save
from tests.support.desktop import called, desktop, held, refused, told
from tests.support.tenants import Caller, make_key, make_tenant

READING = [
    "memory_context", "memory_search", "memory_list", "conversation_search", "message_read",
    "graph_neighbours",
]  # fmt: skip
WRITING = ["memory_save", "memory_update", "memory_delete"]
MODES = ["legacy", "auto"]


@pytest.fixture
async def ana(app: FastAPI, runtime: Runtime, acme: Caller):
    """A desktop of Ana's, with a key that is bound to her."""
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    async with held(app, key.key) as client:
        yield client


class TestDesktop:
    @pytest.mark.parametrize("mode", MODES)
    async def test_a_desktop_saves_finds_and_reads(self, app, runtime, acme, mode: str) -> None:
        """From the handshake to a resource, in the order in which a desktop asks."""
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with desktop(app, key.key, mode=mode) as client:
            version = {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
            assert client.protocol_version == version
            assert client.server_info.name == "kemem"
            assert "memory_context" in (client.instructions or "")
            tools = (await client.list_tools()).tools
            assert sorted(tool.name for tool in tools) == sorted(READING + WRITING)

            saved = await called(client, "memory_save", content="Ana is allergic to peanuts.")
            found = await called(client, "memory_search", query="What can Ana not eat?")
            assert [hit["memory_id"] for hit in found["items"]] == [saved["memory_id"]]

            resources = (await client.list_resources()).resources
            assert [str(one.uri) for one in resources] == ["kemem://users/ana/profile"]
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == [
                "kemem://users/{user_id}/profile", "kemem://blocks/{block_id}",
            ]  # fmt: skip
            [profile] = (await client.read_resource(str(resources[0].uri))).contents
            assert profile.mime_type == "text/plain"
            assert profile.text == "Nothing is remembered about the user yet."

    async def test_hints_tell_reading_tools_from_writing_ones(self, ana) -> None:
        tools = {tool.name: tool for tool in (await ana.list_tools()).tools}

        reads = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        replaces = {name for name, tool in tools.items() if tool.annotations.destructive_hint}
        assert reads == set(READING)
        assert replaces == {"memory_update", "memory_delete"}
        assert all(tool.annotations.idempotent_hint for tool in tools.values())
        assert not any(tool.annotations.open_world_hint for tool in tools.values())

    async def test_every_tool_takes_a_user_and_offers_nothing_it_cannot_do(self, ana) -> None:
        for tool in (await ana.list_tools()).tools:
            assert "user_id" in tool.input_schema["properties"]
            assert not {"scope", "number"} & tool.input_schema["properties"].keys()
            assert tool.output_schema["type"] == "object"


class TestTools:
    async def test_a_memory_is_corrected_and_forgotten(self, ana, client: AsyncClient) -> None:
        saved = await called(ana, "memory_save", content="Ana lives in Lisbon.")
        memory_id = saved["memory_id"]

        changed = await called(
            ana, "memory_update", memory_id=memory_id, content="Ana lives in Porto."
        )
        assert changed == {
            "memory_id": memory_id, "version": 2, "content": "Ana lives in Porto.",
        }  # fmt: skip
        listed = await called(ana, "memory_list")
        assert [one["content"] for one in listed["items"]] == ["Ana lives in Porto."]
        assert await called(ana, "memory_delete", memory_id=memory_id) == {"memory_id": memory_id}
        assert await told(ana, "memory_list") == "Nothing is remembered about the user yet."
        assert (await client.get(f"/memories/{memory_id}")).status_code == 404

    async def test_what_was_said_is_found_and_read(self, ana, client: AsyncClient) -> None:
        await append(client, "s1", "My sister Mia moved to Oslo in May.")

        found = await called(ana, "conversation_search", query="Where did Mia move to?")
        [hit] = found["items"]
        assert hit["text"] == "My sister Mia moved to Oslo in May."
        read = await called(ana, "message_read", message_id=hit["message_id"])
        assert "Mia moved to Oslo" in read["text"]
        assert read["session_id"] == "s1"

    async def test_a_message_set_apart_from_memory_is_not_read(self, ana, client) -> None:
        said = {"role": "system", "content": "Never tell anybody of Oslo.", "message_id": "m1"}
        await append(client, "s1", said)

        code, _ = await refused(ana, "message_read", message_id="m1")

        assert code == "message_not_found"

    async def test_a_context_holds_memories_and_what_was_said(self, ana, client) -> None:
        await called(ana, "memory_save", content="Ana drinks green tea in the morning.")
        await append(client, "s1", "I bought green tea from Kyoto yesterday.")

        text = (await called(ana, "memory_context", query="Which tea does she drink?"))["text"]

        assert "drinks green tea in the morning" in text
        assert "tea from Kyoto" in text

    async def test_the_context_of_a_session_is_that_of_the_service(self, ana, client) -> None:
        await called(ana, "memory_save", content="Ana drinks green tea in the morning.")
        await append(client, "s1", "Hello.")

        text = (await called(ana, "memory_context", query="tea", session_id="s1"))["text"]
        body = {"query": "tea", "render": "plain", "max_memory_tokens": 2000,
                "include": {"window": False}}  # fmt: skip
        built = ok(await client.post("/sessions/s1/context", json=body))

        assert text == built["prompt"]

    async def test_nothing_that_fits_is_said(self, ana) -> None:
        text = await told(ana, "memory_context", query="Which tea does she drink?")

        assert text.startswith("Nothing is remembered that fits.")

    async def test_neighbours_are_found_by_a_name(self, ana, client: AsyncClient) -> None:
        await save(client, "Ana works at Acme.")
        relation = {"source": "Ana", "relation": "works_at",
                    "destination": "Acme",
                    "user_id": "ana"}  # fmt: skip
        ok(await client.post("/graph/relations", json=relation), 201)

        shown = await called(ana, "graph_neighbours", name="Ana")
        text = await told(ana, "graph_neighbours", name="Ana")

        assert "Acme" in [one["name"] for one in shown["entities"]]
        assert "works_at" in [one["relation"] for one in shown["relations"]]
        assert "Ana works_at Acme" in text
        assert (await told(ana, "graph_neighbours", name="Zeno")).startswith("Nothing is known")

    async def test_a_profile_of_nobody_is_a_sentence(self, app, acme: Caller) -> None:
        async with desktop(app, acme.key) as client:
            [profile] = (await client.read_resource("kemem://users/nobody/profile")).contents

        assert profile.text == "Nothing is remembered about the user yet."


class TestRefusals:
    async def test_the_gate_says_what_to_do_instead(self, ana) -> None:
        code, sentence = await refused(ana, "memory_save", content="My password is Xy7!kk29Lq")

        assert code == "gate_rejected"
        assert "Do not send the same text again." in sentence

    async def test_a_memory_that_is_not_there(self, ana) -> None:
        code, sentence = await refused(ana, "memory_delete", memory_id="mem_no")

        assert (code, sentence[:30]) == ("memory_not_found", "There is no memory mem_no of t")

    @pytest.mark.parametrize(
        ("tool", "arguments", "said"),
        [
            ("memory_search", {"query": "tea", "k": 0}, "k: "),
            ("memory_search", {"query": "tea", "k": 51}, "k: "),
            ("memory_list", {"limit": 0}, "limit: "),
            ("memory_list", {"limit": 51}, "limit: "),
            ("memory_context", {"query": "tea", "max_tokens": 99}, "max_tokens: "),
            ("memory_context", {"query": "tea", "max_tokens": 8001}, "max_tokens: "),
            ("graph_neighbours", {"name": "Ana", "depth": 4}, "depth: "),
            ("graph_neighbours", {"name": "Ana", "limit": 51}, "limit: "),
            ("memory_search", {"query": "tea", "scope": "project"}, "scope: there is no such"),
            ("memory_save", {"content": "Tea.", "scope": "project"}, "scope: there is no such"),
            ("message_read", {"message_id": "m1", "number": 1}, "number: there is no such"),
            ("memory_search", {"query": "tea", "user_id": "a" * 65}, "user_id: "),
            ("memory_save", {}, "content: is required"),
            ("memory_save", {"content": "Tea.", "colour": "red"}, "colour: there is no such"),
        ],
    )
    async def test_wrong_arguments_are_named(self, ana, tool, arguments, said: str) -> None:
        code, sentence = await refused(ana, tool, **arguments)

        assert code == "refused"
        assert said in sentence

    @pytest.mark.parametrize("tool", READING + WRITING)
    async def test_a_refusal_lists_the_arguments_that_the_tool_offers(self, ana, tool: str) -> None:
        [offered] = [one for one in (await ana.list_tools()).tools if one.name == tool]

        _, sentence = await refused(ana, tool, colour="red")

        listed = sentence.rpartition("It takes ")[2].rstrip(".").split(", ")
        names = [name.removesuffix(" (required)") for name in listed]
        assert names == list(offered.input_schema["properties"])
        required = [name.removesuffix(" (required)") for name in listed if "(required)" in name]
        assert required == offered.input_schema["required"]

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("memory_search", {"query": "tea", "k": 1}),
            ("memory_search", {"query": "tea", "k": 50}),
            ("memory_list", {"limit": 1}),
            ("memory_list", {"limit": 50}),
            ("memory_context", {"query": "tea", "max_tokens": 100}),
            ("memory_context", {"query": "tea", "max_tokens": 8000}),
            ("graph_neighbours", {"name": "Ana", "depth": 3, "limit": 50}),
        ],
    )
    async def test_arguments_at_their_limits_are_taken(self, ana, tool, arguments) -> None:
        await called(ana, "memory_save", content="Ana drinks green tea in the morning.")

        await called(ana, tool, **arguments)

    async def test_an_unknown_tool_is_an_error_of_the_protocol(self, ana) -> None:
        with pytest.raises(MCPError) as failed:
            await ana.call_tool("memory_purge", {})

        assert failed.value.error.code == -32602
        assert "memory_search" in failed.value.error.message

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("uri", ["kemem://blocks/blk_no", "kemem://elsewhere", "file:///etc"])
    async def test_an_unknown_resource_is_an_error_of_the_protocol(
        self, app, acme, mode: str, uri: str
    ) -> None:
        async with desktop(app, acme.key, mode=mode) as client:
            with pytest.raises(MCPError) as failed:
                await client.read_resource(uri)

        assert failed.value.error.code == {"legacy": -32002, "auto": -32602}[mode]
        assert failed.value.error.data["code"] in {"block_not_found", "resource_not_found"}


class TestLargeResults:
    async def test_a_list_goes_on_where_it_ended(self, ana, client: AsyncClient) -> None:
        texts = [f"Ana was born in {1900 + n}, says source {n}." for n in range(7)]
        written = [(await save(client, text))["memory_id"] for text in texts]

        read: list[str] = []
        cursor = None
        while True:
            page = await called(ana, "memory_list", limit=3, cursor=cursor)
            read += [one["memory_id"] for one in page["items"]]
            cursor = page.get("next_cursor")
            if cursor is None:
                break

        assert read == written[::-1]

    async def test_answers_end_before_they_are_too_long(self, ana, client: AsyncClient) -> None:
        """Of memories that are as long as they may be, a page holds few, and the text says so."""
        count = 24
        for number in range(count):
            await save(client, f"Trip {number}: " + f"Ana saw harbour {number} at dawn. " * 55)

        for tool, arguments in [
            ("memory_list", {"limit": 50}),
            ("memory_search", {"query": "harbour at dawn", "k": 50}),
        ]:
            result = await ana.call_tool(tool, arguments)
            items = result.structured_content["items"]
            assert 0 < len(items) < count
            assert "There is more" in result.content[0].text
            # 4,000 tokens of some four letters; the data hold no more items than the text.
            assert len(result.content[0].text) < 30_000
            assert len(json.dumps(result.structured_content)) < 45_000

    async def test_a_long_message_is_cut_and_read_on(self, ana, client: AsyncClient) -> None:
        lines = " ".join(f"In harbour {number} the ship waited a day." for number in range(400))
        await append(client, "s1", f"My harbour report. {lines}")

        [hit] = (await called(ana, "conversation_search", query="harbour report"))["items"]
        assert len(hit["text"]) < 30_000
        pieces, offset = "", 0
        while offset is not None:
            read = await called(ana, "message_read", message_id=hit["message_id"], offset=offset)
            assert len(read["text"]) < 30_000
            pieces += read["text"]
            offset = read.get("next_offset")
        assert "In harbour 0 the" in pieces
        assert "In harbour 399 the" in pieces


class TestResources:
    async def test_blocks_are_listed_in_pages_and_read(self, app, acme, client) -> None:
        made = [
            ok(await client.post("/blocks", json={"label": f"b{n}", "value": f"Text {n}."}), 201)
            for n in range(51)
        ]
        async with desktop(app, acme.key) as desk:
            first = await desk.list_resources()
            rest = await desk.list_resources(cursor=first.next_cursor)
            uris = [str(one.uri) for one in (*first.resources, *rest.resources)]
            [text] = (await desk.read_resource(uris[-1])).contents

        assert len(first.resources) == 50
        assert rest.next_cursor is None
        assert sorted(uris) == sorted(f"kemem://blocks/{one['block_id']}" for one in made)
        assert text.text == "Text 0."

    async def test_the_profile_is_that_of_a_context(self, ana, client: AsyncClient) -> None:
        await save(client, "Ana drinks green tea.")
        headers = {"If-Match": "*"}
        body = {"sections": {"work_context": "Ana is a sailor."}}
        patch = await client.patch("/users/ana/profile", json=body, headers=headers)
        assert patch.status_code == 200, patch.text

        [profile] = (await ana.read_resource("kemem://users/ana/profile")).contents

        assert "Ana is a sailor." in profile.text


class TestKeys:
    async def test_a_reading_key_sees_and_calls_reading_tools_alone(
        self, app, runtime, acme, client
    ) -> None:
        memory_id = (await save(client, "Ana drinks green tea."))["memory_id"]
        key = await make_key(runtime, acme.tenant_id, "read")
        async with desktop(app, key.key) as reader:
            assert sorted(tool.name for tool in (await reader.list_tools()).tools) == sorted(
                READING
            )
            for tool, arguments in [
                ("memory_save", {"content": "Ana likes rain."}),
                ("memory_update", {"memory_id": memory_id, "content": "Ana likes rain."}),
                ("memory_delete", {"memory_id": memory_id}),
            ]:
                code, sentence = await refused(reader, tool, user_id="ana", **arguments)
                assert (code, "`write`" in sentence) == ("insufficient_scope", True)
            listed = await called(reader, "memory_list", user_id="ana")

        assert [one["content"] for one in listed["items"]] == ["Ana drinks green tea."]

    async def test_a_bound_key_stays_with_its_user(self, ana, client: AsyncClient) -> None:
        memory_id = (await save(client, "Ben likes rain.", user_id="ben"))["memory_id"]

        for tool, arguments in [
            ("memory_list", {"user_id": "ben"}),
            ("memory_save", {"user_id": "ben", "content": "Ben likes snow."}),
        ]:
            assert (await refused(ana, tool, **arguments))[0] == "user_not_found"
        for tool, arguments in [
            ("memory_delete", {"memory_id": memory_id}),
            ("memory_update", {"memory_id": memory_id, "content": "Ben likes snow."}),
        ]:
            assert (await refused(ana, tool, **arguments))[0] == "memory_not_found"
        with pytest.raises(MCPError):
            await ana.read_resource("kemem://users/ben/profile")

    async def test_a_key_of_nobody_names_the_user(self, app, acme) -> None:
        async with desktop(app, acme.key) as client:
            code, _ = await refused(client, "memory_save", content="Ana drinks green tea.")
            assert code == "user_required"
            await called(client, "memory_save", content="Ana drinks green tea.", user_id="ana")
            assert len((await called(client, "memory_list", user_id="ana"))["items"]) == 1
            assert (await called(client, "memory_list", user_id="ben"))["items"] == []

    async def test_a_key_of_nobody_works_for_the_named_user_alone(self, app, acme, client) -> None:
        memory_id = (await save(client, "Ben likes rain.", user_id="ben"))["memory_id"]
        said = {"role": "user", "content": "I like rain.", "message_id": "m1"}
        await append(client, "s2", said, user_id="ben")

        async with desktop(app, acme.key) as desk:
            for tool, arguments, code in [
                ("memory_delete", {"memory_id": memory_id}, "memory_not_found"),
                ("memory_update", {"memory_id": memory_id, "content": "Snow."}, "memory_not_found"),
                ("message_read", {"message_id": "m1"}, "message_not_found"),
            ]:
                assert (await refused(desk, tool, user_id="ana", **arguments))[0] == code
            assert "I like rain." in await told(
                desk, "message_read", user_id="ben", message_id="m1"
            )

    async def test_a_header_names_the_user(self, app, acme) -> None:
        async with desktop(app, acme.key, **{"KeMem-User": "ana"}) as client:
            await called(client, "memory_save", content="Ana drinks green tea.")
            assert (await refused(client, "memory_list", user_id="ben"))[0] == "user_not_found"

    async def test_two_tenants_at_once_see_their_own(self, app, runtime, acme) -> None:
        other = await make_tenant(runtime, "Other")
        answers: dict[str, list[str]] = {}

        async def work(caller: Caller, name: str) -> None:
            async with desktop(app, caller.key) as client:
                for number in range(5):
                    content = f"{name} has house number {number}."
                    await called(client, "memory_save", content=content, user_id="ana")
                found = await called(client, "memory_list", user_id="ana")
                answers[name] = [one["content"] for one in found["items"]]

        await asyncio.gather(work(acme, "Acme"), work(other, "Other"))

        assert {name: len(said) for name, said in answers.items()} == {"Acme": 5, "Other": 5}
        for name, said in answers.items():
            assert all(one.startswith(name) for one in said)
