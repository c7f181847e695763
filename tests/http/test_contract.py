"""The service against its own published document, with data that fits it and data that does not.

Schemathesis makes the requests and checks the answers. They are sent through our own client,
because the runtime lives in the event loop of the tests.
"""

from collections.abc import AsyncIterator
from copy import deepcopy
from functools import lru_cache
from typing import Any

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from httpx import AsyncClient, InvalidURL
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from pydantic_core import to_json
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.governance.exports.schemas import MEDIA_TYPE
from app.runtime import Runtime
from tests.support.document import document
from tests.support.service import client_of
from tests.support.tenants import make_key, make_tenant
from tests.support.world import World, build_world

# Not among them, each with its reason:
#   positive_data_acceptance: 422 is also the answer to rules that no schema can say, such as
#     the gate's, or two fields that contradict each other.
#   ignored_auth, missing_required_header, unsupported_method, use_after_free,
#     ensure_resource_availability, object_level_authorization: they send requests of their own,
#     over a network. tests/http/test_policy.py asks these questions.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

CONFIG = SchemathesisConfig.from_dict(
    {
        # Our client carries the key; a request without it would only look like bad data.
        "generation": {"with-security-parameters": False},
        # 413: what is too long for its field may be too long for a request.
        "checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}},
    }
)


@schemathesis.serializer(MEDIA_TYPE)
def lines(_context: SerializationContext, value: Any) -> bytes:
    """What was made up as one line, behind the manifest that every import begins with."""
    return b'{"type":"manifest","format":1}\n' + to_json(value, inf_nan_mode="constants")


def with_lines_as_objects() -> dict[str, Any]:
    """The document with a line as the body of an import, so that rows are made up, not texts."""
    changed = deepcopy(document())
    body = changed["paths"]["/v1/import"]["post"]["requestBody"]["content"]
    body[MEDIA_TYPE]["schema"] = body[MEDIA_TYPE]["schema"]["contentSchema"]
    return changed


SCHEMA = schemathesis.openapi.from_dict(with_lines_as_objects(), config=CONFIG)
OPERATIONS = {
    operation.label: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
}
# What removes rows comes last, so that the others find some.
NAMES = sorted(OPERATIONS, key=lambda name: (name.startswith("DELETE"), name))

TAKING_NOTHING = {
    "GET /livez", "GET /readyz", "GET /metrics", "GET /v1/jobs/stats", "GET /v1/forgetting",
    "GET /v1/processors",
}  # fmt: skip

few = settings(
    max_examples=2,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
many = settings(few, max_examples=6)


@lru_cache(maxsize=1)
def cases_of(name: str, mode: GenerationMode) -> st.SearchStrategy[Case]:
    """Requests of an operation. To make the strategy takes longer than to draw from it."""
    return OPERATIONS[name].as_strategy(generation_mode=mode)


@pytest.fixture(scope="module")
async def anyone(app: FastAPI, runtime: Runtime) -> AsyncIterator[tuple[AsyncClient, World]]:
    """A client that may do everything in a tenant with rows of every kind."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as admin:
        world = await build_world(runtime, admin, owner)
    # Another tenant to govern: this one must not be switched off in the middle.
    governed = await make_tenant(runtime)
    world.ids["tenant_id"] = governed.tenant_id
    caller = await make_key(runtime, owner.tenant_id, "admin", "operator")
    async with client_of(app, caller.key) as client:
        yield client, world


async def check(client: AsyncClient, case: Case, *further) -> None:
    """Send `case` and hold the answer against the document."""
    asked = requests.Request(**case.as_transport_kwargs(base_url="http://test")).prepare()
    headers = {name: value for name, value in asked.headers.items() if name != "Authorization"}
    try:
        request = client.build_request(
            asked.method or "", asked.url or "", headers=headers, content=asked.body
        )
    except InvalidURL:
        reject()  # Longer than our client sends.
    response = await client.send(request)
    case.validate_response(response, checks=[*CHECKS, *further])


def test_the_document_was_read() -> None:
    assert len(OPERATIONS) > 50


async def check_fitting(anyone: tuple[AsyncClient, World], name: str, data: st.DataObject) -> None:
    client, world = anyone
    case = data.draw(cases_of(name, GenerationMode.POSITIVE))
    if data.draw(st.booleans(), label="of rows that are there"):
        known = {key: world.ids[key] for key in case.path_parameters if key in world.ids}
        case.path_parameters.update(known)
    if name.endswith("/extract"):
        # No worker runs here, and whoever waits for one waits a minute.
        case.body = {**case.body, "wait": False} if isinstance(case.body, dict) else {}

    await check(client, case)


@pytest.mark.parametrize("name", NAMES)
@few
@given(data=st.data())
async def test_requests_that_fit_are_answered_as_published(
    anyone: tuple[AsyncClient, World], name: str, data: st.DataObject
) -> None:
    await check_fitting(anyone, name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@many
@given(data=st.data())
async def test_many_requests_that_fit_are_answered_as_published(
    anyone: tuple[AsyncClient, World], name: str, data: st.DataObject
) -> None:
    await check_fitting(anyone, name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in TAKING_NOTHING])
@many
@given(data=st.data())
async def test_requests_that_do_not_fit_are_refused_as_published(
    anyone: tuple[AsyncClient, World], name: str, data: st.DataObject
) -> None:
    client, _ = anyone
    case = data.draw(cases_of(name, GenerationMode.NEGATIVE))

    await check(client, case, negative_data_rejection)
