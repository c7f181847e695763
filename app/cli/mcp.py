"""kemem mcp: the program `kemem-mcp` of the client, among the commands of the service."""

from typing import Annotated

import typer

from app.errors import ConfigurationError
from kemem.address import URL_VARIABLE
from kemem.errors import ConfigurationError as UnusableAddressError
from kemem.mcp import USER_VARIABLE, serve_stdio


def mcp_command(
    url: Annotated[
        str | None,
        typer.Option(
            help=f"Address of the service; {URL_VARIABLE}, else this machine, when left out.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help=f"Whose memory; {USER_VARIABLE} when left out.", show_default=False),
    ] = None,
) -> None:
    """Give a desktop the memory of a running service, over standard input and output (MCP)."""
    try:
        serve_stdio(url, user)
    except UnusableAddressError as error:
        raise ConfigurationError(str(error)) from None
