"""Generates the types of the TypeScript client from the OpenAPI document: `make typescript`.

Only KeMem's own routes are in it, and of their answers only those of success: what a failure looks
like is the same everywhere, and written once in the client.
"""

import json
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from app.main import create_app

CLIENT: Final = Path(__file__).parents[1] / "clients/typescript"


def document() -> dict[str, Any]:
    """The published document as far as types are generated from it."""
    published = create_app(nullcontext()).openapi()  # type: ignore[arg-type] # never opened
    paths: dict[str, Any] = {
        path: methods for path, methods in published["paths"].items() if path.startswith("/v1/")
    }
    for methods in paths.values():
        for operation in methods.values():
            answers = operation["responses"].items()
            operation["responses"] = {status: answer for status, answer in answers if status < "4"}
    components = {"schemas": published["components"]["schemas"]}
    return published | {"paths": paths, "components": components}


def generate(client: Path = CLIENT) -> None:
    """Write `src/schema.ts` of the client in `client`, whose packages are installed.

    Raises:
        CalledProcessError: the generator failed.

    """
    build = client / "build"
    build.mkdir(exist_ok=True)
    (build / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    subprocess.run(["npm", "run", "--silent", "generate"], cwd=client, check=True)  # noqa: S607


if __name__ == "__main__":
    generate()
