"""Of which type a Chinese statement is, and which second clauses of a message are left out."""

import pytest

from tests.unit.keyless.rules_support import said

TYPES = [
    ("我戒烟了", "fact"),
    ("我戒酒两年了", "fact"),
    ("我正在戒糖", "goal"),
    ("我打算戒烟", "goal"),
    ("我在创业", "fact"),
    ("我怕狗", "preference"),
    ("咖啡我只喝拿铁", "preference"),
    ("我一顿只能吃小半碗", "constraint"),
    ("我晚上八点以后才有空", "constraint"),
    ("我记性不好", "fact"),
    ("我写了五年前端", "skill"),
    ("我跟前夫离婚三年了", "fact"),
    ("我跟前夫离婚了", "event"),
]
NOTHING_MORE = [
    # What follows from a clause, or hangs on it, is no statement of its own.
    ("我每周三晚上有课，不能加班", ["用户每周三晚上有课"]),
    ("我在一家公司实习，每天两百块", ["用户在一家公司实习"]),
    ("我在准备考研，目标是浙大", ["用户在准备考研"]),
    ("我五音不全，也不行", ["用户五音不全"]),
    # Somebody came between.
    ("我住杭州，我妈在老家，退休了", ["用户住杭州", "用户妈在老家"]),
    ("我住杭州。我同学小李来看我。喜欢爬山", ["用户住杭州"]),
    ("我跟我对象谈了四年了，喜欢爬山", ["用户跟用户对象谈了四年了"]),
    ("我住杭州。最烦排队", ["用户住杭州"]),
    # One's own job is nobody else.
    ("我是小学老师，住在杭州", ["用户是小学老师", "用户住在杭州"]),
    # What is settled is so whoever was named.
    ("我跟我妈吵了一架，还是决定买城西那套", ["用户还是决定买城西那套"]),
    ("我这个人吧，最烦排队", ["用户最烦排队"]),
]
WHOLE = [
    ("我不喝酒，除非过年", ["用户不喝酒，除非过年"]),
    ("我从来不熬夜，考试周除外", ["用户从来不熬夜，考试周除外"]),
    ("我打算辞职，如果年底还不涨薪", []),
    ("我打算辞职，年底就走", ["用户打算辞职"]),
    ("我养了两只猫，一只狗", ["用户养了两只猫，一只狗"]),
    ("我有两台电脑，一台办公", ["用户有两台电脑"]),
]
PASSING = [
    "我要请三天假",
    "我要做一个PPT",
    "我想去楼下走走",
    "下辈子我要当一只猫",
    "我报了警",
    "我现在在星巴克",
    "银行周末不上班",
    "每逢佳节倍思亲",
    "我们公司在搬家",
    "每次我跟他说话",
    "每次我分享我喜欢的书，他们都觉得很奇怪，不愿意跟我一起玩",
]


def contents(*turns: str) -> list[str]:
    return [content for _, content in said(*turns)]


@pytest.mark.parametrize(("text", "kind"), TYPES)
def test_the_verb_decides_of_which_type_a_chinese_statement_is(text, kind):
    assert [one for one, _ in said(text)] == [kind]


@pytest.mark.parametrize(("text", "found"), NOTHING_MORE)
def test_a_later_clause_without_i_counts_only_directly_behind_one_about_the_speaker(text, found):
    assert contents(text) == found


@pytest.mark.parametrize(("text", "found"), WHOLE)
def test_a_statement_is_kept_with_its_exception_and_its_list_or_not_at_all(text, found):
    assert contents(text) == found


@pytest.mark.parametrize("text", PASSING)
def test_what_does_not_last_or_is_half_said_yields_nothing(text):
    assert contents(text) == []


def test_behind_a_yes_only_what_says_i_is_new():
    asked = "A: 看起来您是位产品经理？"
    assert contents(asked, "对呀，做B端产品的，四年了") == ["用户是位产品经理"]
    assert contents("A: 您还住在杭州吗？", "对，住了五年。不吃香菜") == ["用户还住在杭州"]
    assert contents(asked, "对呀，我住在杭州") == ["用户是位产品经理", "用户住在杭州"]


def test_a_value_alone_is_of_whoever_was_spoken_of():
    assert contents("A: 您女儿五岁。", "不对，六岁") == ["用户女儿六岁"]
    assert contents("A: 您的孩子是五岁。", "六岁啦") == []


def test_the_day_and_its_part_are_set_right_together():
    asked = "A: 您的航班是18号下午。"
    assert contents(asked, "错了，是19号早上") == ["用户的航班是19号早上"]
    assert contents(asked, "错了，是19号") == ["用户的航班是19号下午"]
