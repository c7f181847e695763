"""Since when a statement holds that says what is remembered and more, or tells of a move."""

import pytest
from httpx import AsyncClient

from tests.support.api import every_page, ok


async def tell(client: AsyncClient, content: str, at: str) -> dict:
    message = {"role": "user", "content": content, "said_at": at}
    answer = ok(await client.post("/memories", json={"messages": [message], "user_id": "ana"}), 201)
    return answer["results"][0]


async def remembered(client: AsyncClient) -> dict[str, dict]:
    rows = await every_page(client, "/memories", user_id="ana")
    return {row["content"].rstrip(".。"): row for row in rows}


@pytest.mark.parametrize(
    ("first", "second", "since"),
    [
        ("I live in Munich.", "I live in Munich and drink green tea every morning.", None),
        (
            "I've lived in Munich since 2019.",
            "I've lived in Munich since 2019 and drink green tea every morning.",
            "2019-01-01T00:00:00Z",
        ),
        ("我住在慕尼黑。", "我住在慕尼黑施瓦宾。", None),
    ],
)
async def test_what_says_more_holds_for_as_long(
    client: AsyncClient, first: str, second: str, since: str | None
) -> None:
    await tell(client, first, "2026-03-02T10:00:00Z")
    more = await tell(client, second, "2026-03-05T10:00:00Z")

    rows = (await remembered(client)).values()
    assert more["event"] == "SUPERSEDE"
    assert {(row["valid_from"], row["valid_to"]) for row in rows} == {(since, None)}


@pytest.mark.parametrize(
    ("told", "both"),
    [
        (
            [
                "I live in Berlin.",
                "I work at Globex.",
                "I live in Munich now.",
                "I work at Acme now.",
            ],
            "I live in Munich and work at Acme.",
        ),
        (
            ["我住在柏林。", "我就职于博世。", "我现在住在慕尼黑。", "我现在就职于西门子。"],
            "我住在慕尼黑，就职于西门子。",
        ),
    ],
)
async def test_what_says_two_things_in_one_holds_since_the_later_began(
    client: AsyncClient, told: list[str], both: str
) -> None:
    days = [f"2026-0{month}-02T10:00:00Z" for month in (1, 2, 3, 6)]
    first = [await tell(client, said, day) for said, day in zip(told, days, strict=True)]

    more = await tell(client, both, "2026-09-02T10:00:00Z")

    assert [each["event"] for each in (*first, more)] == ["ADD", "ADD", *["SUPERSEDE"] * 3]
    held = [
        ok(await client.get(f"/memories/{each['memory']['memory_id']}")) for each in (*first, more)
    ]
    assert [(row["valid_from"], row["valid_to"]) for row in held] == [
        (None, days[2]),
        (None, days[3]),
        (days[2], days[3]),
        (days[3], days[3]),
        (days[3], None),
    ]


async def test_where_one_start_is_unknown_it_holds_since_both_were_so(client: AsyncClient) -> None:
    await tell(client, "I work at Globex.", "2026-01-02T10:00:00Z")
    work = await tell(client, "I work at Acme now.", "2026-03-02T10:00:00Z")
    home = await tell(client, "I live in Munich.", "2026-06-02T10:00:00Z")

    both = await tell(client, "I live in Munich and work at Acme.", "2026-09-02T10:00:00Z")

    assert both["memory"]["valid_from"] == "2026-06-02T10:00:00Z"
    for each, since in ((work, "2026-03-02T10:00:00Z"), (home, None)):
        row = ok(await client.get(f"/memories/{each['memory']['memory_id']}"))
        assert (row["valid_from"], row["valid_to"]) == (since, both["memory"]["valid_from"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I live in Munich.", "I moved to Hamburg last week."),
        ("我住在慕尼黑。", "我上周搬到了汉堡。"),
    ],
)
async def test_move_told_later_ends_the_home_at_its_date(
    client: AsyncClient, first: str, second: str
) -> None:
    home = await tell(client, first, "2026-03-11T10:00:00Z")
    moved = await tell(client, second, "2026-03-11T10:05:00Z")

    [now] = (await remembered(client)).values()
    was = ok(await client.get(f"/memories/{home['memory']['memory_id']}"))
    assert moved["event"] == "SUPERSEDE"
    assert (now["valid_from"], now["conflicts_with"]) == ("2026-03-02T00:00:00Z", [])
    assert (was["status"], was["valid_from"]) == ("superseded", None)
    assert (was["valid_to"], was["superseded_by"]) == (now["valid_from"], now["memory_id"])


async def test_two_sales_stay_beside_each_other(client: AsyncClient) -> None:
    sales = ["I sold my car to buy a boat", "I sold my boat to buy a car"]
    for infer in (True, False):
        for sale in sales:
            body = {"messages": sale, "user_id": f"ana {infer}", "infer": infer}
            answer = ok(await client.post("/memories", json=body), 201)
            assert answer["results"][0]["event"] == "ADD"
        rows = await every_page(client, "/memories", user_id=f"ana {infer}")
        assert sorted(row["content"].rstrip(".") for row in rows) == sorted(sales)
        assert [row["conflicts_with"] for row in rows] == [[], []]
