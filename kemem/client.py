"""What `Memory` and `AsyncMemory` share: the address, the key, the limits; all but the sending."""

import copy
import os
from dataclasses import replace
from typing import Self, TypeVar

from kemem.address import Service, find_service
from kemem.calls import Call
from kemem.exchange import Exchange, RetryPolicy
from kemem.ids import checked_id

Result = TypeVar("Result")

TIMEOUT_SECONDS = 120.0
"""Longer than the minute that `extract(wait=True)` or a model may take."""
MAX_RETRIES = 3


class BaseMemory:
    """The service, the key and the limits of a client."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        max_retries: int,
        acting_user: str | None,
    ) -> None:
        self._service: Service = find_service(base_url, api_key, os.environ)
        if acting_user is not None:
            self._service = _for_user(self._service, acting_user)
        self._retry_policy = RetryPolicy(timeout, max_retries)

    @property
    def base_url(self) -> str:
        """The address of the service, without a slash at its end."""
        return self._service.base_url

    @property
    def acting_user(self) -> str | None:
        """The user for whom every request is made; None is the application itself."""
        return self._service.acting_user

    def acting_as(self, user_id: str) -> Self:
        """A client for one user: the service answers as it answers that user's own key.

        It shares the connections of this client and works as long as this one is open; closing it
        closes nothing.

        Raises:
            ValueError: `user_id` cannot be an id.

        """
        view = copy.copy(self)
        vars(view).update(_service=_for_user(self._service, user_id), _owned=False)
        return view

    def __repr__(self) -> str:
        acting = f" acting as {self.acting_user}" if self.acting_user else ""
        return f"<kemem.{type(self).__name__} {self.base_url}{acting}>"

    @property
    def _uses_environment(self) -> bool:
        # A proxy cannot reach a service on this machine, and should not see its key.
        return not self._service.is_local

    def _exchange(self, call: Call[Result]) -> Exchange[Result]:
        return Exchange(call, self._service, self._retry_policy)


def _for_user(service: Service, user_id: str) -> Service:
    """Raises ValueError: `user_id` cannot be an id."""
    return replace(service, acting_user=checked_id("user", user_id))
