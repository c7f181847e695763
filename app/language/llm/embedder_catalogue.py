"""Which embedders this deployment has, by handle and by the name stored with a vector.

A *handle* is what a person writes (`wordllama`, `openai/text-embedding-3-small`); a *name*
adds the dimension and stands beside each vector. Each embedder is built once and shared.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from app.errors import ConfigurationError
from app.language.llm.embedder import Embedder
from app.language.llm.errors import EmbeddingUnavailableError, UnknownEmbedderError
from app.language.llm.openai_client import LONGEST_WAIT, connect
from app.language.llm.openai_embedder import OpenAIEmbedder, OpenAILimits
from app.language.llm.wordllama_embedder import DIMENSION, WordLlamaEmbedder

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_WORDLLAMA: Final = WordLlamaEmbedder.handle
_OPENAI: Final = re.compile(r"openai/(?P<model>[\x21-\x7e]{1,128})")
# A model's own name may hold colons (`nomic-embed-text:latest`), so the last one counts.
_NAME: Final = re.compile(r"(?P<handle>[\x21-\x7e]{1,200}):(?P<dimension>[1-9][0-9]{0,4})")

# Some local servers answer to any model's name, and the names come from callers.
_MOST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIParameters:
    """How to reach the deployment's endpoint; with neither key nor address there is none."""

    # Kept out of logs and tracebacks.
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: timedelta = timedelta(seconds=30)
    max_retries: int = 2
    longest_wait: timedelta = LONGEST_WAIT
    limits: OpenAILimits = field(default_factory=OpenAILimits)


class EmbedderCatalogue:
    """Resolves handles and names to shared embedders. Belongs to one event loop.

    Vectors count as comparable when model and dimension agree, also when OPENAI_BASE_URL has
    changed since: an endpoint that serves something else under the same name is not noticed.
    """

    def __init__(
        self, default_handle: str, default: Embedder, endpoint: "_Endpoint | None"
    ) -> None:
        """Use `open`; it builds the default."""
        self._default_handle = default_handle
        self._default = default
        self._endpoint = endpoint
        # By handle or by name, oldest first; finished ones are the cache.
        self._opened: dict[str, asyncio.Task[Embedder]] = {}

    @classmethod
    async def open(
        cls,
        default_handle: str,
        *,
        openai: OpenAIParameters | None = None,
        dimension: int | None = None,
    ) -> Self:
        """A catalogue whose default embedder is ready.

        Args:
            default_handle: what MEMORY_EMBEDDING_MODEL says.
            openai: the deployment's endpoint, if it has one.
            dimension: what MEMORY_EMBEDDING_DIM says; for the default embedder only.

        Raises:
            ConfigurationError: there is no such embedder here; the message says what to mend.

        """
        handle = _canonical(default_handle)
        endpoint = _connect(openai or OpenAIParameters())
        try:
            default = await _open_default(handle, dimension, endpoint)
        except BaseException:
            if endpoint is not None:
                await endpoint.client.close()
            raise
        return cls(handle, default, endpoint)

    @property
    def default(self) -> Embedder:
        """The deployment's embedder, for whoever names no other."""
        return self._default

    @property
    def available(self) -> tuple[str, ...]:
        """The handles a caller may name."""
        return (_WORDLLAMA,) if self._endpoint is None else (_WORDLLAMA, "openai/<model>")

    async def resolve(self, handle: str) -> Embedder:
        """The embedder for a handle somebody wrote; the default's handle gives the default.

        A model whose dimension is not known costs a small call, once.

        Raises:
            UnknownEmbedderError: this deployment has no such embedder.
            EmbeddingUnavailableError: the endpoint could not be asked; safe to retry.

        """
        handle = _canonical(handle)
        if handle == self._default_handle:
            return self._default
        return await self._once(handle, partial(self._open_handle, handle))

    async def in_process(self, handle: str | None) -> Embedder | None:
        """The embedder for a handle, None for the default, if it asks nobody outside."""
        handle = self._default_handle if handle is None else _canonical(handle)
        return await self.resolve(handle) if handle == _WORDLLAMA else None

    async def by_name(self, name: str) -> Embedder | None:
        """The embedder for vectors stored under `name`, or None when it cannot be had.

        Raises:
            EmbeddingUnavailableError: the endpoint could not be asked; safe to retry.

        """
        if name == self._default.name:
            return self._default
        parts = _NAME.fullmatch(name)
        if parts is None:
            return None
        opening = partial(self._open_name, parts["handle"], int(parts["dimension"]))
        try:
            return await self._once(name, opening)
        except UnknownEmbedderError:
            return None

    async def aclose(self) -> None:
        """Stop what is being opened and close the connections; safe to repeat."""
        opening = list(self._opened.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        if self._endpoint is not None:
            await self._endpoint.client.close()

    async def _once(
        self, key: str, opening: Callable[[], Coroutine[None, None, Embedder]]
    ) -> Embedder:
        """Open under `key` once for all who ask meanwhile; a failure is not kept."""
        task = self._opened.get(key)
        if task is None:
            self._make_room()
            task = self._opened[key] = asyncio.create_task(opening())
            task.add_done_callback(partial(self._drop_failed, key))
        # Shielded: one caller that gives up must not take it from the others.
        return await asyncio.shield(task)

    def _make_room(self) -> None:
        if len(self._opened) >= _MOST:
            finished = (key for key, task in self._opened.items() if task.done())
            self._opened.pop(next(finished, ""), None)

    def _drop_failed(self, key: str, task: asyncio.Task[Embedder]) -> None:
        # Asking for the exception also keeps asyncio from reporting it as never retrieved.
        failed = task.cancelled() or task.exception() is not None
        if failed and self._opened.get(key) is task:
            del self._opened[key]

    async def _open_handle(self, handle: str) -> Embedder:
        """The embedder of a handle.

        Raises:
            UnknownEmbedderError: there is none of that name here.

        """
        if handle == _WORDLLAMA:
            try:
                return await WordLlamaEmbedder.open()
            except ConfigurationError as error:
                raise UnknownEmbedderError(self.available) from error
        endpoint, model = self._model(handle)
        try:
            found = await OpenAIEmbedder.discover(
                endpoint.client, model, limits=endpoint.limits, slots=endpoint.slots
            )
        except EmbeddingUnavailableError as error:
            if error.reason in {"model_not_found", "refused"}:
                raise UnknownEmbedderError(self.available) from error
            raise
        return found

    async def _open_name(self, handle: str, dimension: int) -> Embedder:
        """The embedder of a handle in one dimension.

        Raises:
            UnknownEmbedderError: there is none of that name here.

        """
        embedder = await self.resolve(handle)
        if embedder.dimension == dimension:
            return embedder
        endpoint, model = self._model(handle)
        try:
            other = await endpoint.open(model, dimension)
            # Whether the endpoint has this model in that length only a call can tell.
            await other.embed(["dimension"])
        except ConfigurationError as error:
            raise UnknownEmbedderError(self.available) from error
        except EmbeddingUnavailableError as error:
            if error.reason in {"model_not_found", "refused", "bad_answer"}:
                raise UnknownEmbedderError(self.available) from error
            raise
        return other

    def _model(self, handle: str) -> tuple["_Endpoint", str]:
        """The endpoint's model in a handle.

        Raises:
            UnknownEmbedderError: the handle names none, or there is no endpoint.

        """
        model = _OPENAI.fullmatch(handle)
        if model is None or self._endpoint is None:
            raise UnknownEmbedderError(self.available)
        return self._endpoint, model["model"]


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """What all embedders of the deployment's endpoint share."""

    client: "AsyncOpenAI"
    limits: OpenAILimits
    slots: asyncio.Semaphore

    async def open(self, model: str, dimension: int | None) -> OpenAIEmbedder:
        return await OpenAIEmbedder.open(
            self.client, model, dimension, limits=self.limits, slots=self.slots
        )


def _connect(parameters: OpenAIParameters) -> _Endpoint | None:
    if not (parameters.api_key or parameters.base_url):
        return None
    client = connect(
        api_key=parameters.api_key,
        base_url=parameters.base_url,
        timeout=parameters.timeout,
        max_retries=parameters.max_retries,
        longest_wait=parameters.longest_wait,
    )
    slots = asyncio.Semaphore(parameters.limits.concurrent_calls)
    return _Endpoint(client, parameters.limits, slots)


async def _open_default(handle: str, dimension: int | None, endpoint: _Endpoint | None) -> Embedder:
    """The embedder of the setting, ready.

    Raises:
        ConfigurationError: it cannot be opened; the message says what to mend.

    """
    if handle == _WORDLLAMA:
        if dimension not in {None, DIMENSION}:
            raise ConfigurationError(
                f"The local embedder has {DIMENSION} dimensions, not {dimension}: leave "
                "MEMORY_EMBEDDING_DIM out, or choose another MEMORY_EMBEDDING_MODEL."
            )
        return await WordLlamaEmbedder.open()
    model = _OPENAI.fullmatch(handle)
    if model is None:
        raise ConfigurationError(
            "MEMORY_EMBEDDING_MODEL names no known embedder: write wordllama or "
            "openai/<model>, for example openai/text-embedding-3-small."
        )
    if endpoint is None:
        raise ConfigurationError(
            "MEMORY_EMBEDDING_MODEL=openai/… needs OPENAI_API_KEY, or OPENAI_BASE_URL for "
            "a local endpoint that wants none."
        )
    return await endpoint.open(model["model"], dimension)


def _canonical(handle: str) -> str:
    return _WORDLLAMA if handle == "wordllama" else handle
