"""The protocol, spoken by its official SDK: what it asks for, answered by the services.

Nothing is kept between two requests, so that any process of the service answers any of them, and
no key ever meets what another key asked. The SDK is imported with the first request.
"""

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from app.errors import DomainError, NotFoundError
from app.identity.tenants.access import Principal
from app.identity.tenants.principal import charge
from app.integrations.mcp.service import BLOCK_URI, PROFILE_URI, McpResourceService, McpToolService
from app.integrations.mcp.toolset import INSTRUCTIONS, MCP_TOOLS
from app.platform.http import problems
from app.platform.http.dependencies import service_of
from app.platform.version import VERSION

RESOURCE_NOT_FOUND: Final = -32002
"""As the protocol has it until 2025-11-25; later ones say that a parameter is not valid."""

IDEMPOTENCY_KEY: Final = "kemem.idempotency_key"
"""Where the route leaves the request's key for the tools."""


async def exchange(scope: Any, receive: Any, send: Any) -> None:
    """Answer one message of the protocol: an ASGI application."""
    server = await asyncio.to_thread(_server) if _server.cache_info().currsize == 0 else _server()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    # `RequestMiddleware` has measured the body.
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=2**62
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


@cache
def _server() -> Any:
    """The server of the SDK, without anything of a request."""
    from mcp.server.lowlevel import Server

    server: Server[Any] = Server(
        "kemem",
        version=VERSION,
        title="KeMem",
        instructions=INSTRUCTIONS,
        # Of the headers that a tool may ask for, none does.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
    )
    server.middleware.clear()
    return server


def _principal(context: Any) -> Principal:
    principal: Principal = context.request.scope["kemem.principal"]
    return principal


@cache
def _tools(*scopes: str) -> list[Any]:
    from mcp import types

    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=types.ToolAnnotations.model_validate(tool.hints),
        )
        for tool in MCP_TOOLS.values()
        if tool.scope in scopes
    ]


async def _list_tools(context: Any, _params: Any) -> Any:
    """The tools that the key may call; all on one page."""
    from mcp import types

    principal = _principal(context)
    scopes = [scope for scope in ("read", "write") if principal.may(scope)]
    return types.ListToolsResult(tools=_tools(*scopes))


async def _call_tool(context: Any, params: Any) -> Any:
    from mcp import MCPError, types

    tool = MCP_TOOLS.get(params.name)
    if tool is None:
        known = ", ".join(MCP_TOOLS)
        raise MCPError(types.INVALID_PARAMS, f"There is no tool of this name. The tools: {known}.")
    request, principal = context.request, _principal(context)
    try:
        if tool.scope == "write":
            charge(request, principal, "write")
        answer = await service_of(request, McpToolService).call(
            principal, tool.name, params.arguments or {}, key=request.scope.get(IDEMPOTENCY_KEY)
        )
        text, data, code = answer.text, answer.data, answer.code
    except Exception as error:  # noqa: BLE001 (what is not expected is logged, and told to nobody)
        problem = _problem(request, error)
        text, data, code = problem["detail"], None, problem["code"]
    return types.CallToolResult(
        content=[types.TextContent(text=text if code is None else f"{code}: {text}")],
        structured_content=data,
        is_error=code is not None,
        _meta=None if code is None else {"code": code},
    )


def _problem(request: Any, error: Exception) -> Mapping[str, Any]:
    """What the same failure of another route says."""
    if isinstance(error, DomainError):
        return {"code": error.code, "detail": error.detail}
    told: Mapping[str, Any] = json.loads(bytes(problems.unexpected(request.scope, error).body))
    return told


async def _list_resources(context: Any, params: Any) -> Any:
    from mcp import types

    service = service_of(context.request, McpResourceService)
    cursor = params.cursor if params else None
    try:
        page = await service.list_resources(_principal(context), cursor)
    except Exception as error:  # noqa: BLE001 (as in `_call_tool`)
        raise _failure(context, error) from None
    resources = [types.Resource(mime_type="text/plain", **item.model_dump()) for item in page.items]
    return types.ListResourcesResult(resources=resources, next_cursor=page.next_cursor)


async def _list_templates(_context: Any, _params: Any) -> Any:
    from mcp import types

    profile = types.ResourceTemplate(
        uri_template=PROFILE_URI, name="profile", title="Profile of a user", mime_type="text/plain"
    )
    block = types.ResourceTemplate(
        uri_template=BLOCK_URI, name="block", title="Block of memory", mime_type="text/plain"
    )
    return types.ListResourceTemplatesResult(resource_templates=[profile, block])


async def _read_resource(context: Any, params: Any) -> Any:
    from mcp import types

    uri = str(params.uri)
    try:
        service = service_of(context.request, McpResourceService)
        text = await service.read(_principal(context), uri)
    except Exception as error:  # noqa: BLE001 (as in `_call_tool`)
        raise _failure(context, error) from None
    shown = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    return types.ReadResourceResult(contents=[shown])


def _failure(context: Any, error: Exception) -> Exception:
    """An error of the protocol, with our sentence and our code."""
    from mcp import MCPError, types
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

    problem = _problem(context.request, error)
    number = types.INTERNAL_ERROR
    if isinstance(error, NotFoundError):
        earlier = context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        number = RESOURCE_NOT_FOUND if earlier else types.INVALID_PARAMS
    elif isinstance(error, DomainError):
        number = types.INVALID_PARAMS
    return MCPError(number, problem["detail"], {"code": problem["code"]})
