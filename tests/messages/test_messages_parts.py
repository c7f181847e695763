"""Messages with images, audio and files, from the append to what the model sees of them."""

from base64 import b64encode
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.llm.media_tokens import LOW_DETAIL, TILE, UNKNOWN_IMAGE
from app.language.llm.tokens import OVERHEAD, EstimatedTokens
from tests.support.api import append, execute, fields, ok, problem
from tests.support.excerpts import context, excerpt_lines, opened, said
from tests.support.images import IMAGES
from tests.support.tenants import Caller
from tests.support.tools import called

PNG = IMAGES["png"]
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
BY_URL = {"type": "image_url", "image_url": {"url": "https://kemem.invalid/dog.png"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
LEASE = {
    "type": "file",
    "file": {"filename": "lease.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="},
}
ASKED = {"type": "text", "text": "Which breed is the dog on this photograph?"}
HIS = {"type": "text", "text": "His name is Rex."}
DOG = [ASKED, PICTURE, HIS]
ANTHROPICS = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {"type": "document", "title": "lease.pdf", "source": {"type": "url", "url": "https://a/b.pdf"}},
]
RESPONSES = [
    {"type": "input_text", "text": "See"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
    {"type": "input_file", "file_id": "file-1"},
    {"type": "output_text", "text": "Seen"},
]
UNKNOWN = [{"type": "hologram", "hologram": {"depth": 3}}, {"kind": "?"}]


def with_parts(*parts: dict[str, Any], role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts), **more}


async def search(client: AsyncClient, query: str, **body: Any) -> list[dict[str, Any]]:
    asked = {"query": query, "user_id": "ana", "mode": "lexical"} | body
    return ok(await client.post("/messages/search", json=asked))["items"]


class TestStored:
    @pytest.mark.parametrize(
        "parts",
        [DOG, [PICTURE], [SOUND, LEASE], ANTHROPICS, RESPONSES, UNKNOWN],
        ids=["mixed", "image alone", "audio and file", "Anthropic", "Responses", "unknown"],
    )
    async def test_parts_come_back_as_they_came(
        self, client: AsyncClient, parts: list[dict[str, Any]]
    ) -> None:
        [stored] = (await append(client, "s1", with_parts(*parts)))["messages"]

        shown = ok(await client.get(f"/sessions/s1/messages/{stored['message_id']}"))
        [listed] = ok(await client.get("/sessions/s1/messages"))["items"]
        kept = await context(client, render="parts")

        assert stored["content_parts"] == shown["content_parts"] == parts
        assert listed["content_parts"] == kept["messages"][0]["content_parts"] == parts

    @pytest.mark.parametrize(("over", "status"), [(-1, 201), (0, 201), (1, 413)])
    async def test_a_part_may_be_as_large_as_a_request(
        self, client: AsyncClient, over: int, status: int
    ) -> None:
        url = {"url": "data:image/png;base64,"}
        body = {"user_id": "ana", "messages": [with_parts({"type": "image_url", "image_url": url})]}
        empty = client.build_request("POST", "/sessions/s1/messages", json=body)
        url["url"] += "A" * (2 * 1024 * 1024 - len(empty.content) + over)

        answer = await client.post("/sessions/s1/messages", json=body)

        assert answer.status_code == status
        if status == 201:
            assert answer.json()["messages"][0]["content_parts"][0]["image_url"] == url

    async def test_what_cannot_be_stored_is_refused_by_its_place(self, client: AsyncClient) -> None:
        deep: dict[str, Any] = {"type": "image"}
        for _ in range(9):
            deep = {"source": deep}

        for wrong in ({"type": "text", "text": "a\x00b"}, deep):
            answer = await client.post(
                "/sessions/s1/messages",
                json={"user_id": "ana", "messages": [with_parts(HIS, wrong)]},
            )

            found = fields(problem(answer, 422, "invalid_request"))
            assert found == ["body.messages.0.content_parts.1"]

    @pytest.mark.parametrize(("count", "status"), [(49, 201), (50, 201), (51, 422)])
    async def test_a_message_has_at_most_50_parts(
        self, client: AsyncClient, count: int, status: int
    ) -> None:
        body = {"user_id": "ana", "messages": [with_parts(*[BY_URL] * count)]}

        assert (await client.post("/sessions/s1/messages", json=body)).status_code == status

    async def test_a_secret_in_a_part_is_told(self, client: AsyncClient) -> None:
        text = {"type": "text", "text": "My card is 4111 1111 1111 1111."}

        told = await append(client, "s1", with_parts(PICTURE, text))

        assert list(told["sensitive"].values()) == [["payment_card"]]


class TestCounted:
    async def test_an_image_counts_by_its_size(self, client: AsyncClient) -> None:
        count = EstimatedTokens().count

        for number, (part, tokens) in enumerate(
            [
                (PICTURE, LOW_DETAIL + TILE),
                (RESPONSES[1], LOW_DETAIL),
                (BY_URL, UNKNOWN_IMAGE),
                (SOUND, 1),
                ({"type": "hologram", "data": PNG * 100}, count("[hologram]")),
            ]
        ):
            told = await append(client, f"s{number}", with_parts(part))

            assert told["pressure"]["tokens"] == OVERHEAD + tokens


class TestRendered:
    async def test_each_dialect_gets_its_own_form_in_order(self, client: AsyncClient) -> None:
        told = await append(client, "s1", with_parts(*DOG, LEASE, SOUND, message_id="m1"))
        assert told["messages"][0]["message_id"] == "m1"

        openai = await context(client)
        anthropic = await context(client, render="anthropic")
        plain = await context(client, render="plain")

        assert openai["messages"][-1]["content"] == [*DOG, LEASE, SOUND]
        assert anthropic["messages"][0]["content"] == [
            ASKED,
            ANTHROPICS[0],
            HIS,
            {
                "type": "document",
                "source": {
                    "type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ=",
                },
                "title": "lease.pdf",
            },
            {"type": "text", "text": "[audio, wav, 4 bytes, message m1]"},
        ]  # fmt: skip
        assert (
            f"user: {ASKED['text']} [image, png, 1 kB, message m1] {HIS['text']} "
            "[file, lease.pdf, 8 bytes, message m1] [audio, wav, 4 bytes, message m1]"
        ) in plain["prompt"].replace(_size(), "1 kB")

    async def test_an_image_that_does_not_fit_the_window_is_named(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", with_parts(ASKED, BY_URL, HIS, message_id="m1"))
        alone = {"memories": False, "corrections": False, "excerpts": False}

        async def shown(tokens: int, render: str = "openai") -> Any:
            return await context(client, include=alone, window_tokens=tokens, render=render)

        whole = (await shown(4000))["window"]["tokens"]
        assert whole > UNKNOWN_IMAGE
        name = {"type": "text", "text": "[image, https://kemem.invalid/dog.png, message m1]"}
        for tokens, image in ((whole + 1, BY_URL), (whole, BY_URL), (whole - 1, name)):
            answer = await shown(tokens)
            assert answer["messages"] == [{"role": "user", "content": [ASKED, image, HIS]}]
            assert answer["window"]["fits"]
            assert answer["window"]["tokens"] <= tokens
        anthropic = await shown(whole - 1, "anthropic")
        assert anthropic["messages"][0]["content"] == [ASKED, name, HIS]

    async def test_the_newest_image_of_a_long_turn_is_shown(self, client: AsyncClient) -> None:
        steps: list[dict[str, Any]] = [said("user", "Click on the button.")]
        for number in range(6):
            call = {"id": f"c{number}", "function": {"name": "look", "arguments": "{}"}}
            steps.append({"role": "assistant", "content": "", "tool_calls": [call]})
            steps.append(with_parts(BY_URL, role="tool", tool_call_id=f"c{number}"))
        await append(client, "s1", *steps)
        alone = {"memories": False, "corrections": False, "excerpts": False}

        answer = await context(client, include=alone, window_tokens=1500, render="parts")

        results = [
            one["content_parts"] or one["content"]
            for one in answer["messages"]
            if one["role"] == "tool"
        ]
        assert results[-1] == [BY_URL]
        assert answer["window"]["fits"]
        assert answer["tokens"] <= 1500
        for older in results[:-1]:
            assert "left out" in str(older) or "[image, https://kemem" in str(older)

    async def test_what_is_sent_with_the_request_is_rendered_too(self, client: AsyncClient) -> None:
        await opened(client)
        body = {"messages": [with_parts(*ANTHROPICS[:1], HIS)]}

        answer = await context(client, **body)

        assert answer["messages"] == [{"role": "user", "content": [PICTURE, HIS]}]
        assert answer["window"]["tokens"] > LOW_DETAIL + TILE


def _size() -> str:
    """The image in bytes, as a placeholder says it."""
    return f"{len(PNG) * 3 // 4 - PNG.count('=')} bytes"


class TestFound:
    async def test_a_message_with_an_image_is_found_by_its_text_and_shown_without_data(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", with_parts(*DOG, BY_URL, message_id="m1"))

        [hit] = await search(client, "Rex")

        name = {"type": "text", "text": f"[image, png, {_size()}, message m1]"}
        assert hit["content_parts"] == [ASKED, name, HIS, BY_URL]

    async def test_a_file_is_found_by_its_name_and_an_image_by_being_one(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", with_parts(LEASE), said("assistant", "Thank you."))
        await append(client, "s2", with_parts(PICTURE))

        assert [hit["session_id"] for hit in await search(client, "lease.pdf")] == ["s1"]
        assert [hit["session_id"] for hit in await search(client, "the image")] == ["s2"]
        assert await search(client, PNG[:40]) == []

    async def test_base64_in_a_text_is_not_read(self, client: AsyncClient) -> None:
        words = b64encode(b"x" * 30_000).decode()
        text = f"The lighthouse ![l](data:image/png;base64,{words}) stands in Dover."

        told = await append(client, "s1", text)

        assert told["messages"][0]["content"] == text
        [hit] = await search(client, "Dover lighthouse")
        assert hit["piece"] is None
        assert hit["content"] == text
        assert await search(client, "eHh4") == []
        await opened(client, "s2")
        answer = await context(client, "s2", query="Where is the lighthouse?")
        assert excerpt_lines(answer)[1:] == [
            "1 user: The lighthouse ![l]([image, png, 30 kB]) stands in Dover."
        ]

    async def test_an_excerpt_names_what_came_with_it(self, client: AsyncClient) -> None:
        await append(client, "s1", with_parts(*DOG), with_parts(LEASE))
        await opened(client, "s2")

        answer = await context(client, "s2", query="Which breed is Rex on the photograph?")

        assert [line.strip() for line in excerpt_lines(answer)[1:]] == [
            f"1 user: {ASKED['text']}", HIS["text"], "[image, png]", "2 user: [file, lease.pdf]",
        ]  # fmt: skip

    async def test_an_excerpt_reads_no_image(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """A hundred of a megabyte made a context eight times as slow."""
        base64 = f"Rex barks. ![x](data:image/png;base64,{PNG})"
        await append(client, "s1", with_parts(*DOG), base64, "The cat is called Tom.")
        # Whatever is shown is read from the text beside them.
        await execute(
            dsn,
            "UPDATE messages SET content_parts = NULL, content = 'gone' "
            "WHERE tenant_id = $1 AND searched_text IS NOT NULL",
            acme.tenant_id,
        )
        await opened(client, "s2")

        answer = await context(client, "s2", query="Which breed is the dog Rex, and who is Tom?")

        shown = "\n".join(excerpt_lines(answer))
        assert HIS["text"] in shown
        assert "[image, png]" in shown
        assert f"Rex barks. ![x]([image, png, {_size()}])" in shown
        assert "Tom" in shown
        assert "gone" not in shown

    async def test_a_message_of_the_release_before_is_shown_as_well(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s1", with_parts(*DOG))
        await execute(
            dsn, "UPDATE messages SET searched_text = NULL WHERE tenant_id = $1", acme.tenant_id
        )
        await opened(client, "s2")

        answer = await context(client, "s2", query="Which breed is the dog Rex?")

        assert "[image, png]" in "\n".join(excerpt_lines(answer))

    async def test_the_tool_names_what_it_cannot_show(self, client: AsyncClient) -> None:
        await append(client, "s1", with_parts(*DOG, message_id="m1"))

        told = await called(client, "conversation_search", {"query": "Rex"})

        assert f"[image, png, {_size()}, message m1]" in told["result"]
        assert PNG not in str(told)
