"""The store over HTTP, in tests."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import ok


async def batch(client: AsyncClient, *operations: dict[str, Any], **headers: str) -> list[Any]:
    """The results of operations."""
    body = {"operations": operations}
    return ok(await client.post("/store/batch", json=body, headers=headers))["results"]


def put(key: str = "k", value: Any = None, *namespace: str, **more: Any) -> dict[str, Any]:
    named = {"namespace": namespace or ("t",), "key": key}
    return {"op": "put", **named, "value": value or {"n": 1}, "index": [], **more}


def get(key: str = "k", *namespace: str, **more: Any) -> dict[str, Any]:
    return {"op": "get", "namespace": namespace or ("t",), "key": key, **more}


def delete(key: str = "k", *namespace: str) -> dict[str, Any]:
    return {"op": "delete", "namespace": namespace or ("t",), "key": key}


def search(*namespace: str, **more: Any) -> dict[str, Any]:
    return {"op": "search", "namespace": namespace, **more}


def namespaces(*match: tuple[str, list[str]], **more: Any) -> dict[str, Any]:
    matches = [{"type": kind, "path": path} for kind, path in match]
    return {"op": "list_namespaces", "match": matches, **more}


async def values(client: AsyncClient, *namespace: str) -> dict[str, Any]:
    """Values at and below a namespace, by key."""
    [found] = await batch(client, search(*namespace, limit=1000))
    return {item["key"]: item["value"] for item in found["items"]}
