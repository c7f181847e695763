"""Ids that a bound key may choose."""

from uuid import UUID

import pytest

from app.errors import IdNotAllowedError
from app.identity.tenants.access import Access, own_prefix, plain_prefix
from app.platform.values.fields import LONGEST

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


@pytest.mark.parametrize(
    "name", ["张三", "José", "山田 太郎", "-ana", "a b", "x" * 28, "x" * LONGEST]
)
def test_name_that_not_every_id_can_hold_has_a_hash_as_a_second_prefix(name: str) -> None:
    named = own_prefix(name, None)
    assert named is not None
    plain = plain_prefix(named)
    access = Access("t", user_id=name, own_prefix=named)

    assert plain == plain_prefix(named) != plain_prefix(f"{name}~")
    assert plain.isascii()
    assert len(plain) + len(str(UUID(int=0))) <= LONGEST
    for value in (f"{named}旅行", f"{plain}{UUID(int=0)}", f"{plain}a=b"):
        access.refuse_choice("message_id", value)
    for other in ("trip", plain, f"{plain}a:b", f"{plain}a~b", f"x{plain}a", plain_prefix("李四:")):
        with pytest.raises(IdNotAllowedError) as refused:
            access.refuse_choice("message_id", other)
        assert refused.value.members["prefix"] == plain


def test_prefix_of_a_plain_name_has_no_second_form() -> None:
    longest = "x" * 27
    assert len(longest) + len(":") + len(str(UUID(int=0))) == LONGEST
    assert plain_prefix("ana:") == "ana:"
    assert plain_prefix(f"{longest}:") == f"{longest}:"
    assert plain_prefix(f"{longest}x:") != f"{longest}x:"


def test_no_name_makes_the_hash_of_another_its_prefix() -> None:
    plain = plain_prefix("张三:")
    for name in (plain, plain[:-1], f"{plain}a", "张三~", "张", "ana"):
        for named in (own_prefix(name, None), own_prefix(None, name)):
            assert named is not None
            with pytest.raises(IdNotAllowedError):
                Access("t", user_id=name, own_prefix=named).refuse_choice("x", f"{plain}trip")
