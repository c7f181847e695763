"""Where webhooks may point, decided at the socket: the address checked is the one connected to.

Checking a URL and then handing it to an HTTP client asks the name server twice, and it may
answer differently the second time. Here the check is the client's only way to a connection. It
looks at addresses, never at names: the owner of a name can point it elsewhere at any time. Only
addresses of the public internet are allowed, since the service calls from inside a private
network.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

import httpcore2
from typing_extensions import override

from app.governance.webhooks.schemas import TargetRefusedError

_NAT64 = IPv6Network("64:ff9b::/96")

# Networks that Python, or some of its releases, calls global, but that are not on the internet.
_SPECIAL: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(network)
    for network in (
        "100.64.0.0/10",  # Shared by a provider's customers; some clouds keep metadata there.
        "168.63.129.16/32",  # Azure's host, as its guests see it.
        "192.0.0.0/24",
        "192.88.99.0/24",
        "64:ff9b:1::/48",
        "2001::/23",
        "3fff::/20",
        "5f00::/16",
    )
)


def is_public(address: str) -> bool:
    """Whether `address`, in digits, is a single host on the internet."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        if found.scope_id is not None or found.is_site_local:
            return False
        inner = _embedded(found)
        if inner is not None:
            return _is_global(inner)
    return _is_global(found)


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _SPECIAL)
    )


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator would call for this address; None without one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

LOOK_UP_SECONDS = 3
"""How long a name may take to resolve while a webhook is being made."""

CONNECT_SECONDS = 5
"""For one of several addresses, before the next is tried."""

DEFAULT_PORTS = {"http": 80, "https": 443}


class UnresolvedError(Exception):
    """A name has no address now."""


class RefusedAddressError(Exception):
    """A name has an address that may not be called."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Addresses of `host` as the machine resolves it, in digits. Raises OSError."""
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class Targets:
    """Which targets are allowed.

    Args:
        private: whether the deployment lets tenants call its own network; then plain HTTP is
            allowed too.
        resolver: addresses of a name.

    """

    def __init__(self, *, private: bool, resolver: Resolver = resolve) -> None:
        self._private = private
        self._resolver = resolver

    def allow_scheme_of(self, url: str) -> bool:
        """Whether `url` is encrypted, or need not be."""
        return self._private or urlsplit(url).scheme == "https"

    async def check(self, url: str) -> None:
        """Check a new target; a name that does not resolve yet is accepted.

        Raises:
            TargetRefusedError: plain HTTP, or an address inside the deployment's network.

        """
        parts = urlsplit(url)
        if not self.allow_scheme_of(url):
            raise TargetRefusedError("must begin with https://")
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                await self.addresses(parts.hostname or "", port)
        except RefusedAddressError:
            raise TargetRefusedError("must not lead into a private network") from None
        except (UnresolvedError, TimeoutError):
            return

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Addresses of `host`, if all are allowed.

        Raises:
            UnresolvedError: it has no address.
            RefusedAddressError: one of them is inside the deployment's network; the others are
                not tried either, since such a mixture is hostile.

        """
        try:
            found = await self._resolver(host, port)
        except (OSError, UnicodeError):
            # The second: a label too long, or empty.
            raise UnresolvedError from None
        if not found:
            raise UnresolvedError
        if not self._private and not all(is_public(address) for address in found):
            raise RefusedAddressError
        return found


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Connections to allowed targets alone; TLS still sees the name, and so does `Host`."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._network = httpcore2.AnyIOBackend()

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises UnresolvedError, RefusedAddressError, and what httpcore2 raises."""
        *others, last = await self._targets.addresses(host, port)
        for address in others:
            try:
                return await self._network.connect_tcp(
                    address, port, CONNECT_SECONDS, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._network.connect_tcp(last, port, timeout, local_address, socket_options)

    @override
    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises RefusedAddressError."""
        raise RefusedAddressError

    @override
    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)
