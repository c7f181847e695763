"""Questions, questions for a time, and texts that name one: told in English and Chinese."""

import pytest

from app.language.text.traits import (
    asks_when,
    cjk_share,
    has_time_expression,
    is_question,
    word_count,
)
from tests.support.tiers import first_fast


@pytest.mark.parametrize(
    "text",
    [
        "What do you like?",
        "That is nice! And you? 😀",
        'She asked "Why?"',
        "Really?!",
        "what did you eat yesterday",
        "how many cats do you have",
        "Do you like tea",
        "so, where are you going",
        "你喜欢什么？",
        "你喜歡茶嗎",
        "你吃了么",
        "那你呢",
        "你什么时候去北京",
        "他是不是医生",
        "有没有吃饭。",
        "你家在哪里",
        "我今天去了公园。你呢？",
    ],
)
def test_a_text_that_ends_by_asking_is_a_question(text):
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?? no.",
        "I like tea.",
        "You know what? I like tea.",
        "When I was young I lived in Rome.",
        "What a day!",
        "Which is why I moved.",
        "我喜欢茶。",
        "你知道吗？我搬家了。",
        "我不知道他什么时候来",
        "我还在等呢",
        "我正忙着呢。",
        "谁都知道这件事",
        "我没什么爱好",
        "好的",
    ],
)
def test_a_text_that_ends_by_stating_is_none(text):
    assert not is_question(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("I don't know.", 3),
        ("...", 0),
        ("我喜欢喝茶", 3),
        ("我用 Python 3.11", 3),
        ("well-known node.js", 2),
        ("喝茶", 1),
        ("茶", 1),
    ],
)
def test_words_are_counted_two_chinese_signs_to_one(text, count):
    assert word_count(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "When did Caroline go to the group?",
        "when's your birthday",
        "When Jon has lost his job as a banker?",
        "Where and when did they meet?",
        "Do you remember when she moved?",
        "What day is the meeting?",
        "In which year was he born?",
        "What's the exact date of the wedding?",
        "What is the date of the exam?",
        "How long ago did he leave?",
        "How many weeks passed between the two trips?",
        "他什么时候去北京",
        "她是哪天搬家的？",
        "你生日是几月几号",
        "會議何時開始",
        "他们认识多久了",
        "他哪一年毕业的？",
        "考试是星期几",
        "到現在幾年了",
    ],
)
def test_a_question_for_a_time_is_told(text):
    assert asks_when(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What does she do when she is sad?",
        "What time-management techniques do they use?",
        "What time management techniques do they use?",
        "How often does he run?",
        "Where did he go in May 2023?",
        "How many cats does she have?",
        "她难过的时候会做什么？",
        "他几岁了",
        "有几个人去了",
        "他最喜欢什么",
    ],
)
def test_a_question_for_something_else_is_told_from_it(text):
    assert not asks_when(text)


@pytest.mark.parametrize(
    "text",
    [
        "I went there yesterday",
        "last week was hard",
        "this past weekend",
        "we met in May",
        "born on 5 March",
        "back in 2022",
        "on Monday",
        "three months ago",
        "an hour later",
        "a few days ago",
        "at 3pm",
        "at 15:30",
        "2023-05-08",
        "the night before",
        "昨天去了公园",
        "上周很忙",
        "三個月前搬家",
        "5月3号",
        "五月三日",
        "下星期一开会",
        "2022年毕业",
        "晚上八点半",
        "去年夏天",
        "中秋节回家",
    ],
)
def test_a_named_time_is_seen(text):
    assert has_time_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like tea",
        "It may rain",
        "They march on",
        "one day at a time",
        "room 2150",
        "我喜欢喝茶",
        "他是医生",
        "周先生是老师",
        "公园里有一些人",
    ],
)
def test_a_text_without_a_time_has_none(text):
    assert not has_time_expression(text)


@first_fast("piece", ["when ", "what the ", "?", "。", "date of ", "一", "12", "a few ", "how "])
def test_long_texts_take_time_in_proportion(
    piece,
):
    text = (piece * 200_000)[:200_000]
    for trait in (is_question, word_count, asks_when, has_time_expression):
        trait(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0),
        ("tea", 0),
        ("...", 0),
        ("喝茶", 1),
        ("喝茶。", 1),
        ("喝茶 ab", 0.5),
        ("我喝tea吃a", 3 / 7),
    ],
)
def test_the_share_of_chinese_is_of_letters_and_digits(text, share):
    assert cjk_share(text) == pytest.approx(share)
