"""Which processors are allowed: entry points of real distributions in a folder on the path."""

import sys
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.platform.plugins.catalogue import allowed_processors
from tests.support.processors import install, install_example

CODE = """
class Good:
    timeout_seconds = 2
    on_error = "refuse"

    def before_append(self, point):
        return point

    async def after_search(self, point):
        return None

class Other:
    def before_store(self, point):
        return point

class Empty:
    pass

class Slow(Other):
    timeout_seconds = 61

class Never(Other):
    timeout_seconds = float("nan")

class Strange(Other):
    on_error = "ignore"

class Broken:
    def __init__(self):
        raise RuntimeError("hunter2")
"""


@pytest.fixture
def folder(tmp_path: Path):
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in ("acme_processors", "acme_code", "acme_more"):
        sys.modules.pop(name, None)


def offer(folder: Path, **points: str) -> None:
    install(folder, "acme_code", CODE, **points)


def test_none_is_loaded_that_is_not_named(folder):
    offer(folder, broken="acme_code:Broken")

    assert allowed_processors("") == []
    assert allowed_processors(" , ") == []
    assert "acme_code" not in sys.modules


def test_they_are_loaded_in_the_order_of_the_setting(folder):
    offer(folder, good="acme_code:Good", other="acme_code:Other")

    other, good = allowed_processors(" other, good ,")

    assert (other.name, good.name) == ("other", "good")
    assert (other.timeout_seconds, other.on_error) == (1.0, "skip")
    assert (good.timeout_seconds, good.on_error) == (2.0, "refuse")
    assert good.points == {"before_append", "after_search"}
    assert good.waits == {"after_search"}


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        ("acme_code:Missing", "cannot be loaded: AttributeError"),
        ("acme_nowhere:Good", "cannot be loaded: ModuleNotFoundError"),
        ("acme_code:Broken", "cannot be loaded: RuntimeError"),
        ("acme_code:CODE", "cannot be loaded"),
        ("acme_code:Empty", "at least one method of before_append"),
        ("acme_code:Slow", "timeout_seconds above 0 and up to 60"),
        ("acme_code:Never", "timeout_seconds above 0"),
        ("acme_code:Strange", 'on_error "skip" or "refuse"'),
    ],
)
def test_one_that_cannot_be_used_stops_the_start(folder, point: str, sentence: str):
    offer(folder, acme=point)

    with pytest.raises(ConfigurationError) as raised:
        allowed_processors("acme")

    assert "'acme'" in str(raised.value)
    assert sentence in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_an_unknown_name_is_said_with_those_there_are(folder):
    offer(folder, good="acme_code:Good")

    with pytest.raises(ConfigurationError, match=r"MEMORY_PROCESSORS names 'god'.*installed: good"):
        allowed_processors("good,god")
    with pytest.raises(ConfigurationError, match="'good' twice"):
        allowed_processors("good,good")


def test_a_name_that_two_packages_offer_is_nobodys(folder):
    offer(folder, good="acme_code:Good")
    install(folder, "acme_more", CODE, good="acme_more:Good")

    with pytest.raises(ConfigurationError, match="several"):
        allowed_processors("good")


def test_the_package_of_the_docs_is_one(folder):
    names = install_example(folder)

    assert [one.name for one in allowed_processors(",".join(names))] == ["stop_words", "cards"]
