"""The kinds of Chinese clauses, in both scripts, and who is spoken of."""

import pytest

from app.language.keyless.kinds import is_retraction, is_third_person, memory_type


@pytest.mark.parametrize(
    ("clause", "kind"),
    [
        ("我在银行上班", "fact"),
        ("我妈妈属鸡", "fact"),
        ("上个星期我们去了趟阳朔", "event"),
        ("我報了四百米", "event"),
        ("我忘了带作业，老师罚我站", "event"),
        ("我喜歡喝茶", "preference"),
        ("我只喝无糖的", "preference"),
        ("我從不抽煙", "habit"),
        ("他天天加班", "habit"),
        ("我打算明年去京都", "goal"),
        ("我想跨考计算机", "goal"),
        ("我想起来了", "event"),
        ("我們商量好了，先去她家", "decision"),
        ("以後回答我時用列表", "constraint"),
        ("预算最多六千", "constraint"),
        ("我会弹吉他", "skill"),
    ],
)
def test_memory_type(clause, kind):
    assert memory_type(clause) == kind


def test_user_is_the_third_person_and_users_of_a_product_are_not():
    assert is_third_person("用户喜欢编程")
    assert is_third_person("用戶住在台北")
    assert not is_third_person("用户数上个月到了一万")
    assert not is_third_person("我的用户喜欢简洁")


def test_what_ended_is_a_retraction():
    assert is_retraction("我已經不在騰訊了")
    assert is_retraction("我不再吃肉")
    assert not is_retraction("我们没再说话")


@pytest.mark.parametrize(
    "said",
    [
        "Don't remember that I am divorced.",
        "Please do not store that I have depression.",
        "忘记我住在慕尼黑",
        "不用记得我离婚了",
    ],
)
def test_what_nobody_may_remember_is_a_retraction(said):
    assert is_retraction(said)
    assert not is_retraction("I don't remember that I was ever ill.")
