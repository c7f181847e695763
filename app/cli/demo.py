"""kemem demo: a conversation, or a real data set, played through a running service."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.opening import run
from app.cli.options import DataDirOption, KeyOption, UrlOption, service_meant, settings_with
from app.evaluation.api import open_api
from app.evaluation.demo_locomo import play_locomo
from app.evaluation.demo_story import play_story
from app.evaluation.locomo import read_conversation
from kemem.address import Service

LocomoOption = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        readable=True,
        help="Load a conversation of this file in the format of LoCoMo instead.",
        show_default=False,
    ),
]


def demo_command(
    url: UrlOption = None,
    key: KeyOption = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep/--clean", help="Leave what it made, to look around in; or delete it at the end."
        ),
    ] = True,
    locomo: LocomoOption = None,
    conversation: Annotated[
        int, typer.Option(min=0, help="Which conversation of the file, from 0.")
    ] = 0,
    limit_questions: Annotated[
        int, typer.Option(min=0, help="How many of its questions to ask.")
    ] = 10,
    concurrency: Annotated[int, typer.Option(min=1, max=32, help="Requests at a time.")] = 4,
    data_dir: DataDirOption = None,
) -> None:
    """Play a conversation through a running service and print what it stored, refused and found.

    Everything goes over the public HTTP API, under ids of its own.
    """
    service = service_meant(url, key, settings_with(data_dir=data_dir))
    if locomo is None:
        run(_story(service, keep=keep))
        return
    talk = read_conversation(locomo, conversation)

    async def load_and_ask() -> None:
        async with open_api(service.base_url, service.key, connections=concurrency) as api:
            await play_locomo(api, talk, questions=limit_questions, concurrency=concurrency)
            if not keep:
                await api.call("DELETE", f"/users/{talk.user_id}", params={"confirm": True})
                print(f"Deleted the user {talk.user_id} again.")

    run(load_and_ask())


async def _story(service: Service, *, keep: bool) -> None:
    async with open_api(service.base_url, service.key) as api:
        await play_story(api, keep=keep)
