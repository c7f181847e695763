"""What is a summary of a conversation, and what an apology, an error or a piece of the prompt."""

import pytest

from app.language.llm.model_summariser import (
    INSTRUCTIONS,
    LITTLE,
    is_about,
    repeats,
    says_little,
    summary_prompt,
)
from app.language.text.terms import terms

PROMPT = frozenset(term for text in INSTRUCTIONS for term in terms(text))

TRIP = [
    "Hello, how can I help?",
    "I am planning a trip to Kyoto in May with my sister Mia. Our budget is 2,000 euros.",
    "For Kyoto in May I suggest a hotel near Gion; it costs 120 euros per night.",
    "Please avoid flights with a layover. I will request a day off.",
    '{"flights": [{"id": "LH714", "price": 840}]}',
    "I found LH714, a direct flight from Munich for 840 euros. Shall I book it?",
]
SHANGHAI = [
    "你好，请问需要什么帮助？",
    "我下个月要去上海出差，预算是三千元。我对花生过敏，请帮我找没有花生的餐厅。",
    "好的，我建议住在人民广场附近。那里交通方便，餐厅也很多。",
    "我找到了和平饭店，每晚八百元，有健身房，也很安静。要预订吗？",
]

EMPTY = [
    "I'm sorry, but I can't help with that request.",
    "I cannot fulfil this request as it violates our content policy.",
    "As an AI language model, I am unable to summarise private conversations.",
    "Error: 429 Too Many Requests. Please retry after 20 seconds.",
    "Internal server error. The upstream model timed out; try again later.",
    "Sure! Please provide the conversation that you would like me to summarise.",
    "The conversation covers various topics and the assistant gives helpful responses.",
    "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
    "No summary available.",
    "N/A",
    "抱歉，我无法协助处理该请求。",
    "很抱歉，我不能提供这方面的帮助。如果您有其他问题，请告诉我。",
    "作为一个人工智能语言模型，我没有办法回答这个问题，请换一个话题吧。",
    "请求过于频繁，请稍后再试。",
    "好的，请提供需要总结的对话内容。",
    "内容包含敏感信息，无法生成摘要。",
]


@pytest.mark.parametrize("conversation", [TRIP, SHANGHAI], ids=["english", "chinese"])
@pytest.mark.parametrize("text", EMPTY)
def test_what_fits_any_conversation_is_about_none(text: str, conversation: list[str]) -> None:
    assert not is_about(text, conversation, prompt=PROMPT)


@pytest.mark.parametrize(
    ("text", "conversation"),
    [
        ("I help the user to plan a trip to Kyoto with her sister; LH714 is still to book.", TRIP),
        ("The direct flight was found, and a hotel near Gion suggested.", TRIP),
        ("The user goes to Kyoto in May.", TRIP),
        ("用户下月去上海出差，对花生过敏。我找到带健身房的和平饭店，等用户确认预订。", SHANGHAI),
        ("和平饭店每晚八百元。", SHANGHAI),
        # In another script it shares what is kept letter for letter.
        ("用户五月去旅行，已找到航班 LH714，价格 840 欧元。", TRIP),
    ],
)
def test_what_repeats_its_names_and_subjects_is_about_it(
    text: str, conversation: list[str]
) -> None:
    assert is_about(text, conversation, prompt=PROMPT)


@pytest.mark.parametrize(
    ("text", "conversation"),
    [
        ("I help the user to plan a trip to Kyoto with her sister; LH714 is still to book.",
         SHANGHAI),
        ("用户下月去上海出差，对花生过敏。我找到带健身房的和平饭店，等用户确认预订。", TRIP),
        ("The build failed as a package was missing; I added it and deployed to staging.", TRIP),
        ("用户搬到了杭州，合租的室友叫小唐，猫叫豆沙。", SHANGHAI),
    ],
)  # fmt: skip
def test_a_summary_of_another_conversation_is_not(text: str, conversation: list[str]) -> None:
    assert not is_about(text, conversation, prompt=PROMPT)


@pytest.mark.parametrize(
    ("sources", "about"),
    [
        # One of four telling words in a message, two, and all of them in different messages.
        (["archive", "paint the wall"], False),
        (["archive festival", "paint the wall"], True),
        (["archive of stones", "festival of tea", "notebook of Jane", "lantern in trees"], False),
        # Messages of one telling word each say no more together.
        (["archive", "festival"], True),
        # Nothing is said that could be repeated.
        (["1", "…"], True),
        ([], True),
    ],
)
def test_words_count_that_stand_together(sources: list[str], about: bool) -> None:
    assert is_about("archive festival notebook lantern", sources, prompt=PROMPT) == about


@pytest.mark.parametrize(("shared", "about"), [(4, True), (3, True), (2, False)])
def test_a_share_of_it_must_be_of_the_conversation(shared: int, about: bool) -> None:
    """Three of ten."""
    words = ["archive", "festival", "lantern", "harbour", "violin", "meadow", "copper", "saddle"]
    source = " ".join([*words[:shared], "window", "garden"])

    assert is_about(" ".join([*words, "velvet", "cactus"]), [source], prompt=PROMPT) == about


@pytest.mark.parametrize(
    ("words", "little"), [(LITTLE - 1, True), (LITTLE, True), (LITTLE + 1, False)]
)
def test_others_may_say_little_beside_small_talk(words: int, little: bool) -> None:
    names = [
        "archive",
        "festival",
        "lantern",
        "harbour",
        "violin",
        "meadow",
        "copper",
        "saddle",
        "velvet",
    ]
    answer = " ".join(names[:words])

    assert says_little(["hi", "好的，谢谢"], ["Hello!", answer], prompt=PROMPT) == little
    assert not says_little(["hi", "My kayak is red."], [answer], prompt=PROMPT)


class TestRepeating:
    SYSTEM = summary_prompt(words=100, fold=False, wishes="Keep every order number, and its date.")

    def test_a_passage_of_the_prompt_is_told(self) -> None:
        passage = self.SYSTEM[200:900]

        assert repeats(passage, self.SYSTEM)
        assert repeats("Here you are. " + passage, self.SYSTEM)

    def test_a_summary_that_uses_its_words_is_not(self) -> None:
        text = "The user waits for order 12. First the keys are to be returned; I promised to look."

        assert not repeats(text, self.SYSTEM)

    def test_half_of_the_pieces_is_enough(self) -> None:
        prompt = "alpha beta gamma delta epsilon"
        half = "alpha beta gamma delta omega"

        assert repeats(half, prompt)
        assert not repeats(half + " sigma", prompt)
        assert not repeats("alpha beta", prompt)
