"""Which addresses belong to the public internet; a webhook may call no other.

A tenant names the address and the service calls it from inside somebody's network, so the
question is asked of numbers, never of names: a name is whatever its owner says next.
"""

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

_NAT64 = IPv6Network("64:ff9b::/96")

# What Python calls global, or some of its releases do, and nobody on the internet is reached by.
_SPECIAL: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(one)
    for one in (
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
    """The IPv4 host that a translator on the way would call for this address."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
