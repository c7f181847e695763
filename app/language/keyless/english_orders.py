"""What somebody wants of the assistant from now on, said as an order."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_forms import others
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import Statement

# "… in this summary", "… here": an order for once.
_ONCE: Final = compiled(
    r"""
    \bin (?:this|the|that) \w+$|\bhere$|\bthis time$|\bfor (?:this|that) one$|
    \b(?:this|that|these) (?!kind|way|style|tone|format|point|day)\w+
    """
)
_FROM_NOW_ON: Final = compiled(
    r"""
    (?P<when>from now on|in (?:the )?future|going forward|from here on(?: out)?|by default|
    as a rule|for all (?:future )?\w+|(?:whenever|when|every time) [^,]{3,60}),? ?(?=\w)
    """
)
_LEADS_OFF: Final = compiled(r"^(?:(?:please|pls|so|just|and|also|can you|could you|you should) )+")


def _wanted(match: re.Match[str]) -> Iterator[Statement]:
    """A standing order: what the assistant is to do from now on."""
    if _ONCE.search(match["order"]):
        return
    order = re.sub(r",? please$", "", _LEADS_OFF.sub("", match["order"]), flags=re.IGNORECASE)
    when = _FROM_NOW_ON.match(order)
    if when:
        order = _LEADS_OFF.sub("", order[when.end() :])
    order = others(order)
    order = re.sub(r"^i want the assistant to ", "", order, flags=re.IGNORECASE)
    order = re.sub(r"^do not ", "not to ", order, flags=re.IGNORECASE)
    order = re.sub(r"^(?:stop|quit) (\w+ing)", r"to stop \1", order, flags=re.IGNORECASE)
    order = re.sub(r"^no (?!longer)", "to use no ", order, flags=re.IGNORECASE)
    if when:
        order = f"{order} {others(when['when'][0].lower() + when['when'][1:])}"
    order = order.replace("the assistant's", "its").replace("the assistant", "it")
    order = order if order.startswith(("not to", "to ")) else f"to {order[0].lower()}{order[1:]}"
    kind = "constraint" if re.search(r"\bnever\b", order) else "preference"
    yield from one(f"the user wants the assistant {order}", kind)


ORDERS: Final = (
    # "From now on, answer in German", "whenever you write code, add types".
    whole(
        rf"""
        (?P<order>
            (?:(?:please|so|just|and|also) )*(?:
                from now on|in (?:the )?future|going forward|from here on(?: out)?|by default|
                whenever [^,]{{3,60}},|when(?: you| i)? [^,]{{3,60}},|every time [^,]{{3,60}},|
                for all (?:future )?\w+,|as a rule
            ),? ?(?:please )?(?:
                i want you to |always |never |do not |you (?:should|must) (?:always |never )?|
                can you |could you )*(?:{words.ORDERS}|no)\b.+
        )
        """,
        _wanted,
    ),
    # "Always use metric units".
    whole(rf"(?P<order>(?:please )?(?:always|never) (?:ever )?(?:{words.ORDERS}) .+)", _wanted),
    # "Do not use emojis in your answers", "no bullet points".
    whole(
        rf"""
        (?P<order>
            (?:please )?
            (?:do not|stop|quit|no need to|avoid|refrain from|no|no more|skip|without) (?:
                (?:
                    ever|using|use|add|adding|include|including|sending|send|giving|give|me|
                    writing|write|any|all|the|so many|too many|so much|too much|start|end|
                    starting|ending|answer|reply|respond|with|in|your|putting|put|more|long|
                    fancy|unnecessary|calling|call me|saying|say
                ) )*(?:{words.ANSWER_THINGS})\b.*(?<!this time)(?<!here)(?<!today)
            (?<!for this one)
        )
        """,
        _wanted,
    ),
    # "Keep your answers short".
    whole(
        r"""
        (?P<order>
            (?:please )?(?:keep|make) (?:(?:your|the|all|all your|any|my) )?(?:
                answers|replies|responses|explanations|summaries|messages|code comments|
                comments|emails|tone
            ) .+
        )
        """,
        _wanted,
    ),
    # "Answer in German".
    whole(
        rf"""
        (?P<order>
            (?:please |only )*(?:
                answer|reply|respond|write|talk|speak|explain|answer me|reply to me|talk to me|
                speak to me|write to me|write back
            )(?: (?:to )?me| back| everything| things| only| always| questions| mostly)* (?:
                in (?:
                    {words.LANGUAGES}|short|bullet|plain|simple|full|british|american|brief|
                    markdown|a (?:formal|casual|friendly|concise)
                )|
                briefly|concisely|formally|informally|casually|
                with (?:short|brief|examples|code)
            )\b.*
        )
        """,
        _wanted,
    ),
    # "Use metric units".
    whole(
        r"""
        (?P<order>
            (?:please )?use (?:only |the )?(?:
                metric|celsius|fahrenheit|imperial|kilomet|24-hour|24h|british|american|simple|
                plain|formal|informal|type hints|tabs|spaces|short|snake_case|camelcase|si )\b.*
            (?<!this table)(?<!here)
        )
        """,
        _wanted,
    ),
    # "Stop apologising", "please stop repeating my question".
    whole(
        r"""
        (?P<order>
            (?:please )?(?:stop|quit) (?:
                apologi[sz]ing|repeating|summari[sz]ing|hedging|flattering|praising|lecturing|
                moralising|moralizing|rambling|padding|over-?explaining|calling me|asking me|
                thanking me|greeting me|asking (?:for|if|whether)|saying sorry|being so
            )\b.*
        )
        """,
        _wanted,
    ),
    # "I want you to always cite sources".
    whole(
        r"""
        i (?:want|need|would like|expect|prefer) you to (?P<order>
            (?:always|never|not ever|stop|only|from now on) .+
        )
        """,
        _wanted,
    ),
)
