"""The console command `kemem`: its commands by name, each in a file that only its call imports.

What `kemem --help` shows of a command stands in the table here, so that help needs no imports;
a test compares it with what the command says of itself.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typing_extensions import override

from app.platform.version import VERSION


class ListedCommand(NamedTuple):
    """A command: where its function or its group of commands is, and what it does."""

    path: str
    summary: str
    hidden: bool = False


COMMANDS: Final = {
    "serve": ListedCommand(
        "app.cli.serve:serve_command",
        "Run the service; without DATABASE_URL with a PostgreSQL of its own.",
    ),
    "worker": ListedCommand(
        "app.cli.worker:worker_command",
        "Do the background work alone, beside any number of services and other workers.",
    ),
    "migrate": ListedCommand(
        "app.cli.migrate:migrate_command",
        "Bring the database schema to this release; safe to repeat.",
    ),
    "draft-migration": ListedCommand(
        "app.cli.migrate:draft_migration_command",
        "Write a migration that brings the schema to the tables as the code has them now.",
        hidden=True,
    ),
    "tenants": ListedCommand("app.cli.tenants:tenants_cli", "Owners of data and keys."),
    "keys": ListedCommand("app.cli.tenants:keys_cli", "Who may call: make, list and revoke keys."),
    "demo": ListedCommand(
        "app.cli.demo:demo_command",
        "Play a conversation through a running service and print what it stored, refused and "
        "found.",
    ),
    "eval": ListedCommand(
        "app.cli.evaluate:evaluate_command",
        "Measure what a running service finds: recall@k, nDCG@10, MRR, latency and tokens.",
    ),
    "calibrate": ListedCommand(
        "app.cli.evaluate:calibrate_command",
        "Measure how similar the embedder finds duplicates, contradictions and strangers.",
    ),
    "purge": ListedCommand(
        "app.cli.maintenance:purge_command",
        "Remove for good what was deleted long ago, with the words that its history keeps.",
    ),
    "reembed": ListedCommand(
        "app.cli.maintenance:reembed_command",
        "Give all that is stored vectors of the embedder that is in force for it now.",
    ),
    "reread": ListedCommand(
        "app.cli.reread:reread_command",
        "Read stored conversations again with the keyless reader of this release.",
    ),
    "encrypt-secrets": ListedCommand(
        "app.cli.maintenance:encrypt_secrets_command",
        "Encrypt the secrets of webhooks with the first key of MEMORY_SECRET_KEY.",
    ),
    "optimize": ListedCommand(
        "app.cli.maintenance:optimize_command",
        "Give large buckets binary codes, and take them where few are left.",
    ),
    "export": ListedCommand(
        "app.cli.import_export:export_command",
        "Write everything the key's tenant holds to a file, as it is at this moment.",
    ),
    "import": ListedCommand(
        "app.cli.import_export:import_command",
        "Read a file of `kemem export` into the tenant of the key, as it was.",
    ),
    "import-conversations": ListedCommand(
        "app.cli.import_conversations:import_conversations_command",
        "Import conversations with their dates: JSONL, or exports of ChatGPT and Claude.",
    ),
    "mcp": ListedCommand(
        "app.cli.mcp:mcp_command",
        "Give a desktop the memory of a running service, over standard input and output (MCP).",
    ),
    "import-mem0": ListedCommand(
        "app.cli.import_mem0:import_mem0_command",
        "Import memories of mem0 with their ids, dates, metadata and history.",
    ),
    "openapi": ListedCommand(
        "app.cli.migrate:openapi_command",
        "Print the OpenAPI document, which the service also answers at /openapi.json.",
    ),
}


def load(path: str) -> Any:
    """What stands at `module:name`, imported now."""
    module, _, name = path.partition(":")
    # Read when numpy is imported. Requests run side by side, and their matrices are small: beside
    # other work, threads for each took up to forty times the processor's time to wait in.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # As in `app/main.py`: what is imported is no garbage.
    gc.disable()
    try:
        return getattr(import_module(module), name)
    finally:
        gc.freeze()
        gc.enable()


def load_command(name: str) -> Any:
    """The command of this name, or its group of commands, as the command line runs it."""
    found = load(COMMANDS[name].path)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(found)
        found = app
    command = typer.main.get_command(found)
    command.name = name
    return command


class _Commands(TyperGroup):
    """Holds stand-ins for the commands; the one that is called is put in their place."""

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


cli = typer.Typer(
    name="kemem",
    cls=_Commands,
    help="KeMem: memory for AI agents on plain PostgreSQL. Begin with `kemem serve`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stand_in() -> None:
    """Never called: the name and the summary are shown."""


for _name, _listed in COMMANDS.items():
    cli.command(_name, help=_listed.summary, hidden=_listed.hidden)(_stand_in)


def _print_version(wanted: bool) -> None:  # Typer passes it by position.
    if wanted:
        print(VERSION)
        raise typer.Exit


@cli.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command itself; each is handled when it is read."""


@cli.command()
def version() -> None:
    """Print the version of this release."""
    print(VERSION)


def main() -> None:
    """Run the command; expected failures are a sentence and an exit code, no traceback."""
    try:
        cli()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        told = load("app.cli.failures:sentence_for")(error)
        if told is None:
            raise
        sentence, code = told
        print(f"kemem: {sentence}", file=sys.stderr)
        sys.exit(code)


if __name__ == "__main__":
    main()
