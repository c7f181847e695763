"""Which reranker this deployment has: what MEMORY_RERANK_MODEL says, made ready.

The address is a part of the handle, so that what belongs together is set together. No tenant
names a reranker: the service would call whatever address it likes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import httpx2

from app.errors import ConfigurationError
from app.language.llm.http_reranker import COHERE, JINA, TEI, HTTPReranker, RerankDialect
from app.language.llm.openai_client import authorities

# A model's own name may hold `@` and `/` (`@cf/baai/bge-reranker-base`).
_HANDLE: Final = re.compile(
    r"(?P<kind>[a-z]+)/(?P<model>[\x21-\x7e]{1,128}?)(?:@(?P<address>https?://[\x21-\x7e]+))?"
)
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]+")

# A new connection can cost more than the answer; a server that keeps them for a shorter time
# closes them, which is noticed before the next use, or costs the one retry.
_KEPT_SECONDS: Final = 60

_WRITE: Final = (
    "write cohere/<model>, jina/<model>, http/<model>@<address> for another endpoint of their "
    "kind (vLLM, Infinity, LiteLLM, llama.cpp), or tei/<model>@<address>; for example "
    "http/BAAI/bge-reranker-v2-m3@http://localhost:8001/v1/rerank."
)


@dataclass(frozen=True, slots=True)
class _Provider:
    dialect: RerankDialect
    address: str | None = None
    """Where it is when the handle does not say; None for what only its owner knows."""


_PROVIDERS: Final[Mapping[str, _Provider]] = {
    "cohere": _Provider(COHERE, "https://api.cohere.com/v2/rerank"),
    "jina": _Provider(JINA, "https://api.jina.ai/v1/rerank"),
    "http": _Provider(COHERE),
    "tei": _Provider(TEI),
}


def connect_reranker(handle: str, *, api_key: str | None, timeout: timedelta) -> HTTPReranker:
    """The reranker of a handle, for one event loop; the caller closes it. Nothing is sent yet.

    Proxies are those of the environment, as for every other model.

    Args:
        handle: what MEMORY_RERANK_MODEL says.
        api_key: what MEMORY_RERANK_API_KEY says; goes as a bearer token.
        timeout: what a whole call may take.

    Raises:
        ConfigurationError: there is no such reranker; the message says what to mend, and
            holds neither key nor address.

    """
    parts = _HANDLE.fullmatch(handle)
    provider = _PROVIDERS.get(parts["kind"]) if parts else None
    if parts is None or provider is None:
        raise ConfigurationError(f"MEMORY_RERANK_MODEL names no reranker: {_WRITE}")
    if parts["address"] is not None:
        address = _checked(parts["address"])
    elif provider.address is None:
        raise ConfigurationError(f"MEMORY_RERANK_MODEL lacks an address: {_WRITE}")
    else:
        address = provider.address
        if api_key is None:
            raise ConfigurationError(
                f"MEMORY_RERANK_MODEL={parts['kind']}/… needs MEMORY_RERANK_API_KEY."
            )
    if api_key is not None and not _HEADER_VALUE.fullmatch(api_key):
        raise ConfigurationError(
            "MEMORY_RERANK_API_KEY holds a blank or a character that no header can carry: "
            "copy the key again."
        )
    return HTTPReranker(
        _client(api_key),
        provider=parts["kind"],
        model=parts["model"],
        address=address,
        dialect=provider.dialect,
        timeout=timeout,
    )


def _client(api_key: str | None) -> httpx2.AsyncClient:
    # Identity, because the answer's length is bounded as it arrives.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    return httpx2.AsyncClient(
        headers=headers,
        verify=authorities(),
        # The reranker has one deadline over everything.
        timeout=None,
        follow_redirects=False,
        limits=httpx2.Limits(keepalive_expiry=_KEPT_SECONDS),
    )


def _checked(address: str) -> str:
    """The address, if it can be called.

    Raises:
        ConfigurationError: it cannot; says why.

    """
    url = _parsed(address)
    if url is None or not url.host or url.fragment:
        raise ConfigurationError(f"The address in MEMORY_RERANK_MODEL is none: {_WRITE}")
    if url.userinfo:
        raise ConfigurationError(
            "The address in MEMORY_RERANK_MODEL holds a user or a password, which would show "
            "in logs: write the key into MEMORY_RERANK_API_KEY."
        )
    if url.path == "/":
        raise ConfigurationError(
            "The address in MEMORY_RERANK_MODEL lacks its path: write it whole, such as "
            "http://localhost:8001/v1/rerank."
        )
    return address


def _parsed(address: str) -> httpx2.URL | None:
    """The URL, or None for what would fail at the first connection, in ways of its own."""
    try:
        url = httpx2.URL(address)
        url.host.encode("idna")
    except (httpx2.InvalidURL, UnicodeError):
        return None
    return url if url.port is None or 0 < url.port < 65536 else None
