"""Pages of the guide written from the code: errors, settings, events, commands, the client.

They are made at each build, so that they say what this release does.
"""

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import app.main  # noqa: F401 Loads every module, and with them every class of error.
import kemem
from app.cli.main import COMMANDS, load_command
from app.errors import DomainError
from app.platform.outbox.models import PublishedType
from app.settings import Settings, variable
from kemem import deprecated

ROOT: Final = Path(__file__).parents[1]

_SECTION: Final = re.compile(r"# --- (.+?) -+$")
_SETTING: Final = re.compile(r"#([A-Z][A-Z0-9_]*)=(.*)$")
_REFUSED: Final = re.compile(r'_refuse\(\s*(\d{3}), "(\w+)", f?"([^"]+)"')


def pages() -> Mapping[str, str]:
    """Every page by the name of its file."""
    return {
        "errors.md": errors_page(),
        "settings.md": settings_page(),
        "events.md": events_page(),
        "commands.md": commands_page(),
        "client.md": client_page(),
    }


def errors_page() -> str:
    rows = sorted({(kind.status, kind.code, kind.title) for kind in _errors(DomainError)})
    return "\n".join(
        [
            "# Errors",
            "",
            "Each answer that is an error is a problem document ([HTTP API](../api.md)) with a "
            "`code` that stays the same in later releases.",
            "",
            *_table(("status", "code", "title"), ((s, f"`{c}`", t) for s, c, t in rows)),
            "",
            "Before a request is complete, the connection itself may be refused:",
            "",
            *_table(("status", "code", ""), ((s, f"`{c}`", t) for s, c, t in _connection_errors())),
            "",
        ]
    )


def _errors(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for kind in base.__subclasses__():
        if "code" in vars(kind):
            yield kind
        yield from _errors(kind)


def _connection_errors() -> list[tuple[str, str, str]]:
    text = (ROOT / "app/platform/http/connections.py").read_text(encoding="utf-8")
    texts = {
        (status, code): detail.replace("{most}", "64 KiB and 100 lines")
        for status, code, detail in _REFUSED.findall(text)
    }
    return [(status, code, detail) for (status, code), detail in sorted(texts.items())]


def settings_page() -> str:
    fields = {variable(name): field for name, field in Settings.model_fields.items()}

    def told(name: str, shown: str) -> bool:
        """Whether what `.env.example` shows is a default, and no example."""
        return bool(shown) and fields[name].default is not None

    lines = [
        "# Settings",
        "",
        "All are environment variables; [Configure](../configuration.md) says how they are read, "
        "and which of them most deployments look at.",
    ]
    for title, blocks in _example_sections().items():
        lines += ["", f"## {title}", ""]
        rows = (
            (f"`{name}`", _allowed(fields[name]), f"`{shown}`" if told(name, shown) else "", text)
            for text, settings in blocks
            for name, shown in settings
        )
        lines += _table(("setting", "values", "default", "meaning"), rows)
    return "\n".join([*lines, ""])


def _example_sections() -> dict[str, list[tuple[str, list[tuple[str, str]]]]]:
    """Of each section of `.env.example` its blocks: a text, and the settings that it explains."""
    sections: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    text: list[str] = []
    settings: list[tuple[str, str]] = []
    blocks: list[tuple[str, list[tuple[str, str]]]] = []
    for line in [*(ROOT / ".env.example").read_text(encoding="utf-8").splitlines(), ""]:
        if section := _SECTION.match(line):
            blocks = sections.setdefault(section[1], [])
        elif setting := _SETTING.match(line):
            settings.append((setting[1], setting[2]))
        elif line.startswith("#"):
            text.append(line.removeprefix("#").strip())
        elif not line:
            if settings:
                blocks.append((" ".join(text), settings))
            text, settings = [], []
    return sections


def _allowed(field: Any) -> str:
    """The values of a setting in words: its type, choices and bounds."""
    choices = typing.get_args(field.annotation)
    if typing.get_origin(field.annotation) is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in choices)
    if isinstance(field.annotation, types.UnionType):
        [inner] = [choice for choice in choices if choice is not type(None)]
    else:
        inner = field.annotation
    metadata = [*field.metadata, *getattr(inner, "__metadata__", ())]
    base = getattr(inner, "__origin__", inner)
    low = [
        f"{sign} {value:g}".strip()
        for bound, sign in (("ge", "from"), ("gt", "above"), ("le", "to"))
        for value in [getattr(item, bound, None) for item in metadata]
        if isinstance(value, int | float)
    ]
    kinds = {bool: "true or false", int: "a whole number", float: "a number", Path: "a folder"}
    return " ".join([kinds.get(base, "text"), *low])


def events_page() -> str:
    return "\n".join(
        [
            "# Events of webhooks",
            "",
            "[Webhooks](../webhooks.md) subscribe to these types, or to `*` for all. Each carries "
            "ids, codes and numbers, and no content.",
            "",
            *(f"- `{kind}`" for kind in typing.get_args(PublishedType)),
            "",
            "`webhook.test` is sent by `POST /v1/webhooks/{id}/test` alone.",
            "",
        ]
    )


def commands_page() -> str:
    lines = ["# Commands", "", "`kemem COMMAND --help` says the same."]
    for name, listed in COMMANDS.items():
        if not listed.hidden:
            lines += ["", f"## kemem {name}", "", *_command(load_command(name), f"kemem {name}")]
    return "\n".join([*lines, ""])


def _command(command: Any, path: str) -> Iterator[str]:
    yield inspect.cleandoc((command.help or "").partition("\f")[0])
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from ("", f"### {path} {name}", "", *_command(inner, f"{path} {name}"))
        return
    if rows := list(_parameters(command)):
        yield from ("", *_table(("argument or option", "meaning"), rows))


def _parameters(command: Any) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        if parameter.hidden:
            continue
        option = parameter.param_type_name == "option"
        shown = ", ".join(parameter.opts) if option else parameter.name.upper()
        default = parameter.default
        told = isinstance(default, str | int | float) and not isinstance(default, bool) and default
        yield f"`{shown}`", (parameter.help or "") + (f" Default: `{default}`." if told else "")


def client_page() -> str:
    groups = _groups()
    lines = [
        "# Methods of the Python client",
        "",
        "`AsyncMemory` has the same methods with `await`. [Python client](../client.md) has what "
        "they have in common: settings, errors, retries.",
        "",
        "## Memory",
        *_methods(kemem.Memory, "memory"),
    ]
    for name, kind in groups.items():
        lines += ["", f"## memory.{name}", *_methods(kind, f"memory.{name}")]
    return "\n".join([*lines, ""])


def _groups() -> dict[str, type]:
    """The groups of methods by the property of `Memory` that gives them."""
    members = inspect.getmembers(kemem.Memory)
    getters = {
        name: getattr(member, "fget", None) or getattr(member, "func", None)
        for name, member in members
        if not name.startswith("_")
    }
    results = {
        name: typing.get_type_hints(getter).get("return")
        for name, getter in getters.items()
        if inspect.isfunction(getter)
    }
    return {
        name: kind
        for name, kind in results.items()
        if inspect.isclass(kind) and kind.__module__.startswith("kemem.")
    }


def _methods(kind: type, path: str) -> Iterator[str]:
    for name, method in _public_methods(kind).items():
        signature = inspect.signature(method)
        rest = [item for item in signature.parameters.values() if item.name != "self"]
        shown = re.sub(r"\bkemem\.[\w.]+\.", "", str(signature.replace(parameters=rest)))
        yield from ("", f"### {path}.{name}", "", "```text", f"{name}{shown}", "```", "")
        yield from _described(inspect.cleandoc(method.__doc__ or ""))


def _described(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: what stands under `Args:` and the like becomes a list."""
    for line in docstring.splitlines():
        if re.fullmatch(r"(Args|Raises|Returns|Yields):", line):
            yield from (line, "")
        elif entry := re.match(r" {4}([\w*, ]+): (.*)", line):
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield line.strip() if line.startswith("    ") else line


def _public_methods(kind: type) -> dict[str, Any]:
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("kemem.")]
    return {
        name: member
        for base in bases
        if base.__module__ != deprecated.__name__
        for name, member in vars(base).items()
        if not name.startswith("_") and inspect.isfunction(member)
    }


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        cells = (" ".join(str(cell).split()).replace("|", "\\|") for cell in row)
        yield "| " + " | ".join(cells) + " |"
