"""An upload in a request: the file, its fields, and its idempotency key."""

import hashlib
import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.identity.tenants.access import Principal
from app.platform.http.problems import location_of
from app.platform.http.uploads import InvalidUploadError, Received
from app.platform.values.fields import Metadata
from app.platform.work.idempotency import IdempotencyKey
from app.prompting.documents.file_service import Upload
from app.prompting.documents.schemas import UploadOptions

_METADATA: TypeAdapter[dict[str, Any]] = TypeAdapter(Metadata)


def upload_of(options: UploadOptions, received: Received) -> Upload:
    """The file with the options of the query and the form; those of the form come first.

    Raises:
        InvalidUploadError: an option is not valid.

    """
    given: dict[str, Any] = options.model_dump(exclude_unset=True)
    for name, values in received.fields.items():
        if name in UploadOptions.model_fields:
            given[name] = list(values) if name == "tags" else values[-1]
    try:
        options = UploadOptions.model_validate(given)
        metadata = json.loads(options.metadata) if options.metadata else {}
        metadata = _METADATA.validate_python(metadata)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        where = location_of(("body", *(fault["loc"] or ("metadata",))))
        raise InvalidUploadError(fault["msg"].removeprefix("Value error, "), *where) from None
    except (ValueError, RecursionError):
        raise InvalidUploadError("must be a JSON object", "body", "metadata") from None
    return Upload(
        received.content,
        received.size,
        received.sha256,
        options.file_name or received.file_name,
        received.content_type,
        options.on_same_name,
        tuple(options.tags),
        metadata,
    )


def idempotency_key_of(
    path: str,
    principal: Principal,
    key: str | None,
    received: Received,
    options: UploadOptions,
) -> IdempotencyKey | None:
    """As `tenants.principal.get_idempotency_key`, for a body whose digest is known."""
    if key is None:
        return None
    request = [path, options.model_dump_json(), received.file_name]
    digest = hashlib.sha256(json.dumps([request, received.fields], default=list).encode())
    digest.update(received.sha256)
    return IdempotencyKey(
        principal.tenant_id,
        principal.key_id,
        key,
        digest.digest(),
        acting_user=principal.access.user_id,
    )
