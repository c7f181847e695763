"""When two values of an attribute are the same, and when one says the other more precisely.

Numbers are compared by what they count (85k and $85,000), words as whole words: 十万 is no part of
二十万, and York none of New York.
"""

import re

from app.language.keyless.attributes import attributes_of, comparable
from app.language.text.normal_forms import has_cjk
from app.language.text.quantities import Quantity, counts_differ, take_quantities


def is_same_value(one: str, other: str) -> bool:
    """Tell whether two values are one."""
    one, other = comparable(one), comparable(other)
    if one == other:
        return True
    (counts, words), (other_counts, other_words) = take_quantities(one), take_quantities(other)
    return (
        bool(counts)
        and not counts_differ(counts, other_counts)
        and _words(words) == _words(other_words)
    )


def is_one_value(one: str, other: str, attribute: str) -> bool:
    """Tell whether two values are one, or one of them says the other more precisely."""
    return (
        is_same_value(one, other)
        or is_more_precise(one, other, attribute)
        or is_more_precise(other, one, attribute)
    )


def give_other_values(one: str, other: str, attribute: str) -> bool:
    """Tell whether two statements surely give two values of an attribute."""
    given = [
        next((each.value for each in attributes_of(content) if each.name == attribute), None)
        for content in (one, other)
    ]
    if given[0] is None or given[1] is None:
        return False
    return not is_one_value(given[0], given[1], attribute)


def is_more_precise(longer: str, shorter: str, attribute: str) -> bool:
    """Tell whether a value says another and more: "Munich-Schwabing" and "Munich", but not
    "New York" and "York". Of Chinese places the larger stands first, of names the family's.
    """
    written, short = longer.strip(), comparable(shorter)
    long = comparable(longer)
    if len(long) <= len(short) or not short:
        return False
    (counts, words), (fewer, fewer_words) = take_quantities(long), take_quantities(short)
    if attribute != "user.name" and (counts or fewer):
        return _values(fewer) <= _values(counts) and _words(fewer_words) <= _words(words)
    if has_cjk(short):
        if len(short) < 2:
            return False
        return long.endswith(short) or (attribute != "user.name" and long.startswith(short))
    found = re.search(rf"(?<!\w){re.escape(short)}(?!\w)", written, re.IGNORECASE)
    if found is None:
        return False
    before = re.search(r"(\w+) $", written[: found.start()])
    return before is None or before[1].islower()


def _values(counts: frozenset[Quantity]) -> set[str]:
    return {value for value, _ in counts}


def _words(text: str) -> set[str]:
    # What stands between the numbers of a date is no word.
    found = re.findall(r"[^\W_年月日号]+", text)
    return set().union(*(set(word) if has_cjk(word) else {word} for word in found))
