"""The attributes that a statement gives, whoever wrote it: plainly said, and of the present."""

import pytest

from app.language.keyless.attributes import (
    LONGEST,
    attribute_of,
    attributes_of,
    comparable,
    is_more_precise,
    is_same_value,
)

GIVEN = [
    ("I live in Munich", "residence", "Munich"),
    ("The user lives in Munich.", "residence", "Munich"),
    ("Lives in Munich", "residence", "Munich"),
    ("i live in munich", "residence", "munich"),
    ("I live in New York City", "residence", "New York City"),
    ("I live in Rome, Italy.", "residence", "Rome, Italy"),
    ("I live in a flat in Munich", "residence", "a flat in Munich"),
    ("Last month I moved to Lisbon", "residence", "Lisbon"),
    ("I moved to Lisbon in 2008.", "residence", "Lisbon"),
    ("I’ve been living in Rome for ten years", "residence", "Rome"),
    ("I've lived in Rome since 2019", "residence", "Rome"),
    ("Hi! I'm Ana Byron, and I need a visa", "name", "Ana Byron"),
    ("The user's name is Ada Byron.", "name", "Ada Byron"),
    ("The user is 34 years old.", "age", "34"),
    ("I turned thirty-four last week", "age", "thirty-four"),
    ("My birthday is on 3 May", "birthday", "3 May"),
    ("The user was born on 3 May 1988 in Tromsø.", "birthday", "3 May 1988"),
    ("The user is originally from Kyoto.", "origin", "Kyoto"),
    ("I work at Bosch", "employer", "Bosch"),
    ("I started at Acme in March 2021", "employer", "Acme"),
    ("I started a new job at Globex last week", "employer", "Globex"),
    ("I have been working at Siemens since 2015", "employer", "Siemens"),
    ("The user works as a baker.", "occupation", "baker"),
    ("I'm a nurse at Charité", "occupation", "nurse"),
    ("I'm a senior software engineer", "occupation", "senior software engineer"),
    ("I'm a student at TU Munich", "school", "TU Munich"),
    ("The user's wife is called Ines.", "partner", "Ines"),
    ("The user is married to Tom.", "partner", "Tom"),
    ("I got married last year", "marital_status", "married"),
    ("I'm vegan.", "diet", "vegan"),
    ("My budget is $85,000", "budget", "$85,000"),
    ("The user's time zone is CET.", "timezone", "CET"),
    ("The user's native language is Tagalog.", "language", "Tagalog"),
    ("我叫张三", "name", "张三"),
    ("我住在深圳", "residence", "深圳"),
    ("住在慕尼黑", "residence", "慕尼黑"),
    ("我住在慕尼黑，直到现在", "residence", "慕尼黑"),
    ("我住在慕尼黑。直到2019年我都不会德语", "residence", "慕尼黑"),
    ("用户住在慕尼黑", "residence", "慕尼黑"),
    ("用戶住在臺北", "residence", "臺北"),
    ("我上个月搬到了苏州", "residence", "苏州"),
    ("我从2019年起一直住在深圳", "residence", "深圳"),
    ("用户今年28岁", "age", "28"),
    ("用户的生日是11月3号", "birthday", "11月3号"),
    ("我是1990年5月3日出生的", "birthday", "1990年5月3日"),
    ("用户来自青岛", "origin", "青岛"),
    ("用户是四川人", "origin", "四川"),
    ("我在腾讯工作", "workplace", "腾讯"),
    ("我在招商银行上班", "employer", "招商银行"),
    ("去年我入职字节跳动", "employer", "字节跳动"),
    ("用户是一名小学老师", "occupation", "小学老师"),
    ("我的工作是产品经理", "occupation", "产品经理"),
    ("我在中国人民大学读书", "school", "中国人民大学"),
    ("用户的老公叫李强", "partner", "李强"),
    ("我离婚了", "marital_status", "离婚"),
    ("我吃素", "diet", "吃素"),
    ("我的预算是二十万", "budget", "二十万"),
    ("我母语是粤语", "language", "粤语"),
]
NONE = [
    "The user likes tea.",
    "I'm a morning person.",
    "I'm 34 weeks pregnant",
    "I live in fear.",
    "I work from home",
    "The user has a cat named Tom.",
    "Call me tomorrow",
    "用户喜欢茶",
    "我叫外卖",
    "我住院了",
    "",
    "x" * (LONGEST + 1),
    # A fragment.
    "I live in",
    # Of somebody else.
    "The user's sister lives in Paris.",
    "My wife Ana is a doctor and works at Charité.",
    "My wife is German",
    "用户妹妹在伦敦工作",
    "妈妈身体不好，住在北京",
    "我的猫叫奥利奥，今年4岁",
    "我养了一只猫，今年三岁",
    "我有个朋友在那边上班，住在深圳",
    # A question, a wish, a hypothesis.
    "Do I live in Munich?",
    "If I live in Munich, what taxes do I pay?",
    "I want to live in Munich",
    "I'm going to work at Acme",
    "你住在哪里？",
    "我想住在大理",
    "我打算搬到成都",
    "如果我住在北京",
    # Denied.
    "I'm not vegan",
    "我不吃素",
]
PAST_OR_FOR_A_WHILE = [
    "I used to live in Rome",
    "I lived in Rome until 2019",
    "I worked at Google for five years",
    "I studied at MIT",
    "I'm staying in Rome this week",
    "I'm living in Rome for two weeks",
    "I live in Munich, but only until June",
    "前年我在广州工作",
    "我去年住在广州",
    "我以前在百度上班",
    "我曾经住在北京",
    "我2015年在北京工作",
    "我这周住在上海",
    "我在上海出差",
    "我住在罗马，直到2019年",
    "用户在博世工作，到2019年为止。",
]


@pytest.mark.parametrize(("content", "attribute", "value"), GIVEN)
def test_a_plain_statement_gives_an_attribute_and_its_value_as_written(content, attribute, value):
    assert attribute_of(content)[:2] == (f"user.{attribute}", value)


@pytest.mark.parametrize("content", NONE)
def test_other_statements_give_none(content):
    assert attribute_of(content) is None


@pytest.mark.parametrize("content", PAST_OR_FOR_A_WHILE)
def test_what_was_or_is_for_a_while_gives_none(content):
    assert attribute_of(content) is None


def test_a_statement_may_give_several():
    found = attributes_of("I live in Munich and work at Bosch as an engineer.")

    assert [each[:2] for each in found] == [
        ("user.residence", "Munich"),
        ("user.employer", "Bosch"),
        ("user.occupation", "engineer"),
    ]
    found = attributes_of("我叫李雷，今年30岁，住在上海，喜欢喝茶")
    assert [each.value for each in found] == ["李雷", "30", "上海"]


def test_what_is_said_on_of_somebody_named_is_not_of_the_speaker():
    found = attributes_of("我老公叫李强，在银行工作")
    assert [each[:2] for each in found] == [("user.partner", "李强")]


def test_what_a_statement_says_besides_is_told_without_its_times():
    assert attribute_of("I live in Munich with my wife Ana").rest == {"wife", "ana"}
    assert attribute_of("I have been living in Munich since May 2019").rest == frozenset()


def test_what_began_is_told_from_what_is():
    assert attribute_of("I moved to Lisbon last month").began
    assert not attribute_of("I live in Lisbon").began
    assert attribute_of("我入职了字节跳动").began


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Munich.", "munich"),
        ("《臺北》", "台北"),
        ("$85,000", "85k"),
        ("thirty-four", "34"),
        ("二十万", "20万"),
        ("5月3日", "五月三号"),
    ],
)
def test_values_are_compared_as_values(one, other):
    assert is_same_value(one, other)
    assert is_same_value(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("二十万", "十万"),
        ("$85,000", "85"),
        ("12:30", "7:40"),
        ("12:30", "12"),
        ("York", "New York"),
    ],
)
def test_a_value_is_no_part_of_another(one, other):
    for longer, shorter in ((one, other), (other, one)):
        assert not is_same_value(longer, shorter)
        assert not is_more_precise(longer, shorter, "user.residence")


@pytest.mark.parametrize(
    ("longer", "shorter", "attribute"),
    [
        ("Munich-Schwabing", "Munich", "residence"),
        ("a flat in Munich", "Munich", "residence"),
        ("Rome, Italy", "Rome", "residence"),
        ("北京海淀", "北京", "residence"),
        ("王小明", "小明", "name"),
        ("3 May 1988", "3 May", "birthday"),
    ],
)
def test_a_value_is_said_more_precisely(longer, shorter, attribute):
    assert is_more_precise(longer, shorter, f"user.{attribute}")
    assert not is_more_precise(shorter, longer, f"user.{attribute}")


def test_of_chinese_names_the_family_name_stands_first():
    assert not is_more_precise("张三丰", "张三", "user.name")


def test_values_have_one_form():
    assert comparable("the Netherlands.") == comparable("Netherlands")


@pytest.mark.parametrize(
    "content",
    [
        "I moved to TypeScript last year",
        "I moved to Node.js",
        "I start at 9 AM",
        "I started at 9 AM",
        "I landed at Heathrow",
        "I work with Ana on the API",
        "I'm a sucker for Italian food",
        "I'm a regular at Starbucks",
        "I live near Ana",
        "Hi, I'm at the airport",
        "我叫朋友吃饭",
        "我叫妈妈起床",
        "我住在奶奶家",
        "我搬到了三楼",
    ],
)
def test_what_only_looks_like_an_attribute_gives_none(content):
    assert attribute_of(content) is None


def test_what_somebody_wants_to_be_called_is_not_their_name():
    assert attribute_of("Call me Bob")[:2] == ("user.nickname", "Bob")
    assert attribute_of("叫我小王就行")[:2] == ("user.nickname", "小王")
