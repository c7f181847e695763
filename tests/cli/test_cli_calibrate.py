"""`kemem calibrate`: the pairs it ships, what it derives from them, and what it prints."""

import json
from collections import Counter
from contextlib import chdir

import pytest
from typer.testing import CliRunner

from app.cli.failures import sentence_for
from app.cli.main import cli
from app.evaluation.calibration import (
    KINDS,
    LANGUAGES,
    Measured,
    above,
    derive_floor,
    derive_threshold,
    distribution,
    shipped_pairs,
    taken,
)
from app.language.text.normal_forms import has_cjk, normalise


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shipped_pairs_are_many_and_each_is_there_once(language):
    pairs = shipped_pairs(language)
    counts = Counter(one.kind for one in pairs)
    assert counts.keys() == set(KINDS)
    assert min(counts.values()) >= 30
    assert all(has_cjk(one.first + one.second) == (language == "chinese") for one in pairs)
    forms = [frozenset({normalise(one.first), normalise(one.second)}) for one in pairs]
    assert len(set(forms)) == len(forms)
    assert all(len(form) == 2 for form in forms)


def measured(kind, *similarities, passes=True):
    return [Measured(kind, one, passes) for one in similarities]


def test_quantiles_are_those_of_one_class():
    pairs = measured("duplicate", 0.0, 0.25, 0.5, 0.75, 1.0) + measured("unrelated", 0.1)
    assert distribution(pairs, "duplicate") == {
        "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95,
    }  # fmt: skip
    assert set(distribution(pairs, "unrelated").values()) == {0.1}


def test_a_threshold_takes_what_is_near_and_passes_the_guard():
    pairs = [
        *measured("duplicate", 0.5, 0.6, 0.7),
        *measured("contradiction", 0.7, 0.8, passes=False),
        *measured("contradiction", 0.6),
        *measured("same_topic", 0.59),
        *measured("unrelated", 0.1),
    ]
    counts = taken(pairs, 0.6)
    assert [(one.pairs, one.near, one.merged) for one in counts.values()] == [
        (3, 2, 2), (1, 0, 0), (3, 3, 1), (1, 0, 0),
    ]  # fmt: skip


def others(**similarities):
    """Twenty pairs of each class but the duplicates, the highest as given and open."""
    pairs = measured("duplicate", 0.9)
    for kind in KINDS[1:]:
        high = similarities.get(kind, ())
        pairs += measured(kind, *high) + measured(kind, *[0.0] * (20 - len(high)), passes=False)
    return pairs


@pytest.mark.parametrize(
    ("pairs", "threshold"),
    [
        # Nothing passes the guard, so nothing is to be feared.
        (others(), 0.0),
        # One in twenty is allowed, the second is not.
        (others(contradiction=(0.9,)), 0.0),
        (others(contradiction=(0.9, 0.615)), 0.62),
        (others(contradiction=(0.9, 0.62)), 0.63),
        # Each class counts for itself.
        (others(contradiction=(0.9,), same_topic=(0.9,)), 0.0),
        (others(contradiction=(0.8, 0.7), same_topic=(0.8, 0.3), unrelated=(0.5, 0.5)), 0.71),
        (others(same_topic=(1.0, 1.0)), 1.0),
    ],
)
def test_the_threshold_is_what_the_other_classes_allow(pairs, threshold):
    assert derive_threshold(pairs) == threshold


def test_the_floor_keeps_all_but_one_in_twenty():
    nineteen = measured("duplicate", *[0.8] * 10) + measured("contradiction", *[0.8] * 8, 0.456)
    assert derive_floor(nineteen) == 0.45
    assert derive_floor([*nineteen, *measured("duplicate", 0.2)]) == 0.45
    assert derive_floor([*nineteen[:-1], *measured("duplicate", 0.2, 0.3)]) == 0.3
    # Strangers have no say, and a floor below zero keeps nobody out.
    assert derive_floor([*nineteen, *measured("unrelated", *[0.1] * 20)]) == 0.45
    assert derive_floor(measured("duplicate", -0.5)) == 0.0


def test_the_share_above_a_floor_counts_the_floor_itself():
    pairs = measured("unrelated", 0.4, 0.45, 0.5, 0.1)
    assert above(pairs, "unrelated", 0.45) == 0.5


def test_the_local_embedder_is_measured_without_a_database(folder):
    with chdir(folder):
        done = CliRunner().invoke(cli, ["calibrate", "--json", "c.json"])

    assert done.exit_code == 0, done.output
    report = json.loads((folder / "c.json").read_text())
    assert report["embedding_model"] == "wordllama/l2_supercat:256"
    assert report["default"]["duplicate_threshold"] == {"latin": 0.75, "cjk": 0.85}
    for language in LANGUAGES:
        found = report["languages"][language]
        middle = {kind: found["similarity"][kind]["p50"] for kind in KINDS}
        assert middle["duplicate"] > middle["same_topic"] > middle["unrelated"]
        for counted in found["duplicate_threshold"]["default"]["taken"].values():
            assert counted["merged"] <= counted["near"] <= counted["pairs"]
        wrong = found["duplicate_threshold"]["default"]["taken"]["contradiction"]
        # The defaults stand for what this command measures: if it disagrees, one is wrong.
        assert wrong["merged"] <= 0.05 * wrong["pairs"]
    assert "MEMORY_DUPLICATE_THRESHOLD=" in done.stdout
    assert "In force: 0.75 (Latin) and 0.85 (CJK)" in done.stdout
    assert [one.name for one in folder.iterdir()] == ["c.json"]


def test_a_setting_that_is_in_force_is_said():
    done = CliRunner().invoke(cli, ["calibrate"], env={"MEMORY_DUPLICATE_THRESHOLD": "0.9"})
    assert "In force: 0.9 for every language" in done.stdout


@pytest.mark.parametrize("model", ["bert", "openai/text-embedding-3-small"])
def test_an_embedder_that_is_not_there_is_said_so(model):
    done = CliRunner().invoke(cli, ["calibrate", "--model", model])
    sentence, code = sentence_for(done.exception)
    assert (code, done.stdout) == (1, "")
    assert "There is no such embedder here" in sentence
