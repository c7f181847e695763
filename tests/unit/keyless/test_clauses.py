"""What counts as pasted, and that places in the text stay."""

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
