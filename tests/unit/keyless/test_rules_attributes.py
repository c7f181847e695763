"""The attribute a stored sentence gives, whoever wrote it."""

import pytest

from app.language.keyless.attributes import attribute_of, comparable

GIVEN = [
    ("The user lives in Munich.", "user.residence", "Munich"),
    ("Lives in Munich", "user.residence", "Munich"),
    ("I live in New York City", "user.residence", "New York City"),
    ("She moved to Lyon last year", "user.residence", "Lyon"),
    ("The user's name is Ada Byron.", "user.name", "Ada Byron"),
    ("The user is 34 years old.", "user.age", "34"),
    ("The user was born on 3 May 1988 in Tromsø.", "user.birthday", "3 May 1988"),
    ("The user is originally from Kyoto.", "user.origin", "Kyoto"),
    ("The user works at Bosch as an engineer.", "user.employer", "Bosch"),
    ("The user works as a baker.", "user.occupation", "baker"),
    ("The user is a pediatric nurse.", "user.occupation", "pediatric nurse"),
    ("The user's wife is called Ines.", "user.partner", "Ines"),
    ("The user is married to Tom.", "user.partner", "Tom"),
    ("The user is vegan.", "user.diet", "vegan"),
    ("The user's favourite colour is teal.", "user.favourite_colour", "teal"),
    ("My favorite color is teal", "user.favourite_colour", "teal"),
    ("The user's time zone is CET.", "user.timezone", "CET"),
    ("The user's native language is Tagalog.", "user.language", "Tagalog"),
    ("用户住在慕尼黑", "user.residence", "慕尼黑"),
    ("住在慕尼黑", "user.residence", "慕尼黑"),
    ("上个月用户搬到苏州了", "user.residence", "苏州"),
    ("用户叫王小明", "user.name", "王小明"),
    ("用户今年28岁", "user.age", "28"),
    ("用户的生日是11月3号", "user.birthday", "11月3号"),
    ("用户来自青岛", "user.origin", "青岛"),
    ("用户是四川人", "user.origin", "四川"),
    ("用户在华为上班", "user.employer", "华为"),
    ("用户是一名小学老师", "user.occupation", "小学老师"),
    ("用户的老公叫李强", "user.partner", "李强"),
    ("用户最喜欢的电影是《霸王别姬》", "user.favourite_film", "霸王别姬"),
    ("用戶住在臺北", "user.residence", "臺北"),
]
NONE = [
    "The user likes tea.",
    "The user is a morning person.",
    "The user's sister lives in Paris.",
    "The user has a cat named Tom.",
    "用户喜欢茶",
    "用户妹妹在伦敦工作",
    "",
    "x" * 301,
]


@pytest.mark.parametrize(("content", "attribute", "value"), GIVEN)
def test_a_sentence_gives_an_attribute_and_its_value_as_written(content, attribute, value):
    assert attribute_of(content) == (attribute, value)


@pytest.mark.parametrize("content", NONE)
def test_other_sentences_give_none(content):
    assert attribute_of(content) is None


def test_values_are_compared_without_case_marks_and_kind_of_signs():
    assert comparable("Munich.") == comparable("munich")
    assert comparable("《臺北》") == comparable("台北")
