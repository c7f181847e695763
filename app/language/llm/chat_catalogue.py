"""What this deployment can ask for one kind of work, by handle: a keyless one, and models.

`openai/<model>` is any model of the deployment's endpoint. Each is built once and shared.
Whose agent names which is the room's.
"""

import re
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from app.errors import ConfigurationError
from app.language.llm.catalogue import OpenAIParameters
from app.language.llm.errors import UnknownModelError
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.openai_client import connect

_OPENAI: Final = re.compile(r"openai/(?P<model>[\x21-\x7e]{1,128})")

# The names come from callers, and some local servers answer to any.
_MOST: Final = 64

Made = TypeVar("Made")


class ChatCatalogue(Generic[Made]):
    """Resolves handles to what does the work. Belongs to one event loop."""

    def __init__(
        self,
        default_handle: str,
        *,
        setting: str,
        keyless_handle: str,
        keyless: Made,
        make: Callable[[OpenAIChat], Made],
        openai: OpenAIParameters | None = None,
    ) -> None:
        """Make the catalogue; nothing is sent.

        Args:
            default_handle: what `setting` says.
            setting: its environment variable, for the error.
            keyless_handle: names the one that needs no model.
            keyless: that one.
            make: what does the work by asking a model.
            openai: the deployment's endpoint, if it has one.

        Raises:
            ConfigurationError: `default_handle` names nothing here; says what to mend.

        """
        self._keyless_handle = keyless_handle
        self._keyless = keyless
        self._make = make
        reachable = openai is not None and bool(openai.api_key or openai.base_url)
        self._client = (
            connect(
                api_key=openai.api_key,
                base_url=openai.base_url,
                timeout=openai.timeout,
                max_retries=openai.max_retries,
            )
            if openai is not None and reachable
            else None
        )
        # Oldest first.
        self._built: dict[str, Made] = {}
        try:
            self._default = self._build(default_handle)
        except UnknownModelError as error:
            raise ConfigurationError(
                f"{setting} names no model of this deployment: write one of "
                f"{', '.join(self.available)}. openai/<model> needs OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a local endpoint that wants none."
            ) from error
        self._default_handle = default_handle

    @property
    def default(self) -> Made:
        """The deployment's, for whoever names no other."""
        return self._default

    @property
    def keyless(self) -> Made:
        """The one that always answers."""
        return self._keyless

    @property
    def available(self) -> tuple[str, ...]:
        """The handles a caller may name."""
        one = self._keyless_handle
        return (one,) if self._client is None else (one, "openai/<model>")

    def resolve(self, handle: str) -> Made:
        """What does the work for a handle somebody wrote; the default's gives the default.

        Whether an endpoint really has a model shows when it is asked.

        Raises:
            UnknownModelError: this deployment has none of that name.

        """
        if handle == self._default_handle:
            return self._default
        if handle not in self._built:
            built = self._build(handle)
            if len(self._built) >= _MOST:
                del self._built[next(iter(self._built))]
            self._built[handle] = built
        return self._built[handle]

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        if self._client is not None:
            await self._client.close()

    def _build(self, handle: str) -> Made:
        if handle == self._keyless_handle:
            return self._keyless
        named = _OPENAI.fullmatch(handle)
        if named is None or self._client is None:
            raise UnknownModelError(self.available)
        return self._make(OpenAIChat(self._client, named["model"]))
