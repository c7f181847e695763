"""Packages with processors, installed into a folder as `pip` would leave them."""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "processors.md"


def install(folder: Path, module: str, code: str, **points: str) -> None:
    """Put a distribution into `folder`, whose entry points are `points`."""
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[kemem.processors]", *lines, ""]))


def install_example(folder: Path) -> list[str]:
    """The package of the docs, as it stands there; the names it offers."""
    text = DOCS.read_text(encoding="utf-8")
    [told] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    points = tomllib.loads(told)["project"]["entry-points"]["kemem.processors"]
    install(folder, "acme_processors", code, **points)
    return list(points)
