"""The console script. A client's installation lacks what the service needs, and says so."""

import sys
from importlib import import_module
from importlib.util import find_spec

NEEDED = ("typer", "sqlalchemy", "fastapi")


def main() -> None:
    """Run the command `kemem`."""
    if any(find_spec(name) is None for name in NEEDED):
        print(
            "kemem: only the client is installed. For the service and its commands run "
            "pip install 'kemem[server]'.",
            file=sys.stderr,
        )
        sys.exit(2)
    import_module("app.cli.main").main()
