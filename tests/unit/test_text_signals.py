"""Signals are seen in both languages and both scripts; what only looks like one is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.normal_forms import simplify
from app.language.text.signal_patterns import CHINESE, ENGLISH, Signal
from app.language.text.signals import confirms, find_signals

SAID: dict[Signal, list[str]] = {
    "correction": [
        "That's wrong.",
        "that’s incorrect, I never said so",
        "This is not right, the meeting is on Friday",
        "it isn't what I asked for",
        "You misunderstood me.",
        "You got my name wrong",
        "No, I live in Bonn.",
        "no, it's Anna with two n",
        "I already told you that I am a vegetarian",
        "I meant the other one",
        "I said Tuesday, not Thursday",
        "My name is Jon, not John.",
        "Actually, I live in Hamburg now.",
        "Let me correct myself: it was 2019.",
        "Correction: the flight is at 9.",
        "scratch that, use Postgres",
        "There is a mistake in your answer.",
        "Stop using emojis!",
        "try again",
        "WRONG.",
        "Wrong city! I'm in Graz",
        "I never said that.",
        "你弄错人了",
        "不对不对，是后天",
        "不是，我是说下周",
        "我没说过我喜欢咖啡",
        "不对，我住在波恩。",
        "你说得不对",
        "這不對啊",
        "你错了",
        "你理解錯了",
        "你记错了，是星期五",
        "我刚才说错了，是三点",
        "不是这样的",
        "我不是這個意思",
        "我的意思是用中文写",
        "我说的是苏州",
        "不是柏林，是波恩",
        "应该是周五，不是周四",
        "更正一下：航班是九点",
        "你誤會了",
        "你刚才的回答有误",
        "请重新来",
        "别再用表情符号了",
        "其实我住在汉堡",
        "错！",
        "Ｔｈａｔ＇ｓ　ｗｒｏｎｇ",
        "你的回答 is wrong? 不对！",
    ],
    "reinforcement": [
        "Perfect!",
        "Yes, exactly.",
        "exactly right",
        "That's right.",
        "That is exactly what I wanted.",
        "this is very helpful",
        "Keep doing that.",
        "just like that",
        "You're absolutely right.",
        "You got it!",
        "I love how you explain things",
        "That works perfectly, thanks",
        "great job!",
        "exactly what I needed",
        "that's exactly it, thanks",
        "nice, that worked",
        "这个回答很好",
        "完全正确",
        "完全正確！",
        "没错，就是他",
        "对，就是这样",
        "就是这个意思。",
        "正是我想要的",
        "你说得对",
        "你說得很對",
        "继续保持",
        "写得很好",
        "太棒了！",
        "很有帮助，谢谢",
        "我喜欢这种风格",
    ],
    "preference": [
        "I prefer tea",
        "I'd rather walk.",
        "I really love hiking",
        "I don't like cilantro",
        "I hate early meetings",
        "My favourite colour is green.",
        "I'm allergic to peanuts",
        "I always drink my coffee black",
        "Please always answer in German",
        "Reply in French",
        "keep your answers short",
        "From now on, call me Kim",
        "我喜欢喝茶",
        "我最讨厌开会",
        "我更喜歡靠窗的座位",
        "我不吃香菜",
        "我对花生过敏",
        "希望你回答简短一点",
        "以后请用中文回答",
        "请不要用表情符号",
        "回答请尽量简洁",
        "我爱吃辣",
        "回答短一点",
        "我平时只喝黑咖啡",
        "coffee over tea for me any day",
    ],
    "identity": [
        "My name is Ana.",
        "Hi, I'm Tom",
        "I'm a nurse from Bonn",
        "I am 34 years old",
        "I live in Munich",
        "I work at Siemens",
        "I was born in Peru",
        "ok, I moved to Munich",
        "I've just moved to Oslo",
        "my wife's name is Eva, my wife is a doctor",
        "I have two kids",
        "You can call me Lin.",
        "我叫李雷",
        "我的名字是王芳",
        "叫我小李吧",
        "我是护士",
        "我今年三十岁",
        "我住在上海",
        "我在西门子工作",
        "我來自臺灣",
        "我刚搬到苏州",
        "我妻子是医生",
        "我家有两只猫",
        "I'm Jonas, 29, from Kiel",
        "We moved to Lyon in March",
        "我女儿六岁了",
        "我家在杭州",
    ],
    "goal": [
        "I want to learn Rust",
        "I'm planning a trip to Japan",
        "My goal is to run a marathon",
        "We're going to migrate the database",
        "I'd like to lose five kilos",
        "I hope to finish by May",
        "我的目标是考上研究生",
        "我打算明年去日本",
        "我想学吉他",
        "我们计划下个月上线",
        "我要减肥",
        "我正在備考雅思",
        "hoping to retire at 60",
        "今年的目标是读完二十本书",
    ],
    "decision": [
        "I've decided to quit",
        "We chose PostgreSQL",
        "Let's go with option B",
        "I'm going with the blue one",
        "We'll stick with Python",
        "The final decision is to postpone",
        "We're switching to uv",
        "我决定辞职",
        "我們決定用Rust",
        "最终选定了方案B",
        "那就用PostgreSQL",
        "我们采用微服务架构",
        "we ended up choosing Vue",
        "我们最后选了Vue",
    ],
}

ALIKE: dict[Signal, list[str]] = {
    "correction": [
        "that's not wrong",
        "There is nothing wrong with it",
        "No, thanks",
        "no, that's fine",
        "No, not yet.",
        "Tell me if that's wrong",
        "I don't think that's wrong",
        "Is that wrong?",
        "Actually, I'm happy with it",
        "not only tea but coffee",
        "I like it, not only on Sundays",
        "The wrong trousers is my favourite film",
        "I meant to call her",
        "What went wrong?",
        "不对称加密怎么用",
        "对不对？",
        "這個對不對",
        "是不是这样？",
        "没有什么不对",
        "如果有错误请告诉我",
        "不对外开放",
        "他坐错了车",
        "老师说错了一个字",
        "我们认错了人",
        "错误处理怎么写",
        "不错",
        "我改用 Mac 已经两年",
        "这不难",
    ],
    "reinforcement": [
        "That's not perfect",
        "Nobody is perfect",
        "Is that right?",
        "turn right at the corner",
        "If that's right, go on",
        "you are right-handed",
        "I would like that",
        "is this great or not",
        "What exactly happened",
        "完全正确吗？",
        "不太好",
        "不完全正确",
        "我没错过末班车",
        "他是完美主义者",
        "天气很好的时候出门",
        "是不是就是这样？",
    ],
    "preference": [
        "What do you prefer?",
        "I would like to know the time",
        "It looks like rain",
        "I like it",
        "She loves tea",
        "The function always returns None",
        "你喜欢什么",
        "他喜欢喝茶",
        "请回答我的问题",
        "以后再说",
        "习惯用法",
    ],
    "identity": [
        "I'm a bit tired",
        "I am a little late",
        "call me later",
        "Where do you live?",
        "it works",
        "I have two questions",
        "我是说明天",
        "我是不是搞混了",
        "你叫什么",
        "我在想这个问题",
        "我有两个问题",
        "叫我去开会",
    ],
    "goal": [
        "I want to know the time",
        "I'm trying to understand this",
        "I'd like to ask something",
        "I like to swim",
        "I don't want to go",
        "our planning department",
        "我想问一下",
        "我想知道几点",
        "我不想去",
        "计划书在哪里",
        "你打算怎么做",
        "我要求退款",
    ],
    "decision": [
        "I haven't decided yet",
        "I can't decide",
        "Have you decided?",
        "once we have decided, I will tell you",
        "the deciding factor",
        "我还没决定",
        "你来决定吧",
        "决定性的一步",
        "这取决于天气",
        "怎么决定？",
        "由老板决定",
    ],
}


def pairs(table: dict[Signal, list[str]]) -> list[tuple[Signal, str]]:
    return [(signal, text) for signal, texts in table.items() for text in texts]


class TestPatterns:
    @pytest.mark.parametrize(("signal", "text"), pairs(SAID))
    def test_what_is_said_is_seen(self, signal: Signal, text: str) -> None:
        assert signal in find_signals(text)

    @pytest.mark.parametrize(("signal", "text"), pairs(ALIKE))
    def test_what_looks_alike_is_not(self, signal: Signal, text: str) -> None:
        assert signal not in find_signals(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "ok",
            "What time is it?",
            "The sky is blue.",
            "几点了？",
            "天气怎么样",
            "def f(): ...",
        ],
    )
    def test_plain_talk_has_none(self, text: str) -> None:
        assert find_signals(text) == frozenset()

    def test_both_languages_know_every_signal(self) -> None:
        assert ENGLISH.keys() == CHINESE.keys() == SAID.keys() == ALIKE.keys()


CONFIRMING = [
    "Exactly!",
    "EXACTLY.",
    "that’s right!!",
    "Correct",
    "correct 👍",
    "👍 exactly",
    "✅Correct!",
    "Yes, that's it.",
    "Exactly, thanks!",
    "exactly :)",
    "Ｅｘａｃｔｌｙ！",
    "完全正确!",
    "完全正確！",
    "对的",
    "对的👍",
    "对的对的",
    "没错",
    "沒錯～",
    "就是这样。",
    "嗯，就是这样",
    "👍完全正确",
    "你说得对",
]


class TestConfirming:
    @pytest.mark.parametrize("text", CONFIRMING)
    def test_confirmation_is_seen(self, text: str) -> None:
        assert confirms(text)
        assert "reinforcement" in find_signals(text)

    @pytest.mark.parametrize(
        "text",
        ["ok", "thanks", "yes", "👍", "got it", "right", "好的", "谢谢", "是的", "嗯嗯", "好的👍"],
    )
    def test_acknowledgement_is_none(self, text: str) -> None:
        assert not confirms(text)
        assert not find_signals(text)

    @pytest.mark.parametrize("text", ["Perfect!", "great job!", "太好了", "说得很好"])
    def test_praise_is_none(self, text: str) -> None:
        assert not confirms(text)
        assert "reinforcement" in find_signals(text)

    @pytest.mark.parametrize(
        "text",
        ["Correct?", "not exactly", "Is that right?", "incorrect", "Exactly! 不对，是周五",
         "对的吗？", "正确吗", "不对", "不完全正确", "对的话就走"],
    )  # fmt: skip
    def test_doubt_and_correction_are_none(self, text: str) -> None:
        assert not confirms(text)

    def test_emoji_ends_a_clause_and_joins_no_words(self) -> None:
        assert "identity" in find_signals("🎉 我是护士 🎉")
        assert find_signals("that's 🙂 right") == frozenset()


class TestTogether:
    @pytest.mark.parametrize(
        "text",
        [
            "Perfect, but that's wrong about Bonn.",
            "说得很好，但是你记错了名字",
            "Exactly! 不对，是周五",
        ],
    )
    def test_a_correction_wins_in_one_text(self, text: str) -> None:
        found = find_signals(text)

        assert "correction" in found
        assert "reinforcement" not in found

    def test_two_texts_may_have_both(self) -> None:
        assert find_signals("Perfect!") | find_signals("不对") == {"correction", "reinforcement"}

    def test_one_text_may_say_several_things(self) -> None:
        text = "No, I live in Bonn. I prefer tea, and I decided to stay."

        assert find_signals(text) == {"correction", "identity", "preference"} | (
            find_signals("I decided to stay.")
        )

    def test_each_line_is_a_beginning(self) -> None:
        assert "correction" in find_signals("hello there\nstop using emojis")
        assert "correction" in find_signals("你好\n别再用表情符号")

    def test_a_lookalike_does_not_hide_what_stands_beside_it(self) -> None:
        assert "correction" in find_signals("对不对？不对，是周五。")
        assert "correction" in find_signals("No, thanks. That's wrong though.")

    def test_characters_of_no_width_hide_nothing(self) -> None:
        assert "correction" in find_signals("that's\u200b wr\u200bong")


class TestAnyText:
    @given(st.text(max_size=300))
    def test_none_is_too_strange(self, text: str) -> None:
        assert find_signals(text) <= ENGLISH.keys()

    @given(st.text(max_size=60))
    def test_the_script_makes_no_difference(self, text: str) -> None:
        assert find_signals(simplify(text)) == find_signals(text)

    def test_no_pattern_repeats_without_a_bound(self) -> None:
        """So that searching a text costs its length times a constant, whatever it says."""
        for table in (ENGLISH, CHINESE):
            for said, alike in table.values():
                for pattern in (*said, *alike):
                    assert not re.search(r"(?<!\\)[*+]|\{\d*,\}", pattern), pattern


class TestScript:
    @pytest.mark.parametrize(
        ("written", "simple"),
        [
            ("堅果學習", "坚果学习"),
            ("妳和牠", "你和它"),
            ("隻字", "只字"),
            ("乾燥", "干燥"),
            ("著作", "著作"),
        ],
    )
    def test_traditional_signs_have_one_simple_form(self, written: str, simple: str) -> None:
        assert simplify(written) == simplify(simple) == simple

    @given(st.text())
    def test_simplifying_keeps_the_length_and_is_done_once(self, text: str) -> None:
        once = simplify(text)

        assert len(once) == len(text)
        assert simplify(once) == once
