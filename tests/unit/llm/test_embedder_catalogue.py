"""Handles and names become embedders, once each."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.errors import ConfigurationError
from app.language.llm.embedder_catalogue import EmbedderCatalogue, OpenAIParameters
from app.language.llm.errors import EmbeddingUnavailableError, UnknownEmbedderError
from tests.support.openai_server import (
    NATIVE_DIMENSION,
    OpenAIServer,
    in_dimension,
    refusal,
    slow,
)
from tests.support.patience import PATIENCE, until_asked


@pytest.fixture
def parameters(server: OpenAIServer) -> OpenAIParameters:
    return OpenAIParameters(api_key="sk-secret", base_url=server.base_url, max_retries=0)


@pytest.fixture
async def catalogue(parameters: OpenAIParameters) -> AsyncIterator[EmbedderCatalogue]:
    catalogue = await EmbedderCatalogue.open("wordllama", openai=parameters)
    yield catalogue
    await catalogue.aclose()


@pytest.fixture(scope="module")
async def keyless() -> AsyncIterator[EmbedderCatalogue]:
    catalogue = await EmbedderCatalogue.open("wordllama")
    yield catalogue
    await catalogue.aclose()


class TestDefault:
    async def test_local_needs_nothing(self, keyless: EmbedderCatalogue):
        assert keyless.default.name == "wordllama/l2_supercat:256"
        assert keyless.available == ("wordllama/l2_supercat",)

    @pytest.mark.parametrize(
        ("dimension", "name"),
        [
            (None, "openai/text-embedding-3-small:1536"),
            (512, "openai/text-embedding-3-small:512"),
        ],
    )
    async def test_remote_takes_the_deployments_dimension(
        self, parameters: OpenAIParameters, dimension: int | None, name: str
    ):
        catalogue = await EmbedderCatalogue.open(
            "openai/text-embedding-3-small", openai=parameters, dimension=dimension
        )

        assert catalogue.default.name == name
        assert await catalogue.resolve("openai/text-embedding-3-small") is catalogue.default
        assert (await catalogue.default.embed(["tea"])).shape[1] == catalogue.default.dimension
        await catalogue.aclose()

    @pytest.mark.parametrize(
        ("handle", "dimension", "words"),
        [
            ("wordllama", 512, "MEMORY_EMBEDDING_DIM"),
            ("text-embedding-3-small", None, "openai/text-embedding-3-small"),
            ("wordllama/l3_supercat", None, "wordllama or"),
            ("openai/", None, "MEMORY_EMBEDDING_MODEL"),
            ("", None, "MEMORY_EMBEDDING_MODEL"),
            ("openai/text-embedding-3-small", 9_999, "cannot have 9999"),
        ],
    )
    async def test_that_cannot_be_had_stops_the_start(
        self, parameters: OpenAIParameters, handle: str, dimension: int | None, words: str
    ):
        with pytest.raises(ConfigurationError, match=words):
            await EmbedderCatalogue.open(handle, openai=parameters, dimension=dimension)

    async def test_remote_without_key_or_address_stops_the_start(self):
        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
            await EmbedderCatalogue.open("openai/text-embedding-3-small")

    async def test_remote_that_does_not_answer_stops_the_start(
        self, server: OpenAIServer, parameters: OpenAIParameters
    ):
        server.otherwise = refusal(401, message="sk-secret is wrong")

        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as caught:
            await EmbedderCatalogue.open("openai/local-model", openai=parameters)

        assert "sk-secret" not in str(caught.value)

    async def test_a_local_endpoint_needs_no_key(self, server: OpenAIServer):
        keyless = OpenAIParameters(base_url=server.base_url)
        catalogue = await EmbedderCatalogue.open("openai/local-model", openai=keyless)

        assert (await catalogue.default.embed(["tea"])).any()
        await catalogue.aclose()


class TestResolve:
    async def test_both_spellings_of_the_default_are_the_default(
        self, catalogue: EmbedderCatalogue
    ):
        for handle in ("wordllama", "wordllama/l2_supercat"):
            assert await catalogue.resolve(handle) is catalogue.default

    async def test_the_local_one_is_there_beside_a_remote_default(
        self, parameters: OpenAIParameters
    ):
        catalogue = await EmbedderCatalogue.open("openai/local-model", openai=parameters)

        first = await catalogue.resolve("wordllama")

        assert first.dimension == 256
        assert await catalogue.resolve("wordllama/l2_supercat") is first
        await catalogue.aclose()

    async def test_simultaneous_callers_share_one_probe(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.otherwise = slow(0.05)

        embedders = await asyncio.gather(*(catalogue.resolve("openai/bge-m3") for _ in range(8)))

        assert len({id(embedder) for embedder in embedders}) == 1
        assert len(server.requests) == 1
        assert embedders[0].name == f"openai/bge-m3:{NATIVE_DIMENSION}"

    async def test_a_failure_is_told_to_all_and_not_kept(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.script(refusal(503))

        results = await asyncio.gather(
            *(catalogue.resolve("openai/bge-m3") for _ in range(3)), return_exceptions=True
        )

        assert all(isinstance(result, EmbeddingUnavailableError) for result in results)
        assert (await catalogue.resolve("openai/bge-m3")).dimension == NATIVE_DIMENSION

    async def test_one_caller_that_gives_up_takes_nothing_from_another(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.otherwise = slow(0.1)
        first = asyncio.create_task(catalogue.resolve("openai/bge-m3"))
        second = asyncio.create_task(catalogue.resolve("openai/bge-m3"))
        await asyncio.sleep(0.03)

        first.cancel()

        assert (await second).dimension == NATIVE_DIMENSION
        assert len(server.requests) == 1

    async def test_what_is_no_handle_is_unknown(self, catalogue: EmbedderCatalogue):
        for handle in (
            "", "wordllama/", "l2_supercat", "openai", "openai/", "openai/a b", "hf/x", "\n",
        ):  # fmt: skip
            with pytest.raises(UnknownEmbedderError) as caught:
                await catalogue.resolve(handle)

            assert caught.value.status == 422, handle
            available = ["wordllama/l2_supercat", "openai/<model>"]
            assert caught.value.members == {"available": available}, handle

    async def test_a_model_the_endpoint_lacks_is_unknown(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.otherwise = refusal(404, message="no model 'x' for key sk-secret")

        with pytest.raises(UnknownEmbedderError) as caught:
            await catalogue.resolve("openai/x")

        assert "sk-secret" not in caught.value.detail

    async def test_without_an_endpoint_only_the_local_one_is_known(
        self, keyless: EmbedderCatalogue
    ):
        with pytest.raises(UnknownEmbedderError):
            await keyless.resolve("openai/text-embedding-3-small")

    async def test_made_up_models_do_not_pile_up(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        for number in range(70):
            await catalogue.resolve(f"openai/made-up-{number}")

        assert len(catalogue._opened) <= 64


class TestByName:
    async def test_the_default_is_found_without_being_opened_again(
        self, catalogue: EmbedderCatalogue
    ):
        assert await catalogue.by_name("wordllama/l2_supercat:256") is catalogue.default

    async def test_what_a_handle_gave_is_found_by_its_name(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        embedder = await catalogue.resolve("openai/nomic-embed-text:latest")

        assert embedder.name == f"openai/nomic-embed-text:latest:{NATIVE_DIMENSION}"
        assert await catalogue.by_name(embedder.name) is embedder
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "name",
        ["openai/text-embedding-3-small:1536", "openai/text-embedding-3-small:256", "openai/x:16"],
    )
    async def test_another_dimension_of_a_remote_model_can_be_had(
        self, catalogue: EmbedderCatalogue, name: str
    ):
        embedder = await catalogue.by_name(name)

        assert embedder is not None
        assert embedder.name == name
        assert (await embedder.embed(["tea"])).shape == (1, int(name.rpartition(":")[2]))
        assert await catalogue.by_name(name) is embedder

    async def test_what_cannot_be_had_is_none(self, catalogue: EmbedderCatalogue):
        for name in (
            "",
            "wordllama/l2_supercat",
            "wordllama/l2_supercat:128",
            "wordllama/l2_supercat:0",
            "openai/text-embedding-3-small:4096",
            "openai/text-embedding-ada-002:256",
            "other/model:256",
        ):
            assert await catalogue.by_name(name) is None, name

    async def test_a_dimension_the_endpoint_does_not_give_is_none(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.otherwise = in_dimension(NATIVE_DIMENSION)

        assert await catalogue.by_name("openai/local-model:16") is None

    async def test_a_silent_endpoint_is_an_error_and_not_none(
        self, server: OpenAIServer, catalogue: EmbedderCatalogue
    ):
        server.otherwise = refusal(500)

        with pytest.raises(EmbeddingUnavailableError):
            await catalogue.by_name("openai/local-model:16")

    async def test_without_an_endpoint_a_remote_name_is_none(self, keyless: EmbedderCatalogue):
        assert await keyless.by_name("openai/text-embedding-3-small:1536") is None


async def test_closing_stops_what_is_being_opened(
    server: OpenAIServer, parameters: OpenAIParameters
):
    catalogue = await EmbedderCatalogue.open("wordllama", openai=parameters)
    server.otherwise = slow(30)
    waiting = asyncio.create_task(catalogue.resolve("openai/bge-m3"))
    await until_asked(server)

    await asyncio.wait_for(catalogue.aclose(), PATIENCE)
    await catalogue.aclose()

    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_the_key_is_not_in_the_parameters_text():
    assert "sk-secret" not in repr(OpenAIParameters(api_key="sk-secret"))
