"""Signatures as the Standard Webhooks specification has them: standardwebhooks.com."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"


def new_secret() -> str:
    """256 random bits, as receivers' libraries take them."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(
    keys: Sequence[str], *, event_id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """The headers that let a receiver tell `body` is ours, new, and not seen before.

    Args:
        keys: the secrets; one signature each, so that a receiver may hold either.
        event_id: the same whenever the event is sent again.

    """
    moment = str(int(at.timestamp()))
    signed = f"{event_id}.{moment}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(_sign(key, signed) for key in keys),
    }


def _sign(key: str, signed: bytes) -> str:
    digest = hmac.new(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
