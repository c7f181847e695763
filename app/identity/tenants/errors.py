"""Who may not come in, and why."""

from typing import Final

from app.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnauthenticatedError,
    UnprocessableError,
)
from app.platform.values.fields import WANTED


class MissingKeyError(UnauthenticatedError):
    code = "missing_key"
    title = "No API key"

    def __init__(self) -> None:
        super().__init__("Send your key as `Authorization: Bearer <key>`.")


class UnknownKeyError(UnauthenticatedError):
    code = "unknown_key"
    title = "Unknown API key"

    def __init__(self) -> None:
        super().__init__("This key is not known here.")


class ExpiredKeyError(UnauthenticatedError):
    code = "expired_key"
    title = "Expired API key"

    def __init__(self) -> None:
        super().__init__("This key has expired; ask for a new one.")


class RevokedKeyError(UnauthenticatedError):
    code = "revoked_key"
    title = "Revoked API key"

    def __init__(self) -> None:
        super().__init__("This key was revoked.")


class UnknownSignInCodeError(UnauthenticatedError):
    code = "unknown_sign_in_code"
    title = "Unknown link"

    def __init__(self) -> None:
        super().__init__("This link is not known here. Start the service again for a new one.")


class UsedSignInCodeError(UnauthenticatedError):
    code = "used_sign_in_code"
    title = "Link already used"

    def __init__(self) -> None:
        super().__init__(
            "This link has signed in a browser already. Paste the key that the service printed, or "
            "start the service again for a new link."
        )


class ExpiredSignInCodeError(UnauthenticatedError):
    code = "expired_sign_in_code"
    title = "Expired link"

    def __init__(self) -> None:
        super().__init__(
            "This link is no longer good. Paste the key that the service printed, or start the "
            "service again for a new link."
        )


class ExpiryInPastError(UnprocessableError):
    code = "expiry_in_past"
    title = "Expiry in the past"

    def __init__(self) -> None:
        wanted = "must be in the future: the key would never be usable"
        super().__init__(
            f"`expires_at` {wanted}.",
            errors=[{"location": ["body", "expires_at"], "detail": wanted}],
        )


class TenantDisabledError(ForbiddenError):
    code = "tenant_disabled"
    title = "Tenant disabled"

    def __init__(self) -> None:
        super().__init__("The operator has disabled this tenant.")


_NEVER_ACTING: Final = frozenset({"admin", "operator"})


class InsufficientScopeError(ForbiddenError):
    code = "insufficient_scope"
    title = "Key lacks a scope"

    def __init__(self, scope: str, *, acting: bool = False) -> None:
        """Say which scope is missing.

        Args:
            acting: the request has `KeMem-User`, which takes admin and operator from any key.

        """
        hint = " No request with `KeMem-User` has it." if acting and scope in _NEVER_ACTING else ""
        super().__init__(f"This key lacks the scope `{scope}`.{hint}", required_scope=scope)


class KeyRestrictedError(ForbiddenError):
    code = "key_restricted"
    title = "Key is restricted"

    def __init__(self) -> None:
        super().__init__(
            "A key of one agent or one user may not do that, nor a request with `KeMem-User`."
        )


class ActingUserMismatchError(ForbiddenError):
    code = "acting_user_mismatch"
    title = "Key of another user"

    def __init__(self) -> None:
        super().__init__("This key is one user's, and `KeMem-User` names another.")


class InvalidActingUserError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "`KeMem-User` is not the id of one user.",
            errors=[
                {
                    "location": ["header", "KeMem-User"],
                    "detail": f"one id in percent-encoded UTF-8: {WANTED}",
                }
            ],
        )


class TenantNotFoundError(NotFoundError):
    code = "tenant_not_found"
    title = "Tenant not found"

    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"No tenant {tenant_id}.", tenant_id=tenant_id)


class KeyNotFoundError(NotFoundError):
    code = "key_not_found"
    title = "Key not found"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"No key {key_id}.", key_id=key_id)


class TenantIdTakenError(ConflictError):
    code = "id_taken"
    title = "Id already in use"

    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"There is a tenant {tenant_id} already.", tenant_id=tenant_id)


class OwnTenantError(ConflictError):
    code = "own_tenant"
    title = "The key's own tenant"

    def __init__(self) -> None:
        super().__init__(
            "This would disable the tenant of the key you sent, which could not enable it "
            "again. Use a key of another tenant, or `kemem tenants disable`."
        )
