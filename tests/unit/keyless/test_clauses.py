"""What counts as pasted, and that places in the text stay."""

import pytest

from app.language.keyless.clauses import Clause, without_pasted


def said(text: str) -> str:
    left = without_pasted(text)
    assert len(left) == len(text)
    return " ".join(left.split())


def test_fenced_code_is_pasted():
    text = "My API runs on Flask 2.3.\n```python\napp = Flask(__name__)\n```\nIt has 3 routes."
    assert said(text) == "My API runs on Flask 2.3. It has 3 routes."


def test_unclosed_fence_is_pasted_to_the_end():
    assert said("I use Go.\n```\nI live in Rome") == "I use Go."


def test_lines_of_code_and_logs_are_pasted():
    text = "I use Postgres 16.\nSELECT id FROM users WHERE name = 'I'\n2024-05-01 10:00 started\nOk"
    assert said(text) == "I use Postgres 16. Ok"


def test_text_after_an_announcement_is_pasted_until_somebody_speaks_again():
    text = "Here is my essay: I was born in Rome, and I have six cats.\n\nCan you shorten it?"
    assert said(text) == "Here is my essay: Can you shorten it?"


def test_a_situation_that_is_announced_was_said():
    text = "Here is my situation: I live in Rome and have six cats."
    assert said(text) == text


def test_text_to_translate_is_pasted():
    assert said("translate to French: I live in Rome with my cat") == "translate to French:"
    assert said("帮我翻译成英文：我住在上海，我养了一只猫，每天都去公园散步") == "帮我翻译成英文："


@pytest.mark.parametrize(
    "text",
    [
        "A customer wrote: my order is late and I live in Bern. Answer politely.",
        "My sister told me: I live in Oslo now.",
        "He told me: I live in Oslo.",
        "写一个故事：我住在布拉格",
        "My colleague wrote to me: I am leaving.",
        "For example, I work at Google and my boss asks me to lie. What should I do?",
        "客户写道：我的订单号是55123，我住在伯尔尼。请礼貌地回复。",
        "我姐姐告诉我：我现在住在奥斯陆。",
        "我的同事说：我是素食者。",
        "帮我写一个故事：我住在布拉格。",
        "角色扮演：你是服务员，我是对牛奶过敏的顾客。",
        "比如，我在谷歌工作，老板让我撒谎，我该怎么办？",
    ],
)
def test_what_others_say_or_is_made_up_was_not_said(text):
    assert said(text) == ""
    assert said(f"I live in Rome.\n{text}").startswith("I live in Rome.")


def test_what_somebody_of_the_speaker_wrote_is_pasted():
    text = "Here is my colleague's bio: I am a data scientist. I love hiking. Make it shorter."
    assert said(text) == "Here is my colleague's bio:"


@pytest.mark.parametrize(
    "text",
    [
        "As I said: I live in Munich.",
        "My address: I live at Rua Augusta 5.",
        "I live in Bonn. For example, I walk to work.",
        "我说：我住在北京。",
        "我跟医生说：我对花生过敏。",
        "我想说：我住在北京。",
        "我的情况是这样的：我住在北京，今年30岁。",
        "老实说：我是素食者。",
        "总的来说：我对花生过敏。",
        "简单来说：我住在上海，在腾讯工作。",
        "坦白说：我对花生过敏。",
        "换句话说：我不吃肉。",
        "具体来说：我在谷歌当工程师。",
        "一句话说：我是程序员。",
        "认真说：我不喝酒。",
        "长话短说：我住在北京。",
        "严格来说：我是半素食者。",
        "先说：我对海鲜过敏。",
        "再说：我有两个孩子。",
        "My doctor told me: no more sugar. I have been diabetic since 2019.",
        "My boss said: great job. I got promoted to team lead last week.",
        "My wife said: let's move. We moved to Hamburg last month.",
        "My sister told me: she is allergic to nuts.",
        "我妈妈告诉我：她对花生过敏。",
        "医生告诉我：少吃糖。我住在上海，对花生过敏。",
        "Like my profile says: I live in Berlin and I work as a nurse.",
        "As the title says: I'm allergic to peanuts.",
        "写下来：我住在上海。",
        "写一个提醒：我明天要去北京出差。",
        "帮我写封自我介绍：我叫李明，住在上海，在腾讯当工程师。",
        "角色扮演，帮我放松。我住在上海，在腾讯工作。",
        "比如我对花生过敏，所以别推荐含花生的菜。",
        "例如，我有两个孩子，请推荐适合的活动。",
        "For instance, my daughter is allergic to nuts.",
        "This is my sister's address: Hauptstr. 5, Berlin. I live in Munich since 2019.",
        "Here is my wife's schedule: she works Mondays. I work at Siemens and I live in Bonn.",
        "This is her number: 555-123. I live in Bonn and work as a nurse.",
        "This is the doctor's advice: no salt. I'm allergic to penicillin.",
        "The following is the team's plan: ship in May. I work at Siemens as a nurse.",
    ],
)
def test_what_the_speaker_says_before_a_colon_pastes_nothing(text):
    assert said(text) == text


def test_time_of_day_announces_nothing():
    text = "I fixed my alarm at 7:40 because my train to Bonn leaves at 8:15 sharp"
    assert said(text) == text


def test_mail_is_pasted():
    text = "Got this:\nFrom: a@b.org\nSubject: hello\nI live in Rome"
    assert said(text) == "Got this:"


def test_quotation_that_says_i_is_emptied_and_a_title_stays():
    assert said('She said "I live in Rome" to me') == 'She said "… " to me'
    assert said('I read "The Name of the Wind"') == 'I read "The Name of the Wind"'


def test_content_has_the_lead_in_front():
    assert (
        Clause("She is 5.", 20, 29, {}, lead="I have a dog.").content == "I have a dog. She is 5."
    )
    assert Clause("I am 5.", 0, 7, {}).content == "I am 5."


def test_quoted_lines_go_whole():
    assert said("Ana wrote:\n> I live in Rome\n| a | b |\nI said yes.") == "Ana wrote: I said yes."


def test_wish_to_improve_announces_nothing():
    text = "I want to improve my Spanish: I live in Madrid with two flatmates."
    assert said(text) == text
