"""Names are guessed from a query's look and taken out of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.names import name_candidates, without_names
from tests.support.tiers import first_fast


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What did Caroline research?", ["caroline"]),
        ("What are Melanie's kids called, and Caroline’s?", ["melanie", "caroline"]),
        ("Caroline moved where?", ["caroline"]),
        ("Would Jean-Luc and O'Brien come?", ["jean-luc", "o'brien"]),
        ("Did José call Müller?", ["josé", "müller"]),
        ("Tell me about Bob", ["bob"]),
        ("Please ask. Tell Bob!", ["bob"]),
        ("Where is NASA on Monday in May?", []),
        ("Did May 5 suit April?", ["april"]),
        ("Did John meet John?", ["john"]),
        ("what did caroline research", ["caroline", "research"]),
        ("WHAT DID CAROLINE SAY", ["caroline", "say"]),
        ("王芳什么时候搬家？", []),
        ("Bob喜欢什么", ["bob"]),
        ("What do I like?", []),
        ("", []),
    ],
)
def test_words_that_may_be_a_name_are_listed(text, names):
    assert name_candidates(text) == names


@pytest.mark.parametrize(
    ("text", "names", "left"),
    [
        ("What did Caroline research?", ["caroline"], "What did research?"),
        ("What are Caroline's kids called?", ["caroline"], "What are kids called?"),
        ("What are CAROLINE’S kids called?", ["Caroline"], "What are kids called?"),
        ("Did Mary Ann call Mary?", ["mary", "mary ann"], "Did call ?"),
        ("Is Annabel here?", ["anna"], "Is Annabel here?"),
        ("王芳喜欢什么", ["王芳"], "喜欢什么"),
        ("Bob喜欢什么", ["bob"], "喜欢什么"),
        ("Caroline?", ["caroline"], "Caroline?"),
        ("Caroline?", [], "Caroline?"),
        ("Is Bob's in?", ["BOB'S", " ", "+"], "Is in?"),
        ("Ann, Mary  Ann and Mary", ["mary ann"], "Ann, and Mary"),
    ],
)
def test_a_query_is_left_without_the_names(text, names, left):
    assert without_names(text, names) == left


@given(st.text(), st.lists(st.text()))
def test_a_query_never_loses_its_last_word(text, names):
    left = without_names(text, names)
    assert left == text or any(sign.isalnum() for sign in left)


@given(st.text(alphabet="Bob's é.王 5\n", max_size=60))
def test_each_candidate_is_a_casefolded_word_of_the_query(text):
    for name in name_candidates(text):
        assert name in text.casefold()
        assert name == name.casefold()


@first_fast("piece", ["A", "Ab ", "a'", "-", "王", "A-", "\n "])
def test_long_texts_take_time_in_proportion(piece):
    text = (piece * 200_000)[:200_000]
    name_candidates(text)
    without_names(text, ["a", "王"])
