"""Ids that a bound key may choose."""

import pytest

from app.errors import IdNotAllowedError
from app.identity.tenants.access import Access, own_prefix

ANA = Access("t", user_id="ana", own_prefix=own_prefix("ana", None))
SUPPORT = Access("t", agent_id="support", own_prefix=own_prefix(None, "support"))


def test_key_of_nobody_chooses_any_id() -> None:
    assert own_prefix(None, None) is None
    for value in ("s1", "ana:s1", None):
        Access("t").refuse_choice("session_id", value)


@pytest.mark.parametrize("value", ["ana:1", "ana:trip@2026.1_a|b+c=d-e", None])
def test_key_of_a_user_chooses_under_its_name(value: str | None) -> None:
    ANA.refuse_choice("session_id", value)


@pytest.mark.parametrize(
    "value",
    ["s1", "ana", "ana:", "ben:1", "anab:1", "support~1", "ana~1",
     # Of a user `ana:b`, and of an agent `ana:b`.
     "ana:b:1", "ana:b~1"],
)  # fmt: skip
def test_ids_of_others_are_refused_in_the_same_words(value: str) -> None:
    with pytest.raises(IdNotAllowedError) as refused:
        ANA.refuse_choice("session_id", value)

    assert refused.value.members == {"field": "session_id", "prefix": "ana:"}
    assert value == "ana:" or value not in refused.value.detail.split("`")


def test_key_of_an_agent_chooses_under_its_name() -> None:
    SUPPORT.refuse_choice("user_id", "support~ana")
    for value in ("ana", "support:ana", "support~", "support~a~b", "support"):
        with pytest.raises(IdNotAllowedError):
            SUPPORT.refuse_choice("user_id", value)


def test_user_that_the_key_is_bound_to_is_its_own() -> None:
    ANA.refuse_choice("user_id", "ana")
    with pytest.raises(IdNotAllowedError):
        ANA.refuse_choice("block_id", "ana")


def test_key_of_both_chooses_under_the_user() -> None:
    assert own_prefix("ana", "support") == "ana:"
