"""Patterns that are compiled at first use do what compiled ones do."""

import pkgutil
import re
from importlib import import_module

import pytest

import app.language
from app.language.text import lazy_pattern as lazy_pattern_module
from app.language.text.lazy_pattern import LazyPattern, compile_patterns, lazy_pattern


def test_every_method_answers_as_the_compiled_pattern_does() -> None:
    text, said = r"(?P<word>t\w+)", "tea and Toast"
    lazy, compiled = lazy_pattern(text, re.IGNORECASE), re.compile(text, re.IGNORECASE)

    assert lazy.findall(said) == compiled.findall(said)
    assert lazy.sub("x", said) == compiled.sub("x", said)
    assert lazy.subn("x", said) == compiled.subn("x", said)
    assert lazy.split(said) == compiled.split(said)
    assert [match.span() for match in lazy.finditer(said)] == [(0, 3), (8, 13)]
    for method in ("search", "match", "fullmatch"):
        found = getattr(lazy, method)("tea")
        assert found["word"] == getattr(compiled, method)("tea")["word"]
    assert lazy.groupindex == {"word": 1}
    assert (lazy.flags, lazy.groups, lazy.pattern) == (compiled.flags, 1, text)


def test_nothing_is_compiled_before_the_first_use() -> None:
    lazy = LazyPattern("(", 0)

    assert lazy.pattern == "("
    with pytest.raises(re.error):
        lazy.search("(")


def test_unknown_attribute_is_missing() -> None:
    lazy = lazy_pattern("a")

    assert not hasattr(lazy, "unheard_of")


@pytest.mark.slow
def test_every_pattern_of_the_language_layer_compiles() -> None:
    """What an import showed before: no table holds a faulty expression."""
    for module in pkgutil.walk_packages(app.language.__path__, "app.language."):
        import_module(module.name)

    found = {(each.pattern, each._flags) for each in lazy_pattern_module._MADE}

    assert len(found) > 500
    for pattern, flags in found:
        re.compile(pattern, flags)


def test_patterns_are_compiled_ahead_for_a_server() -> None:
    pattern = lazy_pattern(r"tea|coffee")
    assert "search" not in vars(pattern)

    compile_patterns()

    assert "search" in vars(pattern)


def test_patterns_made_while_others_are_compiled_do_not_end_it() -> None:
    class Adding(LazyPattern):
        def __getattr__(self, name: str) -> object:
            lazy_pattern(r"made meanwhile")
            return super().__getattr__(name)

    adding = Adding(r"tea", 0)
    lazy_pattern_module._MADE.append(adding)
    try:
        compile_patterns()
    finally:
        lazy_pattern_module._MADE.remove(adding)

    assert "search" in vars(adding)
