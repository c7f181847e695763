"""What MEMORY_RERANK_MODEL may say, and what stops the start."""

from datetime import timedelta

import pytest

from app.errors import ConfigurationError
from app.language.llm.http_reranker import HTTPReranker
from app.language.llm.reranker_catalogue import connect_reranker

LOCAL = "http://localhost:8001/v1/rerank"
SECRET = "hunter2"


def connect(handle: str, key: str | None = None) -> HTTPReranker:
    return connect_reranker(handle, api_key=key, timeout=timedelta(seconds=1))


def refusal(handle: str, key: str | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        connect(handle, key)
    return str(caught.value)


def aim(reranker: HTTPReranker) -> tuple[str, str]:
    return reranker.name, reranker._address


@pytest.mark.parametrize(
    ("handle", "name", "address"),
    [
        ("cohere/rerank-v3.5", "cohere/rerank-v3.5", "https://api.cohere.com/v2/rerank"),
        ("jina/jina-reranker-v3", "jina/jina-reranker-v3", "https://api.jina.ai/v1/rerank"),
        (f"cohere/rerank-v3.5@{LOCAL}", "cohere/rerank-v3.5", LOCAL),
        (f"http/BAAI/bge-reranker-v2-m3@{LOCAL}", "http/BAAI/bge-reranker-v2-m3", LOCAL),
        (
            f"http/@cf/baai/bge-reranker-base@{LOCAL}?version=1",
            "http/@cf/baai/bge-reranker-base",
            f"{LOCAL}?version=1",
        ),
        ("tei/bge@https://[::1]:65535/rerank", "tei/bge", "https://[::1]:65535/rerank"),
    ],
)
async def test_a_handle_says_model_and_address(handle: str, name: str, address: str):
    reranker = connect(handle, "k")

    assert aim(reranker) == (name, address)
    await reranker.aclose()


async def test_an_endpoint_of_ones_own_needs_no_key():
    for kind in ("cohere", "jina", "http", "tei"):
        await connect(f"{kind}/m@{LOCAL}").aclose()


@pytest.mark.parametrize("handle", ["cohere/rerank-v3.5", "jina/jina-reranker-v3"])
def test_a_provider_needs_one(handle: str):
    assert "needs MEMORY_RERANK_API_KEY" in refusal(handle)


@pytest.mark.parametrize(
    "handle",
    [
        "", "cohere", "cohere/", "voyage/rerank-2", "rerank-v3.5", LOCAL, f"m@{LOCAL}",
        "cohere/a model", "cohere/重排", "http/" + "m" * 129 + f"@{LOCAL}", f"http/@{LOCAL}",
    ],
)  # fmt: skip
def test_what_is_no_handle_is_answered_with_those_there_are(handle: str):
    sentence = refusal(handle, "k")

    assert sentence.startswith("MEMORY_RERANK_MODEL ")
    for kind in ("cohere/<model>", "jina/<model>", "http/<model>@<address>", "tei/<model>@"):
        assert kind in sentence


@pytest.mark.parametrize(
    "handle", ["http/m", "tei/m", "http/m@localhost:8001/v1/rerank", "http/m@ftp://h/rerank"]
)
def test_an_endpoint_of_ones_own_needs_an_address(handle: str):
    assert "lacks an address" in refusal(handle)


@pytest.mark.parametrize(
    "address",
    [
        "http://:80/r", "http://[::1/r", "http://h/r#part", "http://h:port/r", "http://h:0/r",
        "http://h:65536/r", "http://a..b/r", "http://" + "a" * 64 + "/r",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(address: str):
    assert "address in MEMORY_RERANK_MODEL is none" in refusal(f"http/m@{address}")


@pytest.mark.parametrize("address", ["http://localhost:8001", "http://localhost:8001/"])
def test_an_address_without_its_path_is_refused(address: str):
    assert "lacks its path" in refusal(f"http/m@{address}")


@pytest.mark.parametrize("user", [f"ana:{SECRET}", SECRET])
def test_a_password_in_the_address_is_refused_and_not_repeated(user: str):
    sentence = refusal(f"http/m@http://{user}@localhost:8001/v1/rerank")

    assert "MEMORY_RERANK_API_KEY" in sentence
    assert SECRET not in sentence


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}", f"{SECRET} x", f"{SECRET}é", ""])
def test_a_key_that_no_header_carries_is_refused_and_not_repeated(key: str):
    sentence = refusal(f"http/m@{LOCAL}", key)

    assert "MEMORY_RERANK_API_KEY" in sentence
    assert SECRET not in sentence
