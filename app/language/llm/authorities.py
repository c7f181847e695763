"""The certificate authorities that connections to model providers trust."""

import ssl
from functools import cache


@cache
def authorities() -> ssl.SSLContext:
    """What an HTTP client trusts by itself, read once: it takes each client 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()
