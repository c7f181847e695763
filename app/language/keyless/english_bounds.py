"""Turns of phrase in English for what binds the speaker: the body, the doctor, the purse."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless.english_forms import others
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.patterns import joined
from app.language.keyless.statements import CONFIRMED, IMPLIED, Statement

FOODS: Final = joined(
    r"""
    (?:red |raw |spicy |fried |fatty |cow's |any |more )?(?:
        meat|pork|beef|fish|seafood|shellfish|shrimps?|prawns?|dairy|milk|cheese|gluten|wheat|
        bread|pasta|nuts?|peanuts?|walnuts?|almonds?|sugar|sweets|alcohol|wine|beer|liquor|booze|
        eggs?|soy|tofu|caffeine|coffee|tea|mushrooms?|onions?|garlic|food|lactose|cilantro|
        coriander|olives?|tomato(?:es)?|strawberr(?:y|ies)|kiwis?|bananas?|avocados?|chocolate|
        celery|sesame|carbs|salt|grapefruit|aspirin|penicillin|ibuprofen|bee stings?|wasp stings?
    )
    """
)


def _body(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user's {others(match['what'])}", "constraint")


def _harm(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"{match['what']} {match['does']} the user{match['how'] or ''}", "constraint")


def _without(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user has no {match['what']} {match['when']}", "constraint", IMPLIED)


def _nothing_with(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user wants nothing with {match['what']}", "constraint", CONFIRMED)


def _only(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user wants {match['what'].lower()} food only", "constraint", CONFIRMED)


def _limit(match: re.Match[str]) -> Iterator[Statement]:
    if re.search(
        r"\b(?:this|that) (?!year|month|week|summer)\w+", match["for"] or "", re.IGNORECASE
    ):
        return
    what = re.sub(r"^(?:my|our|the|an?) ", "", match["what"], flags=re.IGNORECASE)
    aim = f" {others(match['for'].strip())}" if match["for"] else ""
    yield from one(f"the user's {what.lower()}{aim} is {match['much']}", "constraint")


def _due(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user's {match['what']} is due {match['when']}", "constraint", past=False)


def _advised(match: re.Match[str]) -> Iterator[Statement]:
    done = others(match["what"])
    yield from one(f"the user was told by their {match['who']} to {done}", "constraint")


def _put_on(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user's doctor has put them on {others(match['what'])}", "constraint")


BOUNDS_SAID_FIRMLY: Final = (
    # "My doctor told me to avoid salt": hearsay of the kind that binds.
    whole(
        r"""
        (?:because |since )?(?:my|the) (?P<who>
            doctors?|gp|dentist|cardiologist|physio\w*|dietitian|dietician|therapist|surgeon|
            nutritionist|neurologist|allergist|endocrinologist|midwife
        )(?: has| have)?(?: (?:just|recently|also|really))*[ ]
        (?:
            told me|ordered me|advised me|wants me|says (?:i have|i need|i should|i must)|
            said (?:i have|i need|i should|i must)
        )(?: not(?= to))?(?: to)?[ ]
        (?P<what>(?:avoid|stay|cut|stop|eat|drink|limit|lay|keep|take|skip|quit|give|not)\b.+)
        """,
        _advised,
    ),
    # "Doctor put me on a low-sodium diet".
    whole(
        r"""
        (?:(?:my|the) )?(?:doctor|doc|gp|cardiologist|dietitian|nutritionist)[ ]
        (?:has |have |just )?(?:put|has|got) me on (?P<what>\S.+)
        """,
        _put_on,
    ),
)
BOUNDS_SAID: Final = (
    # "My throat swells up with peanuts", "my skin itches from wool".
    whole(
        r"""
        my (?P<what>
            (?:
                throat|face|skin|lips?|eyes|tongue|stomach|mouth|gut|airways?|hands|nose|
                chest|body
            ) (?:always |really |just |immediately )?
            (?:
                swells?|itch(?:es)?|closes|breaks? out|hurts?|reacts?|burns?|gets?|goes|go|
                rebels|tightens|cannot handle|cannot take|cannot tolerate|tingles?|blows|
                puffs|shuts|runs?|waters?|does not (?:agree|like|tolerate)
            )\b.*
            (?:with|from|when|whenever|after|if|every time|around|handle|take|tolerate|to)[ ]
            (?!(?:this|that|it)\b)\S.*
        )
        """,
        _body,
    ),
    # "Peanuts could kill me", "penicillin puts me in hospital".
    whole(
        rf"""
        (?P<what>(?:even (?:a trace of |one )?)?{FOODS})[ ]
        (?P<does>
            (?:could|would|can|will|might|nearly|almost)? ?
            (?:kills?|killed|poisons?|puts?|lands?|sends?|makes?|gives?|wrecks?|upsets?)
        )[ ](?:me|my stomach)(?P<how>
            [ ](?:
                in (?:the )?hospital|in the er|to (?:the )?(?:er|hospital)|
                into (?:shock|anaphylaxis|hospital)|ill|sick|puke|vomit|gag|bloated|itch|
                sneeze|swell|wheeze|break out|hives|a rash|
                (?:a )?(?:migraine|headache|stomach ache|heartburn|cramps)s?|up|all night
            )+
        )?$
        """,
        _harm,
    ),
    # "No coffee for me after 2 pm".
    whole(
        rf"""
        no (?P<what>(?:more )?{FOODS}(?: or {FOODS})?)(?: for me)?[ ]
        (?P<when>(?:after|before|past|until|on|during) [\w: ]{{2,25}})$
        """,
        _without,
    ),
    # "Absolute ceiling for the rental car is 45 a day", "our hard cap is 30 people".
    whole(
        r"""
        (?:my|our|the)? ?(?P<what>
            (?:
                (?:
                    absolute|hard|upper|max(?:imum)?|strict|top|total|monthly|weekly|daily|
                    price|spending|final|rent
                )[ ]
            )*(?:ceiling|cap|limit|budget|maximum|max|deadline|cutoff|cut-off|due date)
        )(?P<for>
            [ ](?:for|on|of) (?:the|our|my|a|rent|food|groceries|gifts?|travel|this trip)?
            [\w' -]{0,30}?
        )? (?:is|are|has to be|must be|:|=) (?P<much>
            (?!
                too|tight|over|under|not|the|my|what|fine|ok|gone|broken|reached|exceeded|
                wrong|right
            )\S.*
        )
        """,
        _limit,
    ),
    # "Nothing with sesame for me", "halal only for us".
    whole(
        rf"""
        (?:nothing with|no|without) (?P<what>{FOODS}(?:,? (?:or|and) {FOODS})?)
        (?: for (?:me|us)|,? please)+
        """,
        _nothing_with,
    ),
    whole(
        r"""
        (?P<what>
            halal|kosher|vegan|vegetarian|gluten-free|dairy-free|decaf|sugar-free|nut-free|
            lactose-free
        ) (?:food )?only(?: for (?:me|us))?(?: please)?$
        """,
        _only,
    ),
    # "The grant proposal is due on 30 April".
    whole(
        r"""
        (?:the|my|our) (?P<what>[\w -]{3,30}?) (?:is|are) due[ ]
        (?P<when>
            (?:on|by|in|at the end of) (?!(?:a|an) (?:hour|minute))
            (?!.*\b(?:ticket|hours?|minutes?)\b)\S.*
        )
        """,
        _due,
    ),
)
