"""How English speakers announce a decision, as a whole sentence."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless.english_forms import others, predicate
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.statements import Statement

# What points at the talk and not at the world: "I will go with your second one".
_POINTING: Final = r"""
    (?:it|this|that|these|those|them|your|you|both|all|one|two|either|whatever|what|which|whichever|
    (?:the|my|a) (?:first|second|third|last|other|latter|former|next|same|one|ones|flow)|
    option|number|some|any|so|too|fine|time|as|how|why|where|who|there|here|he|she|we|i)\b
    """
_THING: Final = rf"(?!{_POINTING})[\w+#./&'-]+(?: [\w+#./&'-]+){{0,4}}"


def _decided(match: re.Match[str]) -> Iterator[Statement]:
    """What follows the announcement, as a decision to do it or that it be so."""
    what = match["what"].strip(" .,:")
    own = re.match(r"(?:i|we) (?:will |are |am |shall )?", what, re.IGNORECASE)
    if re.match(r"(?:i|we) ", what, re.IGNORECASE) and own:
        done = predicate(what.split(" ", 1)[1])
        yield from one(f"the user decided: {others('they')} {_plural(done)}", "decision")
    elif re.match(r"no |not ", what, re.IGNORECASE):
        yield from one(f"the user decided on {others(what)}", "decision")
    else:
        yield from one(f"the user decided: {others(what)}", "decision")


def _plural(done: str) -> str:
    """The predicate as it follows "they": "are dropping", "ship"."""
    head, _, rest = done.partition(" ")
    head = {"is": "are", "was": "were", "has": "have"}.get(head, re.sub(r"(?<![su])s$", "", head))
    return f"{head} {rest}".strip()


def _chosen(match: re.Match[str]) -> Iterator[Statement]:
    use = match.groupdict().get("use")
    behind = f" {others(use.strip())}" if use else ""
    yield from one(f"the user decided on {others(match['what'])}{behind}", "decision")


def _ruled(match: re.Match[str]) -> Iterator[Statement]:
    team = re.sub(r"^(?:my|our) ", "the user's ", match["who"], flags=re.IGNORECASE)
    yield from one(f"{team} {match['did']} {others(match['what'])}", "decision", project=True)


CHOICES: Final = (
    # "Decision: no more weekend deploys", "it is settled, we drop IE11 support".
    whole(
        r"""
        (?:(?:ok|okay|so|alright|right|well),? )*
        (?:
            (?:the |my |our |final )*(?:decision|verdict|call)(?: is| has been)?
            (?: made| final| in)?|
            decided|settled|it is (?:settled|decided|official|final|a done deal)|
            that settles it|
            (?:i|we) (?:have |finally )*
            (?:made (?:my|our|a|the) (?:decision|choice|mind)|made up (?:my|our) mind|decided)
        )(?::| -|;|,(?= (?:we|i)\b)| —) ?
        (?P<what>(?!(?:what|how|why|help|please|can|so)\b)\S.{5,})
        """,
        _decided,
    ),
    # "OK, Kafka it is", "Lisbon it is then".
    whole(
        rf"""
        (?P<what>{_THING}) it is(?: then| now)?
        (?:,? (?P<use>for (?:the|our|my) [\w ]{{3,30}}))?[,.]?(?: then| final| thanks)*$
        """,
        _chosen,
    ),
    # "In the end Postgres won", "after long debate the blue logo won out".
    whole(
        rf"""
        (?:.{{0,60}}\b)?(?:in the end|ultimately|finally|after (?!all)[^,]{{4,40}}),?
        (?: (?:it was|we took|we chose))? (?P<what>{_THING})
        (?: (?:won|wins|won out|got the nod|came out on top|made the cut))$
        """,
        _chosen,
    ),
    # "Let us do Svelte for the frontend", "we will go ahead with Stripe for payments".
    whole(
        rf"""
        (?:let us|let's|we will|i will|we are going to|i am going to|we are gonna|i am gonna)
        (?: (?:go ahead with|go with|do|use|have|stick with|stay with|stick to|opt for|settle on|
        settle for|pick|choose)) (?P<what>{_THING}?) (?P<use>(?:for|as|in) (?:the|our|my|all|every)
        (?!this\b)[\w -]{{3,40}}?(?:,? (?:not|instead of|rather than|over) [\w+#. -]{{2,30}})?)
        (?: then| from now on)?$
        """,
        _chosen,
    ),
    # "I am going with the 13-inch one over the 15": a choice that names what was not taken.
    whole(
        rf"""
        (?:i|we) (?:(?:am|are|will|have|finally|just|all|going to|gonna|decided to|ended up) )*
        (?:go|going|went|gone|stick|sticking|stuck|choose|chose|chosen|pick|picked|opt|opted|
        settled?|take|taking|took|buy|buying) (?:with|for|on|to)? ?(?P<what>{_THING}
        ,? (?:instead of|rather than|over|and not|not) (?!{_POINTING})[\w+#. '-]{{2,40}})$
        """,
        _chosen,
    ),
    # "The team voted for trunk-based development", "our board approved the merger".
    whole(
        r"""
        (?P<who>
            (?:the|our|my) (?:[\w-]+ )?(?:
                team|board|committee|council|company|group|client|family|management|
                department|crew|band|club|architects?|stakeholders|leads
            )
        )(?: have| has)?(?: (?:all|finally|just|unanimously|also))*[ ]
        (?P<did>
            decided|voted|agreed|chose|chosen|settled|picked|opted|approved|rejected|
            ruled out|signed off on|landed on|went with|gone with
        ) (?P<what>(?!(?:\w+ )?(?:it|this|that$|you)\b)\S.*)
        """,
        _ruled,
    ),
)
