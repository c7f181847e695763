"""Weights, what they make of a clause, and that they are stored as they were."""

import numpy as np
import pytest

from app.language.keyless.classifier import BUCKETS, PLAIN, Classifier, buckets, load
from app.language.keyless.clauses import Clause
from benchmarks.keyless_training import save


def grams_for(text: str, weight: float):
    grams = np.zeros(BUCKETS, dtype=np.float32)
    grams[buckets(text)] = weight
    return grams


def test_cues_and_words_add_up():
    zero = np.zeros(BUCKETS, dtype=np.float32)
    plain = Clause("so it goes", 0, 10, {})
    assert Classifier(0.0, {}, zero).probability(plain) == 0.5
    told = Clause("I moved", 0, 7, {"past": 1.0, "unknown": 5.0})
    assert Classifier(0.0, {"past": 2.0}, zero).probability(told) == pytest.approx(0.8808, abs=1e-4)
    assert Classifier(0.0, {}, grams_for("I moved", 3.0)).probability(told) > 0.99


def test_cues_count_otherwise_among_people():
    zero = np.zeros(BUCKETS, dtype=np.float32)
    weights = Classifier(0.0, {"past": 2.0}, zero, {"past": -1.0, PLAIN: -1.0, "other": 5.0})
    told = Clause("I moved", 0, 7, {"past": 1.0})
    assert weights.probability(told) == pytest.approx(0.8808, abs=1e-4)
    assert weights.probability(told, among_people=True) == 0.5


def test_probability_stays_in_its_bounds():
    zero = np.zeros(BUCKETS, dtype=np.float32)
    clause = Clause("", 0, 0, {"a": 1.0})
    assert 0 < Classifier(0.0, {"a": -1e6}, zero).probability(clause) < 1e-9
    assert 1 - 1e-9 < Classifier(0.0, {"a": 1e6}, zero).probability(clause) < 1


def test_numbers_case_and_apostrophes_do_not_matter():
    assert buckets("I’m 34") == buckets("i'm 41")


def test_lead_is_not_judged():
    weights = Classifier(0.0, {}, grams_for("I have a dog.", 3.0))
    alone, led = Clause("Nice", 0, 4, {}), Clause("Nice", 0, 4, {}, lead="I have a dog.")
    assert weights.probability(alone) == weights.probability(led)


def test_stored_weights_are_the_same_and_so_are_their_bytes(tmp_path):
    weights = Classifier(
        -0.5, {"past": 2.0, "doubt": -1.0}, grams_for("我住在上海", 0.25), {"past": 0.5}
    )
    save(tmp_path / "a.npz", weights)
    save(tmp_path / "b.npz", weights)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = load(tmp_path / "a.npz")
    clause = Clause("我住在上海", 0, 5, {"past": 1.0})
    for among in (False, True):
        told = again.probability(clause, among_people=among)
        assert told == weights.probability(clause, among_people=among)


def test_missing_weights_are_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "klingon.npz")
