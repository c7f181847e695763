"""`docs/client.md` lists every method and every deprecated name."""

import re
from pathlib import Path

import pytest

import kemem
from kemem import deprecated
from tests.client.test_client_generated import methods

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
GROUPS = {
    "blocks": kemem.Blocks, "folders": kemem.Folders, "projects": kemem.Projects,
    "profiles": kemem.Profiles, "graph": kemem.Graph, "forgetting": kemem.Forgetting,
    "erasures": kemem.Erasures, "statistics": kemem.Statistics,
}  # fmt: skip
# Described in a sentence of their own.
PROPERTIES = {"base_url", "acting_user"}


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_method_of_a_client_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)(?:\(|`)", section("Methods of `Memory` and `AsyncMemory`")))

    assert methods(kemem.Memory).keys() - GROUPS.keys() - PROPERTIES <= listed


@pytest.mark.parametrize("group", GROUPS)
def test_every_method_of_a_group_is_listed_and_no_other(group) -> None:
    [row] = [
        line for line in section("Groups of methods").splitlines()
        if line.startswith(f"| `memory.{group}`")
    ]  # fmt: skip

    assert set(re.findall(r"`(\w+)`", row)) == methods(GROUPS[group]).keys()


def test_every_deprecated_name_is_listed_with_its_successor() -> None:
    rows = re.findall(r"\| `([\w.]+)` \| `([\w.]+)` \|", section("Deprecated names"))
    kinds = {
        "": deprecated.OldMemoryNames, "blocks": deprecated.OldBlockNames,
        "folders": deprecated.OldFolderNames, "projects": deprecated.OldProjectNames,
        "erasures": deprecated.OldErasureNames,
    }  # fmt: skip
    known = {
        (f"{group}.{name}".lstrip("."), method.__doc__)
        for group, kind in kinds.items()
        for name, method in vars(kind).items()
        if not name.startswith("_")
    }

    assert len(rows) == len(known)
    for old, new in rows:
        [doc] = [doc for name, doc in known if name == old]
        assert f"`{new.rpartition('.')[2]}`" in doc
