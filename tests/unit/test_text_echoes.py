"""What was only said back is told from what the user said, in both languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.echoes import THRESHOLD, SaidBack

PROMPT = (
    "You are a travel assistant for Acme Tours. Users prefer window seats. Always be polite.\n"
    "Acme offers trips to Lisbon, Oslo and Kyoto. Refunds take 14 days."
)
CHINESE_PROMPT = (
    "你是一个旅行助手。用户喜欢靠窗的座位。回答要有礼貌。\n"
    "退款需要14天。我们提供去里斯本和京都的旅行。"
)


def is_echo(statement: str, said_back: list[str], own_words: list[str]) -> float | None:
    return SaidBack(said_back, own_words).share(statement)


# Statement, what was said back, what the user said.
ECHOES: list[tuple[str, list[str], list[str]]] = [
    ("The user prefers window seats.", [PROMPT], ["Book me a flight to Rome"]),
    ("The user likes window seats.", [PROMPT], []),
    ("Users prefer window seats", [PROMPT], ["Thanks!"]),
    ("Refunds take 14 days.", [PROMPT], ["What is your phone number?"]),
    ("Acme Tours offers trips to Lisbon, Oslo and Kyoto.", [PROMPT], ["Tell me more"]),
    ("The user is a travel assistant for Acme Tours.", [PROMPT], ["hello"]),
    ("The assistant should always be polite.", [PROMPT], []),
    ("The user lives in Munich.", ["The user lives in Munich."], ["What's the weather?"]),
    ("She lives in Munich", ["- The user lives in Munich.\n- The user has a dog."], ["weather?"]),
    ("The user resides in Munich.", ["The user lives in Munich."], ["What's the weather?"]),
    (
        "The user lives in Munich and has a dog called Rex.",
        ["The user lives in Munich.\nThe user's dog is called Rex."],
        ["Any plans for the weekend?"],
    ),
    ("The user is allergic to peanuts.", ["Memory: user has a peanut allergy."], ["Find a recipe"]),
    ("THE USER LIVES IN MUNICH", ["the user lives in munich"], ["hm"]),
    ("The user doesn't eat meat.", ["The user does not eat meat."], ["Suggest dinner"]),
    ("用户喜欢靠窗的座位。", [CHINESE_PROMPT], ["帮我订一张去罗马的机票"]),
    ("用户偏好靠窗座位", [CHINESE_PROMPT], []),
    ("退款需要14天。", [CHINESE_PROMPT], ["你们的电话是多少"]),
    ("用户是一个旅行助手。", [CHINESE_PROMPT], ["你好"]),
    ("提供去里斯本和京都的旅行。", [CHINESE_PROMPT], ["再多说一点"]),
    ("用户住在慕尼黑。", ["用户住在慕尼黑。"], ["今天天气怎么样"]),
    ("他居住在慕尼黑", ["- 用户住在慕尼黑。\n- 用户养了一只狗。"], ["天气如何"]),
    ("用戶住在慕尼黑", ["用户住在慕尼黑。"], ["天氣如何"]),
    ("用户住在慕尼黑，养了一只狗。", ["用户住在慕尼黑。\n用户养了一只狗。"], ["周末有什么安排"]),
    ("用户对花生过敏。", ["用户对花生过敏，请注意。"], ["推荐一个菜谱"]),
    ("用户不吃肉", ["该用户不吃肉。"], ["晚饭吃什么"]),
    ("用户使用Rust和PostgreSQL。", ["用户用Rust和PostgreSQL开发。"], ["写个函数"]),
]

NEWS: list[tuple[str, list[str], list[str]]] = [
    ("The user prefers aisle seats.", [PROMPT], ["Aisle please, I get up a lot"]),
    ("The user prefers window seats.", [PROMPT], ["I love a window seat"]),
    ("The user prefers window seats.", [PROMPT], ["I prefer window seats, always"]),
    ("The user wants to travel to Lisbon.", [PROMPT], ["I want to see Lisbon in May"]),
    ("The user works as a nurse.", [PROMPT], ["I work as a nurse"]),
    ("The user lives in Munich.", ["The user lives in Berlin."], ["I moved to Munich"]),
    ("The user lives in Munich.", ["The user lives in Munich."], ["As I said, I live in Munich"]),
    ("The user does not like tea.", ["The user likes tea."], ["I don't like tea any more"]),
    ("The user has three cats.", ["The user has two cats."], ["Got a third, so three cats now"]),
    (
        "The user's flight to Lisbon leaves from terminal 2, gate 14 in the morning.",
        ["The user's flight to Lisbon leaves from terminal 2, gate 12 in the morning."],
        ["They changed the gate to 14"],
    ),
    (
        "The user's flight to Lisbon leaves from terminal 2, gate 14 in the morning.",
        ["The user's flight to Lisbon leaves from terminal 2, gate 12 in the morning."],
        ["ok"],
    ),
    (
        "The user's favourite dish at the Golden Lion in Graz is goulash.",
        ["The user's favourite dish at the Golden Lion in Graz is schnitzel."],
        ["No longer schnitzel, goulash"],
    ),
    ("The user likes tea.", ["We sell tea. Guests like our shop."], ["a cup of tea"]),
    ("The user lives in Munich with his sister Eva.", ["The user lives in Munich."], ["with Eva"]),
    ("The user's dog Rex is ill.", ["The user has a dog called Rex."], ["Rex is ill"]),
    ("The user likes trips.", [], ["I like trips"]),
    (
        "The user learns Portuguese.",
        ["Answer in Portuguese if asked."],
        ["I'm learning Portuguese"],
    ),
    ("用户喜欢靠走道的座位。", [CHINESE_PROMPT], ["我喜欢靠走道的座位"]),
    ("用户喜欢靠窗的座位。", [CHINESE_PROMPT], ["我偏好靠窗座位"]),
    ("用户想去京都旅行。", [CHINESE_PROMPT], ["我五月想去京都"]),
    ("用户住在慕尼黑。", ["用户住在柏林。"], ["我搬到慕尼黑了"]),
    ("用户住在慕尼黑。", ["用户住在慕尼黑。"], ["我说过我住在慕尼黑"]),
    ("用户不喜欢喝茶。", ["用户喜欢喝茶。"], ["我不喜欢喝茶了"]),
    ("用户有三只猫。", ["用户有两只猫。"], ["又来一只，现在三只了"]),
    ("用户的狗生病了。", ["用户养了一只狗。"], ["我的狗病了"]),
    ("用户住在慕尼黑，妹妹叫伊娃。", ["用户住在慕尼黑。"], ["我妹妹叫伊娃"]),
    ("用户是护士。", [CHINESE_PROMPT], ["我是护士"]),
    ("用户在学葡萄牙语。", ["可以用葡萄牙语回答。"], ["我在学葡萄牙语"]),
]


class TestPairs:
    @pytest.mark.parametrize(("statement", "said_back", "own_words"), ECHOES)
    def test_what_was_said_back_is_an_echo(
        self, statement: str, said_back: list[str], own_words: list[str]
    ) -> None:
        covered = is_echo(statement, said_back, own_words)

        assert covered is not None
        assert THRESHOLD <= covered <= 1

    @pytest.mark.parametrize(("statement", "said_back", "own_words"), NEWS)
    def test_what_the_user_said_is_news(
        self, statement: str, said_back: list[str], own_words: list[str]
    ) -> None:
        assert is_echo(statement, said_back, own_words) is None

    def test_without_anything_said_back_all_is_news(self) -> None:
        for statement, _, own_words in [*ECHOES, *NEWS]:
            assert is_echo(statement, [], own_words) is None

    def test_whoever_says_it_as_well_makes_it_news(self) -> None:
        for statement, said_back, _ in ECHOES:
            assert is_echo(statement, said_back, [statement]) is None


class TestThreshold:
    WORDS = ["amber", "birch", "cedar", "daisy", "elder"]

    @pytest.mark.parametrize(("known", "echo"), [(3, None), (4, 0.8), (5, 1.0)])
    def test_threshold_of_echoes_is_a_share_of_the_words(
        self, known: int, echo: float | None
    ) -> None:
        assert is_echo(" ".join(self.WORDS), [" ".join(self.WORDS[:known])], []) == echo

    @pytest.mark.parametrize(("own", "echo"), [(3, 1.0), (4, None), (5, None)])
    def test_own_words_may_cover_a_little_less(self, own: int, echo: float | None) -> None:
        said_back = [" ".join(self.WORDS)]

        assert is_echo(said_back[0], said_back, [" ".join(self.WORDS[:own])]) == echo

    def test_words_far_apart_in_a_long_text_are_no_statement(self) -> None:
        prompt = "We sell tea. " + "Be nice. " * 5 + "The user is a guest. Morning hours apply."

        assert is_echo("The user sells tea in the morning.", [prompt], []) is None


class TestAnyText:
    @given(st.text(), st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
    def test_none_is_too_strange(self, statement: str, said: list[str], own: list[str]) -> None:
        covered = is_echo(statement, said, own)

        assert covered is None or THRESHOLD <= covered <= 1
