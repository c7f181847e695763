"""A home, an employer or a job that is told of twice: which of the two statements holds.

The second statement is read as it is in a conversation, with its date, and compared with the first
by when each was said and since when each holds.
"""

from datetime import UTC, datetime

import pytest

from app.language.keyless.attributes import attribute_of, attributes_of
from app.language.keyless.kinds import memory_type
from app.language.keyless.reconciler import decide
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileDecision, ReconcileQuestion
from app.language.text.time_expressions import validity

TODAY = datetime(2026, 11, 27, 21, tzinfo=UTC)
LATER = datetime(2026, 11, 27, 21, 5, tzinfo=UTC)
BEFORE = datetime(2026, 11, 1, 9, tzinfo=UTC)
YESTERDAY = datetime(2026, 11, 26, tzinfo=UTC)
SPRING = datetime(2026, 4, 1, tzinfo=UTC)
YEARS_AGO = datetime(2019, 1, 1, tzinfo=UTC)


def told_at(content: str, told: datetime) -> Proposed:
    """A statement with what the reader takes from its words."""
    began = any(each.began for each in attributes_of(content))
    begin, end = validity(content, told, began=began)
    kind = "fact" if attribute_of(content) else memory_type(content)
    return Proposed(content, kind, 0.95, ("msg_1",), valid_from=begin, valid_to=end, said_at=told)


def second(
    new: str, old: str, *, told: datetime = LATER, since: datetime | None, kind: str = "fact"
) -> ReconcileDecision:
    """What is decided about a statement beside one that was said today, and holds since a time or
    one that nobody told.
    """
    kept = Neighbour("mem_1", old, kind, 0.9, 0.7, said_at=TODAY, valid_from=since)
    return decide(ReconcileQuestion(told_at(new, told), (kept,)))


MOVED = [
    ("I moved to Hamburg.", "I live in Munich."),
    ("I moved to Hamburg last week.", "I live in Munich."),
    ("I moved to Berlin yesterday.", "I live in Hamburg now."),
    ("I moved from Munich to Hamburg last week.", "I live in Munich."),
    ("I moved to Hamburg last month.", "I live in Munich."),
    ("I started at Globex last month.", "I work at Acme."),
    ("I got a new job at Globex last week.", "I work at Acme."),
    ("I work as a teacher now.", "I work as a nurse."),
    ("我搬到汉堡了。", "我住在慕尼黑。"),
    ("我上周搬到汉堡了。", "我住在慕尼黑。"),
    ("我昨天搬到柏林了。", "我现在住在汉堡。"),
    ("我上个月入职了博世。", "我就职于西门子。"),
    ("我上个月转行当老师了。", "我是一名护士。"),
    ("我现在是一名老师。", "我是一名护士。"),
]

NOT_FOR_GOOD = [
    ("I moved from Outlook to Gmail last week.", "I live in Munich."),
    ("I moved to Hamburg two months ago, but I moved back last week.", "I live in Munich."),
    ("I moved to Hamburg two months ago and moved back last week.", "I live in Munich."),
    ("Last month I moved to Hamburg for a three-week internship.", "I live in Munich."),
    ("I moved to Hamburg last month for a three-week internship.", "I live in Munich."),
    ("I moved to Hamburg for three weeks last month.", "I live in Munich."),
    ("我两个月前搬到汉堡了，上周又搬回来了。", "我住在慕尼黑。"),
    ("我上个月搬到汉堡实习三周。", "我住在慕尼黑。"),
    ("我上个月搬到汉堡住三周。", "我住在慕尼黑。"),
]

OF_UNKNOWN_ORDER = [
    ("I moved to Hamburg two months ago.", "I just moved to Berlin."),
    ("I started at Globex last month.", "I got a job at Acme."),
    ("我两个月前搬到汉堡了。", "我刚搬到柏林。"),
]

ON_THE_SIDE = [
    ("I started working as a volunteer firefighter last month.", "I work as a nurse."),
    ("I started working as a freelance translator on the side last month.", "I work as a nurse."),
    ("I started as captain of our football team last week.", "I work as a nurse."),
    ("I started as captain of our new team.", "I work as a nurse."),
    ("I started working as a teacher last month.", "I work as a nurse."),
    ("I now work as a translator on the side.", "I work as a nurse."),
    ("I started at Globex as a volunteer last month.", "I work at Acme."),
    ("I started at Globex as a volunteer.", "I work at Acme."),
    ("I started working at Globex on weekends last month.", "I work at Acme."),
    ("我上个月开始当家长了。", "我是一名护士。"),
    ("我上周开始当班长了。", "我是一名学生。"),
    ("我上个月开始当老师了。", "我是一名护士。"),
]

GONE = [
    ("I sold my car last month.", "I have a car."),
    ("I sold my car last month.", "My car is a Golf."),
    ("My dog was put down last week.", "I have a dog."),
    ("我把车卖了。", "我有车。"),
]

PERHAPS_NOT_GONE = [
    ("My dog died last week.", "I have a dog and a cat."),
    ("I sold my Golf last week.", "I have a Golf and a Vespa."),
    ("I sold ice cream last summer.", "I like ice cream."),
    ("My car died yesterday on the motorway.", "My car is a Golf."),
    ("My laptop died today but I fixed it.", "My laptop is a ThinkPad."),
    ("My phone died yesterday.", "My phone is an iPhone 12."),
    ("I sold my car last week but bought it back.", "I have a car."),
    ("I sold my guitar yesterday.", "I love my guitar."),
    ("我上周把车卖了。", "我有车和船。"),
    ("我昨天卖了吉他。", "我爱吉他。"),
    ("我上周把车卖了，但又买回来了。", "我有车。"),
]

LONG_AGO = [
    ("I moved to Lisbon in 2008.", "I live in Munich."),
    ("I started at Globex in 2015.", "I work at Acme."),
    ("我2008年搬到里斯本了。", "我住在慕尼黑。"),
    ("我2015年入职了博世。", "我就职于西门子。"),
]

SINCE = [
    ("I moved to Hamburg in March.", datetime(2026, 3, 1, tzinfo=UTC)),
    ("I started at Globex on Monday.", datetime(2026, 11, 23, tzinfo=UTC)),
    ("我三月搬到汉堡了。", datetime(2026, 3, 1, tzinfo=UTC)),
    ("我五月一号入职了博世。", datetime(2026, 5, 1, tzinfo=UTC)),
    ("I live in Hamburg since May.", datetime(2026, 5, 1, tzinfo=UTC)),
    ("I moved to Hamburg a week ago today.", datetime(2026, 11, 20, tzinfo=UTC)),
    ("In March, I moved to Hamburg.", datetime(2026, 3, 1, tzinfo=UTC)),
    ("I live in Hamburg in winter.", None),
    ("我搬到汉堡了，五月要结婚。", None),
    ("我跳槽到字节了，周五有考试。", None),
    ("我搬到汉堡了，五月一号要去日本旅行。", None),
    ("I moved to Berlin, since my contract ends in March.", None),
    ("I got a new job at Google and in December I will marry.", None),
    ("I started working at Google, and my contract ends in March.", None),
    ("My exam is on Friday.", None),
]

PAST = [
    ("I lived in Lisbon until 2019.", "I live in Munich."),
    ("I worked at Globex in 2015.", "I work at Acme."),
    ("I used to work as a teacher.", "I work as a nurse."),
    ("我去年住在广州。", "我住在深圳。"),
    ("我2015年在博世公司工作过。", "我在西门子公司工作。"),
    ("我以前是一名老师。", "我是一名护士。"),
]


@pytest.mark.parametrize(("new", "old"), MOVED)
@pytest.mark.parametrize("since", [None, YEARS_AGO, SPRING])
def test_move_told_later_replaces_what_began_before_it_or_nobody_knows_when(
    new: str, old: str, since: datetime | None
) -> None:
    assert second(new, old, since=since).event == "SUPERSEDE"


@pytest.mark.parametrize(("content", "since"), SINCE)
def test_what_began_on_a_day_without_a_year_did_on_the_last_one(
    content: str, since: datetime | None
) -> None:
    assert told_at(content, TODAY).valid_from == since


@pytest.mark.parametrize(("new", "old"), MOVED)
def test_move_told_before_replaces_nothing_that_was_said_since(new: str, old: str) -> None:
    decision = second(new, old, told=BEFORE, since=None)

    assert (decision.event, decision.conflicts) == ("ADD", ("mem_1",))


@pytest.mark.parametrize(
    ("new", "old"),
    [pair for pair in MOVED if any(each in pair[0] for each in ("last", "上周", "上个月"))],
)
def test_move_from_before_the_other_value_began_stays_in_conflict(new: str, old: str) -> None:
    decision = second(new, old, since=YESTERDAY)

    assert (decision.event, decision.conflicts) == ("ADD", ("mem_1",))


@pytest.mark.parametrize(("new", "old"), LONG_AGO)
def test_move_of_years_ago_is_no_news_and_stays_in_conflict(new: str, old: str) -> None:
    """Munich was told since then: it may have come after Lisbon."""
    decision = second(new, old, since=None)

    assert (decision.event, decision.conflicts) == ("ADD", ("mem_1",))


@pytest.mark.parametrize(
    ("new", "old"), [*NOT_FOR_GOOD, *OF_UNKNOWN_ORDER, *ON_THE_SIDE, *PERHAPS_NOT_GONE]
)
def test_what_may_be_for_a_while_or_on_the_side_ends_nothing(new: str, old: str) -> None:
    assert second(new, old, since=None).event == "ADD"


@pytest.mark.parametrize(("new", "old"), GONE)
def test_what_is_gone_ends_that_it_is_there(new: str, old: str) -> None:
    assert second(new, old, since=None).event == "SUPERSEDE"


@pytest.mark.parametrize(("new", "old"), PAST)
@pytest.mark.parametrize("since", [None, YEARS_AGO, SPRING])
def test_what_was_never_replaces_what_is(new: str, old: str, since: datetime | None) -> None:
    decision = second(new, old, since=since)

    assert (decision.event, decision.memory_ids) == ("ADD", ())


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("I live in Munich and drink green tea every morning.", "I live in Munich."),
        ("I work at Acme as a designer.", "I work at Acme."),
        ("I am a nurse by profession and I love it.", "I work as a nurse."),
        ("我住在慕尼黑，每天早上喝绿茶。", "我住在慕尼黑。"),
    ],
)
def test_what_says_the_same_and_more_keeps_the_start(new: str, old: str) -> None:
    decision = second(new, old, since=None)

    assert (decision.event, decision.keeps_start) == ("SUPERSEDE", True)


@pytest.mark.parametrize(("new", "old"), MOVED)
def test_another_value_keeps_no_start(new: str, old: str) -> None:
    assert not second(new, old, since=YEARS_AGO).keeps_start


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("I sold my boat to buy a car", "I sold my car to buy a boat"),
        ("I sold my car to buy a boat", "I sold my boat to buy a car"),
        ("我卖了船买车", "我卖了车买船"),
    ],
)
def test_two_sales_are_two_events(new: str, old: str) -> None:
    decision = second(new, old, since=None, kind="event")

    assert (decision.event, decision.conflicts) == ("ADD", ())


def test_what_was_sold_for_another_thing_is_gone() -> None:
    for new, old in (
        ("I sold my car to buy a boat.", "I have a car."),
        ("I sold my car last month because it broke down.", "I have a car."),
        ("我卖了车买船。", "我有车。"),
    ):
        assert second(new, old, since=None).event == "SUPERSEDE", new


@pytest.mark.parametrize(
    "said",
    [
        "I moved to the night shift in May.",
        "I moved to Windows 11 last week.",
        "I moved to day shift.",
        "我搬到了夜班组",
        "我搬到财务部了",
    ],
)
def test_what_is_no_place_is_no_home(said):
    assert [each for each in attributes_of(said) if each.name == "user.residence"] == []


@pytest.mark.parametrize(
    ("said", "home"),
    [
        ("I moved to Hamburg in March 2021.", "Hamburg"),
        ("I moved to the Netherlands.", "the Netherlands"),
        ("i moved to berlin last month", "berlin"),
        ("我搬到北部了", "北部"),
    ],
)
def test_where_somebody_moved_is_their_home(said, home):
    assert [each.value for each in attributes_of(said)] == [home]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("I also work at a bakery on Saturdays.", "I work at Siemens."),
        ("I work for Bosch as well.", "I work at Siemens."),
        ("I live in Spain in winter.", "I live in Munich."),
        ("He told me: I work at Apple and I earn 200k.", "I work at Siemens."),
        ("My sister told me: I live in Oslo now.", "I live in Munich."),
        ("I live at Rua Augusta 5.", "I moved to Lisbon."),
        ("I like coffee ice cream.", "I don't like coffee."),
        ("I don't eat red meat.", "I don't eat meat."),
        ("I don't eat meat.", "I don't eat red meat."),
    ],
)
def test_what_may_hold_beside_it_ends_nothing_and_is_stored(new, old):
    assert second(new, old, since=None).event == "ADD"
