"""What a question about a conversation asks for, and what states a wish, in English and Chinese."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.conversation_questions import (
    ConversationQuestion,
    conversation_question,
    states_wish,
    without_frame,
)
from app.language.text.function_words import content_words

OF_REPLIES = [
    "Which hotel did you recommend for Lisbon?",
    "What have you suggested about my knee?",
    "How did you explain the tax form to me?",
    "What was your advice on the lease?",
    "Remind me of your three steps for the sourdough.",
    "The recipe you gave me had how many eggs?",
    "Which books were listed when you helped with my course?",
    "What was I advised to do about the leak?",
    "What did the assistant say about visas?",
    "你推荐的餐厅叫什么？",
    "你之前给我推荐了哪家酒店？",
    "您建议我怎么练琴？",
    "你上次解释的公式是什么？",
    "助手说过签证要多久？",
    "你的建议里有几条？",
]

OF_THE_USER = [
    "Where do I live?",
    "What is my sister called?",
    "What did I tell you about my knee?",
    "Which flat did I say I had looked at?",
    "When did I mention the interview?",
    "Did I ask you to remind me of the rent?",
    "What did I say when you recommended the hotel?",
    "How far is the lake from the cabin?",
    "我住在哪里？",
    "我说过我喜欢喝什么茶？",
    "我告诉你的密码提示是什么？",
    "我妹妹叫什么名字？",
]

OF_ALL = [
    "In what order did I visit the three towns?",
    "List all the plants that I bought.",
    "List every instrument I play.",
    "How has my running changed over time?",
    "Walk me through the renovation.",
    "Which topics came up throughout our chats?",
    "我一共去了几次医院？",
    "我按什么顺序看了这些房子？",
    "列出我买过的植物。",
    "我先后住过哪些城市？",
]

SUMMARIES = [
    "Summarise what happened with the lease.",
    "Could you give me an overview of my studies?",
    "Can I have a recap of the move?",
    "How did my plan for the garden develop?",
    "总结一下我搬家的经过。",
    "请概括我的学习计划。",
    "回顾一下花园的改造。",
]

NO_SUMMARY = [
    "Where is the summit?", "What is the price of the tea?", "花园有多大？", "Did the dog bark?",
]  # fmt: skip


@pytest.mark.parametrize("text", OF_REPLIES)
def test_a_question_for_a_reply_is_told(text: str) -> None:
    assert conversation_question(text).reply


@pytest.mark.parametrize("text", OF_THE_USER)
def test_a_question_for_what_the_user_said_is_none_for_a_reply(text: str) -> None:
    asked = conversation_question(text)

    assert not asked.reply
    assert not asked.summary


@pytest.mark.parametrize("text", OF_ALL)
def test_a_question_for_all_of_it_is_told(text: str) -> None:
    assert conversation_question(text).everything


@pytest.mark.parametrize("text", SUMMARIES)
def test_a_question_for_the_course_of_something_is_told(text: str) -> None:
    assert conversation_question(text).summary


@pytest.mark.parametrize("text", NO_SUMMARY)
def test_a_question_for_one_place_asks_for_nothing_else(text: str) -> None:
    assert conversation_question(text) == ConversationQuestion()


@pytest.mark.parametrize(
    ("text", "left", "gone"),
    [
        ("Can you tell me what the user said about bees?", ["bees"], ["user", "tell"]),
        ("Could you please summarise the lease?", ["lease"], ["summarise"]),
        ("In what order did I mention the towns?", ["towns"], ["order", "mention"]),
        ("Throughout our conversations, which pets came up?", ["pets"], ["conversations"]),
        ("Can you give me an overview of the garden?", ["garden"], ["overview"]),
        ("What was the user's cat called?", ["cat"], ["user"]),
        ("用户的猫叫什么？", ["猫"], ["用户"]),
        ("总结一下花园的改造", ["花园"], ["总结"]),
        ("按时间顺序列出城市", ["城市"], ["顺序", "列出"]),
        ("在我们的对话中我提到过什么茶？", ["茶"], ["对话", "提到"]),
    ],
)
def test_words_that_only_frame_a_question_go(text: str, left: list[str], gone: list[str]) -> None:
    bare = without_frame(text)

    assert all(word in bare for word in left)
    assert not any(word in bare for word in gone), bare


@pytest.mark.parametrize(
    "text",
    [
        "Can you summarise?", "总结", "the user", "用户", "助手", "In what order?", "?", "",
        "请总结一下我们的对话",
    ],
)  # fmt: skip
def test_a_question_of_a_frame_alone_stays_whole(text: str) -> None:
    assert without_frame(text) == text


FRAMES = [*OF_REPLIES, *OF_THE_USER, *OF_ALL, *SUMMARIES, "the user", "用户", " ", "order of "]


@given(st.lists(st.sampled_from(FRAMES) | st.text(max_size=12), max_size=4).map(" ".join))
def test_something_is_left_to_search_for(text: str) -> None:
    bare = without_frame(text)

    assert bare == text or content_words(bare)


@pytest.mark.parametrize(
    "text",
    [
        "Please always answer in French.",
        "From now on, keep it under five lines.",
        "I prefer trains to planes.",
        "I'd rather have the short version.",
        "Never use tables, they break my reader.",
        "Make sure to give prices in euros.",
        "Please don't use emojis.",
        "I really like it when you add a source.",
        "My preference is oat milk.",
        "I'm more comfortable with examples in Go.",
        "以后请用繁体字回答。",
        "请不要用表格。",
        "我更喜欢坐火车。",
        "我不喜欢太甜的东西。",
        "每次都给我一个例子。",
        "我希望你先给出结论。",
        "记得要加上单位。",
        "别再用表情符号了。",
    ],
)
def test_a_wish_is_told(text: str) -> None:
    assert states_wish(text)


@pytest.mark.parametrize(
    "text",
    [
        "I have always lived here.",
        "We always walked home.",
        "She has never been to Rome.",
        "I never had a cat.",
        "He never heard of it.",
        "It had always seemed small.",
        "I have always had a cold in March.",
        "I never forgot her birthday.",
        "We always went by bus.",
        "The lake always was clear.",
        "What do you prefer?",
        "The train leaves at nine.",
        "I will keep the receipt.",
        "我从来没去过罗马。",
        "我一直住在这里。",
        "火车九点出发。",
        "他喜欢什么？",
    ],
)
def test_what_states_a_fact_or_asks_is_no_wish(text: str) -> None:
    assert not states_wish(text)


@pytest.mark.parametrize(
    "text",
    [
        "申请签证",
        "邀请朋友",
        "请假三天",
        "用户名是什么",
        "用户体验",
        "the order of service",
        "the user manual",
    ],
)
def test_a_word_of_the_subject_is_no_frame(text: str) -> None:
    assert without_frame(text) == text
