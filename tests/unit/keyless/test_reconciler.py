"""What a new statement does to one that is remembered: truth is not overwritten."""

from datetime import UTC, datetime

import pytest

from app.language.keyless.reconciler import RulesReconciler, decide
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileQuestion


def question(content, *neighbours, kind="fact", **more):
    return ReconcileQuestion(Proposed(content, kind, 0.95, ("msg_1",), **more), neighbours)


def near(content, memory_id="mem_1", kind="fact", similarity=0.7, **more):
    return Neighbour(memory_id, content, kind, 1.0, similarity, **more)


def day(year, month=1):
    return datetime(year, month, 1, tzinfo=UTC)


def became(new, old, **more):
    """What becomes of the old statement: replaced, repeated, in conflict, or left beside."""
    decision = decide(question(new, near(old, **more)))
    assert decision.reason
    assert decision.content is None, "nobody's words are rewritten"
    if decision.conflicts:
        assert (decision.event, decision.conflicts) == ("ADD", ("mem_1",))
        return "in conflict"
    assert decision.memory_ids == (() if decision.event == "ADD" else ("mem_1",))
    return {"SUPERSEDE": "replaced", "NONE": "repeated", "ADD": "beside"}[decision.event]


REPLACED = [
    ("I live in Munich now", "I live in Berlin"),
    ("The user now lives in Munich.", "Lives in Berlin"),
    ("Actually I live in Hamburg", "I live in Munich"),
    ("其实我住在杭州", "我住在上海"),
    ("I moved to Munich.", "The user lives in Berlin."),
    ("I live in Munich-Schwabing.", "I live in Munich."),
    ("I'm 35", "I'm 34"),
    ("I'm vegan now", "I'm vegetarian"),
    ("I'm a nurse at Charité and I live in Berlin", "I'm a nurse at Charité"),
    ("用户现在住在慕尼黑", "用户住在柏林"),
    ("我搬到慕尼黑了", "住在柏林"),
    ("我住在慕尼黑施瓦宾", "用户住在慕尼黑"),
    ("我35岁", "我今年34岁"),
]
"""The new one gives another value of the same, or the same and more."""

REPEATED = [
    ("The user lives in Munich.", "I live in Munich"),
    ("I live in Munich.", "I live in Munich-Schwabing."),
    ("I play tennis.", "I play tennis with Ana on Sundays."),
    ("我住在北京", "我住在北京海淀"),
    ("I am vegetarian", "I do not eat meat"),
    ("我吃素", "我不吃肉"),
]

PAST_OR_FOR_A_WHILE = [
    ("前年我在广州工作", "我住在深圳"),
    ("我去年住在广州", "我住在深圳"),
    ("我这周住在上海", "我住在深圳"),
    ("我大学是在清华读书的时候", "我在北大读书"),
    ("I lived in Rome until 2019", "I live in Munich"),
    ("我住在罗马，直到2019年", "我住在慕尼黑"),
    ("用户住在罗马,直到2019年。", "用户住在慕尼黑。"),
    ("我在博世工作，到2019年为止", "我在西门子工作"),
    ("I used to work at Bosch", "I work at Siemens"),
    ("I studied at MIT for four years", "I'm a student at TU Munich"),
    ("I'm staying in Rome this week", "I live in Munich"),
]

BESIDE = [
    ("I hate coffee.", "I like tea."),
    ("I like tea.", "I like coffee."),
    ("My sister lives in Paris.", "I live in Rome."),
    ("Ana likes coffee", "I like coffee"),
    ("The user has a friend called Tom", "The user has a friend called Ana"),
    ("我有个朋友名叫小李", "我有个朋友名叫小王"),
    ("I want to live in Munich and learn German", "I learn German"),
    ("I don't drink coffee after 6pm", "I drink coffee every morning"),
    ("I ran 10 km on Monday", "I ran 20 km on Tuesday"),
    ("I don't drink coffee anymore", "The user's brother drinks coffee every morning."),
    ("I don't drink coffee anymore", "The user hates drinking coffee."),
    ("用户喜欢茶", "用户喜欢咖啡"),
    ("用户妹妹在伦敦工作", "用户住在北京"),
    ("我就职于字节跳动", "我在北京工作"),
    ("小李喜欢茶", "我喜欢茶"),
    ("I'm allergic to cat food.", "I'm allergic to cats."),
    ("I like the coffee machine at work.", "I like coffee."),
    ("I like coffee.", "I like the coffee machine at work."),
    ("I hate Monday meetings.", "I hate Mondays."),
    ("I love my mother's lasagne", "I love my mother"),
    ("我喜欢茶馆", "我喜欢茶"),
    ("我喜欢猫粮的味道", "我喜欢猫"),
    ("我讨厌下雨天堵车", "我讨厌下雨"),
]

DENIED = [
    ("I'm not allergic to peanuts", "I'm allergic to peanuts"),
    ("I'm allergic to peanuts", "I'm not allergic to peanuts"),
    ("I don't like coffee any more.", "The user likes coffee."),
    ("I hate coffee.", "I like coffee"),
    ("I don't drink coffee anymore", "The user drinks coffee every morning."),
    ("我对花生不过敏", "我对花生过敏"),
    ("我不喜欢咖啡", "用户喜欢喝咖啡"),
    ("我不吃肉了", "我吃肉"),
    ("I eat meat again", "The user is vegetarian."),
    ("我又开始吃肉了", "用户吃素"),
]

ENDED = [
    ("从字节跳动离职了", "我在字节跳动工作"),
    ("我从字节跳动离职了", "用户在字节跳动上班"),
    ("我辞职了", "我在腾讯工作"),
    ("我被裁了", "用户在京东工作"),
    ("I left Acme", "I work at Acme"),
    ("I quit my job", "I work at Acme"),
    ("I quit my job at Acme last month", "I work at Acme as a designer"),
    ("I'm no longer at Acme", "I'm a nurse at Acme"),
    ("I got laid off from Google", "The user works at Google as an engineer."),
    ("Bob and I got divorced", "The user is married to Bob."),
    ("I got divorced", "The user's wife is called Ines."),
    ("我离婚了", "我已婚"),
    ("我跟老公离婚了", "用户老公叫李强"),
    ("我和小李分手了", "用户女朋友叫小李"),
    ("我从北京搬走了", "用户住在北京朝阳"),
    ("I sold my car", "The user has a car"),
    ("I switched from Perl to Python", "The user uses Perl."),
    ("我从Java转到Go了", "用户用Java"),
]

NOT_ENDED = [
    ("我从字节跳动离职了", "我在腾讯工作"),
    ("我2010年辞职了", "用户在腾讯工作"),
    ("我和小李分手了", "用户女朋友叫小王"),
    ("我从北京搬走了", "用户住在上海"),
    ("I left Acme", "I work at Globex"),
    ("I got laid off in 2010", "The user works at Apple."),
    ("I got divorced in 2010", "The user is married to Bob."),
    ("My dog died", "The user has two cats."),
    ("My dog Max died", "The user has a dog named Rex."),
    ("I sold my car", "My brother has a car"),
]

IN_CONFLICT = [
    ("I run 20 km a week", "I run 10 km a week"),
    ("我每周跑二十公里", "我每周跑十公里"),
    ("My son weighs 18 pounds", "My son weighs 18 kilograms"),
    ("我儿子的体重是三十斤", "我儿子体重三十公斤"),
    ("My daughter was born on 14 May 2017", "My daughter was born on 4 May 2017"),
    ("The name of my cat is Biscuit", "My cat is named Pickles"),
    ("The deadline was moved to 14 March", "The deadline was moved to 2 May"),
    ("Please call me Alex, not Alexandra", "Please call me Alexandra, not Alex"),
    ("My train leaves at 7:40", "My train leaves at 12:30"),
    ("我的火车7:40开", "我的火车12:30开"),
    ("The meeting is on Thursday", "The meeting is on Friday"),
    ("I have three kids", "The user has two kids."),
    ("My boss is Tom", "My boss is Ana"),
    ("My favourite colour is teal", "My favourite colour is red"),
    ("我最喜欢的颜色是绿色", "我最喜欢的颜色是蓝色"),
    ("I worked at Acme", "I work at Acme"),
    ("My dog died", "The user has a dog named Rex."),
    # Which of two places lies in the other, or whether somebody moved, nothing tells.
    ("I live in Germany", "I've lived in Munich since 2015"),
    ("I live in Schwabing", "I live in Munich"),
    ("I live in Munich", "I live in Berlin"),
    ("我住在浦东", "我住在上海"),
    ("我住在中国", "我住在上海"),
    ("My name is Portuguese", "My name is Ana"),
    # The old one says more, which would be lost.
    ("I moved to Berlin", "I live in Munich with my wife Ana"),
    # One may be a city and the other an employer.
    ("我现在在百度工作", "我在北京工作"),
    ("我跳槽到字节跳动了", "我在腾讯工作"),
    ("我在腾讯工作", "我跳槽到字节跳动了"),
    ("我有三个孩子", "用户有两个孩子"),
    ("我戒咖啡了", "用户每天喝两杯咖啡"),
]


@pytest.mark.parametrize(("new", "old"), REPLACED)
def test_another_value_replaces_the_old_one(new, old):
    assert became(new, old) == "replaced"


@pytest.mark.parametrize(("new", "old"), REPEATED)
def test_what_is_remembered_is_repeated(new, old):
    assert became(new, old) == "repeated"


@pytest.mark.parametrize(("new", "old"), PAST_OR_FOR_A_WHILE)
def test_what_was_or_is_for_a_while_replaces_nothing(new, old):
    assert became(new, old) == "beside"


@pytest.mark.parametrize(("new", "old"), BESIDE)
def test_other_statements_stay_beside_each_other(new, old):
    assert became(new, old) == "beside"


@pytest.mark.parametrize(("new", "old"), DENIED)
def test_what_is_denied_is_replaced(new, old):
    assert became(new, old) == "replaced"


@pytest.mark.parametrize(("new", "old"), ENDED)
def test_an_ending_takes_the_place_of_what_it_ends(new, old):
    assert became(new, old) == "replaced"


@pytest.mark.parametrize(("new", "old"), NOT_ENDED)
def test_an_ending_leaves_what_it_does_not_end(new, old):
    assert became(new, old) == "beside"


@pytest.mark.parametrize(("new", "old"), IN_CONFLICT)
def test_what_may_contradict_stays_in_conflict(new, old):
    assert became(new, old) == "in conflict"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我的预算是二十万", "我的预算是十万"),
        ("My budget is $200,000", "My budget is $20,000"),
        ("My budget is 85k", "My budget is 8.5k"),
    ],
)
def test_an_amount_is_no_part_of_another(one, other):
    assert became(one, other) == "replaced"
    assert became(other, one) == "replaced"


@pytest.mark.parametrize(
    ("one", "other"), [("My budget is $85,000", "My budget is 85k"), ("预算是20万", "预算是二十万")]
)
def test_one_amount_written_in_two_ways_is_one(one, other):
    assert became(one, other) == "repeated"


def test_a_date_is_added_to_what_is_known():
    assert became("I started at Acme in March 2021", "I work at Acme") == "replaced"
    assert became("I work at Acme", "I started at Acme in March 2021") == "repeated"
    assert became("我2021年3月入职了字节跳动", "我就职于字节跳动") == "replaced"
    # Nothing is lost for a date.
    assert became("I started at Acme in March 2021", "I work at Acme as a designer") == "beside"


def test_a_longer_statement_is_not_lost_to_a_shorter_one():
    lessons = "My daughter Mia takes swimming lessons"

    assert became("My daughter is Mia", lessons) == "repeated"
    assert became(lessons, "My daughter is Mia") == "replaced"
    assert became("我女儿叫米娅", "我女儿米娅在学游泳") == "beside"


class TestTimes:
    def test_what_was_said_before_does_not_overwrite_what_was_said_later(self):
        for older, newer in [
            ("I live in Rome now", "I live in Bern"),
            ("我现在住在广州", "我住在深圳"),
        ]:
            remembered = near(newer, said_at=day(2024), create_time=day(2026))
            for said in (day(2020), day(2023, 12)):
                decision = decide(question(older, remembered, said_at=said))
                assert (decision.event, decision.conflicts) == ("ADD", ("mem_1",))
            for said in (day(2024), day(2024, 2), None):
                assert decide(question(older, remembered, said_at=said)).event == "SUPERSEDE"

    def test_what_was_denied_before_ends_nothing(self):
        remembered = near("I'm allergic to peanuts", said_at=day(2024))
        said = question("I'm not allergic to peanuts", remembered, said_at=day(2023))

        assert decide(said).conflicts == ("mem_1",)

    def test_what_ended_before_leaves_what_holds(self):
        remembered = near("I work at Acme", said_at=day(2024))

        assert decide(question("I left Acme", remembered, said_at=day(2023))).event == "ADD"

    def test_what_began_long_ago_does_not_end_what_was_said_since(self):
        remembered = near("I live in Munich", said_at=day(2024))
        moved = question(
            "I moved to Lisbon in 2008", remembered, said_at=day(2025), valid_from=day(2008)
        )

        assert decide(moved).conflicts == ("mem_1",)

    def test_what_holds_from_an_earlier_time_stays_beside(self):
        remembered = near("The user lives in Berlin.", valid_from=day(2020))
        for content in ("The user lives in Rome now.", "I live in Rome now"):
            earlier = question(content, remembered, valid_from=day(2019, 12))
            assert decide(earlier).conflicts == ("mem_1",)
            later = question(content, remembered, valid_from=day(2020))
            assert decide(later).event == "SUPERSEDE"

    def test_what_has_ended_is_not_replaced(self):
        old = near("The user lives in Berlin.", valid_to=day(2020))
        decision = decide(question("The user lives in Munich.", old))

        assert (decision.event, decision.conflicts) == ("ADD", ())


def test_what_is_very_near_and_counts_otherwise_is_in_conflict():
    new, old = "接口的超时时间是三百毫秒", "接口超时时间设的是三十秒"

    assert became(new, old, similarity=0.79) == "beside"
    assert became(new, old, similarity=0.8) == "in conflict"


def test_another_word_in_one_place_is_in_conflict_when_the_rest_is_the_same():
    new, old = "I prefer aisle seats on long flights", "I prefer window seats on long flights"

    assert became(new, old, similarity=0.74) == "beside"
    assert became(new, old, similarity=0.75) == "in conflict"
    # Few shared words say little.
    assert became("I like tea", "I like coffee", similarity=0.9) == "beside"


def test_what_may_be_so_of_several_things_is_in_no_conflict():
    for new, old in (
        ("My daughter is allergic to shrimp.", "My daughter is allergic to peanuts."),
        ("My son is learning the violin.", "My son is learning the piano."),
    ):
        assert became(new, old, similarity=0.65) == "beside"
    assert became("My locker is B12.", "My locker is A12.", similarity=0.65) == "in conflict"


def test_what_has_more_to_say_is_no_repetition():
    old = near("I'm still volunteering at the homeless shelter.", similarity=0.9)
    new = "Last week was wild - I volunteered at the homeless shelter and they gave me a medal!"

    assert decide(question(new, old)).event == "ADD"
    # What both share is one of two statements in a sentence.
    assert (
        became("我爸爸是医生，我是独生子", "我妈妈是老师，我爸爸是医生", similarity=0.9) == "beside"
    )


def test_an_attribute_is_compared_however_far_apart_the_sentences_are():
    assert became("I moved to Munich", "The user resides in Berlin.", similarity=0.05) == "replaced"


def test_every_old_value_is_replaced_and_what_says_more_is_kept():
    decision = decide(
        question(
            "I live in Munich now",
            near("I live in Berlin", "mem_1"),
            near("I live in Rome with my wife Ana", "mem_2"),
            near("I moved to Bern", "mem_3"),
        )
    )

    assert (decision.event, decision.memory_ids) == ("SUPERSEDE", ("mem_1", "mem_3"))
    assert decision.conflicts == ("mem_2",)


def test_a_wish_gives_no_attribute():
    old = near("The user works as a baker.")
    decision = decide(question("The user wants to work as a pilot.", old, kind="goal"))
    assert (decision.event, decision.conflicts) == ("ADD", ())


def test_other_words_for_the_same_count_only_when_near():
    new, old = "The user has a dog that is called Rex", "The user owns a dog named Rex at home"
    assert became(new, old, similarity=0.79) in {"beside", "repeated"}
    assert became(new, old, similarity=0.8) == "repeated"
    assert became(new, old, possible_duplicate=True) == "repeated"


RETRACTED = [
    ("The user does not work at Siemens anymore.", "The user works at Siemens.", "DELETE"),
    ("The user does not work at Siemens anymore.", "The user works at Bosch.", "NONE"),
    ("The user lives in Berlin.", "The user lives in Berlin.", "DELETE"),
    ("The user lives in Berlin.", "The user lives in Rome.", "NONE"),
    ("The user no longer has a dog.", "The user has a dog.", "DELETE"),
    ("The user no longer has a dog.", "The user has a cat.", "NONE"),
    ("用户不再养狗了", "用户养了一只狗", "DELETE"),
    ("用户不吃素了", "用户吃素", "DELETE"),
    ("用户不喝咖啡了", "用户弟弟每天喝咖啡", "NONE"),
]


@pytest.mark.parametrize(("new", "old", "event"), RETRACTED)
def test_what_holds_no_longer_deletes_what_said_so(new, old, event):
    assert decide(question(new, near(old), retracts=True)).event == event


def test_nothing_to_retract_is_nothing():
    assert decide(question("The user no longer has a dog.", retracts=True)).event == "NONE"


def test_a_correction_replaces_the_mistake_and_not_its_neighbour():
    decision = decide(
        question(
            "The user has a meeting with Tom every Thursday.",
            near("The user has a meeting with Ada every Monday.", "mem_1"),
            near("The user has a meeting with Tom every Friday.", "mem_2"),
            kind="correction",
            source_error="The user has a meeting with Tom every Friday.",
        )
    )
    assert (decision.event, decision.memory_ids) == ("SUPERSEDE", ("mem_2",))


@pytest.mark.parametrize(
    ("new", "old", "outcome"),
    [
        ("The user lives in Munich.", "The user lives in Berlin.", "in conflict"),
        ("The user hates coffee.", "The user likes coffee.", "in conflict"),
        ("The user lives in Munich-Schwabing.", "The user lives in Munich.", "beside"),
        ("The user plays tennis on Sundays.", "The user plays tennis.", "beside"),
        ("The user lives in Munich.", "The user lives in Munich.", "repeated"),
    ],
)
def test_what_is_protected_stays(new, old, outcome):
    assert became(new, old, protected=True) == outcome


@pytest.mark.parametrize(
    ("new", "old", "outcome"),
    [
        ("I moved to Bern in May", "I live in Munich.", "in conflict"),
        ("my wife is called Anna", "My wife is called Eva.", "in conflict"),
        ("I'm allergic to nuts and pollen", "I'm allergic to nuts.", "beside"),
        ("I live in Munich", "I live in Munich.", "repeated"),
        ("我搬到柏林了", "我住在慕尼黑。", "in conflict"),
    ],
)
def test_what_a_question_takes_for_granted_ends_nothing(new, old, outcome):
    decision = decide(question(new, near(old), presupposed=True))
    assert decision.event == ("NONE" if outcome == "repeated" else "ADD")
    assert decision.conflicts == (("mem_1",) if outcome == "in conflict" else ())
    assert became(new, old) != "beside", "it is near enough to be compared"


def test_what_is_protected_is_not_taken_back():
    kept = near("The user has a dog.", protected=True)
    assert decide(question("The user has no dog.", kept, retracts=True)).event == "NONE"


async def test_every_question_has_its_decision_in_order():
    reconciler = RulesReconciler()
    answer = await reconciler.reconcile(
        [
            question("The user likes tea."),
            question("The user now lives in Munich.", near("The user lives in Berlin.")),
        ]
    )
    assert [each.event for each in answer.decisions] == ["ADD", "SUPERSEDE"]
    assert answer.use.calls == 0
    assert (reconciler.name, reconciler.model) == ("rules/2", None)
