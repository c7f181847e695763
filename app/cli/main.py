"""The console command `kemem`: one file per group of commands, gathered here."""

import sys

import typer

from app.cli.calibrate import calibrate_command
from app.cli.demo import demo_command
from app.cli.evaluate import evaluate_command
from app.cli.export import export_command
from app.cli.failures import sentence_for
from app.cli.import_ import import_command
from app.cli.maintenance import purge_command, reembed_command
from app.cli.migrate import draft_migration_command, migrate_command, openapi_command
from app.cli.optimize import optimize_command
from app.cli.serve import serve_command
from app.cli.tenants import keys_cli, tenants_cli
from app.cli.worker import worker_command
from app.version import VERSION

cli = typer.Typer(
    name="kemem",
    help="KeMem: memory for AI agents on plain PostgreSQL. Begin with `kemem serve`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("serve")(serve_command)
cli.command("worker")(worker_command)
cli.command("migrate")(migrate_command)
cli.command("draft-migration", hidden=True)(draft_migration_command)
cli.add_typer(tenants_cli, name="tenants")
cli.add_typer(keys_cli, name="keys")
cli.command("demo")(demo_command)
cli.command("eval")(evaluate_command)
cli.command("calibrate")(calibrate_command)
cli.command("purge")(purge_command)
cli.command("reembed")(reembed_command)
cli.command("optimize")(optimize_command)
cli.command("export")(export_command)
cli.command("import")(import_command)
cli.command("openapi")(openapi_command)


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
        told = sentence_for(error)
        if told is None:
            raise
        sentence, code = told
        print(f"kemem: {sentence}", file=sys.stderr)
        sys.exit(code)


if __name__ == "__main__":
    main()
