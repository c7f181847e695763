"""New ids: a prefix that says what it is, and a time-ordered UUID (version 7)."""

import hmac

from uuid_utils import uuid7


def new_id(prefix: str) -> str:
    """An id such as `mem_0197…`; later ones sort after earlier ones."""
    return f"{prefix}_{uuid7().hex}"


def subject_hash(tenant_id: str, kind: str, one: str) -> bytes:
    """By which whoever knows an id finds its receipt.

    Keyed by the tenant: one person's receipts at two tenants have nothing in common, and no
    table made beforehand tells the id. Whoever holds the tenant's id too can try ids against
    it, for the key is no secret.
    """
    return hmac.digest(tenant_id.encode(), f"{kind}\x1f{one}".encode(), "sha256")
