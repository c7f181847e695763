"""What an ending ends: which remembered statement holds no longer after a new one, by frame.

Reads sentences in the third person, as `attributes` does; the frames here are the English ones.
"""

import re
from typing import Final

from app.language.keyless.attributes import attribute_of, comparable
from app.language.keyless.chinese_endings import chinese_ends
from app.language.keyless.patterns import compiled
from app.language.text.normal_forms import has_cjk

_JOB_ENDS: Final = compiled(
    r"""
    the user (?:(?:just|recently|finally|has|was|got|been|is|have) )*(?:
        (?:quit|left|lost|resigned from) (?:their |the |a )?job
        (?: (?:at|with|as a \w+ at) (?P<at>[^.,]+?))?|
        (?:laid off|fired|let go|made redundant|sacked|dismissed|resigned|retired|departed)
        (?: (?:from|by) (?P<from>(?!their|the|work)[^.,]+?))?|
        (?:quit|left) (?P<left>(?-i:[A-ZÀ-Þ])[\w&.'-]*(?: (?-i:[A-ZÀ-Þ])[\w&.'-]*)*)|
        (?:no longer works?|does not work|stopped working) (?:at|for) (?P<no>[^.,]+?)
    )
    (?: (?:any ?more|any longer|today|yesterday|recently|last \w+|this \w+|in \w+(?: \d{4})?|
        on [^.]+|after [^.]+))?\.?$
    """
)
_COUPLE_ENDS: Final = compiled(
    r"""
    the\ user\ (?:and\ (?P<one>[\w' -]+?)\ )?(?:(?:just|recently|has|have|is|are|got|getting)\ )*
    (?:divorced|separated|broke\ up|broken\ up|split\ up|widowed)
    (?:\ (?:from\ |with\ )?(?P<other>
        (?:their\ |(?-i:[A-ZÀ-Þ]))[\w'-]+(?:\ (?-i:[A-ZÀ-Þ])[\w'-]+)*
    ))?(?:\ (?:in|last|this|on|after|recently)\b[^.]*)?\.?$
    """
)
_PETS: Final = "dog|cat|puppy|kitten|rabbit|hamster|parrot|horse|bird|fish|guinea pig|turtle|snake"
_PET_ENDS: Final = compiled(
    rf"the user's (?P<kind>{_PETS})(?:,? (?P<name>(?-i:[A-ZÀ-Þ])[\w'-]+),?)? "
    r"(?:(?:has|just|recently|sadly|was|had to be) )*"
    r"(?:died|dies|passed away|passed|put down|put to sleep)\b"
)
_PET: Final = compiled(
    rf"(?:the user )?(?:has|owns|got|adopted|bought) "
    rf"(?:an? |one )(?:[\w-]+ ){{0,2}}(?P<kind>{_PETS})"
    r"(?: (?:named|called) (?P<name>[\w'-]+))?\.?$"
    rf"|the user's (?P<kind2>{_PETS})(?:'s name is| is (?:called|named)) (?P<name2>[\w'-]+)\.?$"
)
_MEAT_AGAIN: Final = compiled(
    r"""
    the\ user\ (?:(?:now|has|started|also)\ )*
    (?:eats|eat|eating)\ (?:meat|chicken|beef|pork)\b.*\bagain\b|
    the\ user\ (?:is\ no\ longer|is\ not|stopped\ being|was)\ (?:an?\ )?
    (?:vegetarian|vegan|pescatarian)
    (?:\ any\ ?more|\ any\ longer)?\.?$
    """
)
_MEATLESS: Final = compiled(
    r"(?!.*\b(?:not|no longer|any ?more)\b)the user (?:is|became|eats|went)\b"
    r".*\b(?:vegetarian|vegan|pescatarian)\b"
)
_NUMBERS: Final = r"[0-9]{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_COUNT: Final = compiled(
    rf"(?:the user )?(?:has|owns) (?P<number>an?|{_NUMBERS}) (?P<what>kids?|child(?:ren)?|"
    rf"sons?|daughters?|brothers?|sisters?|siblings?|grandchild(?:ren)?|grandkids?|(?:{_PETS})s?|cars?|bikes?)\.?$"
)
_SWITCHED: Final = compiled(
    r"""
    the\ user\ (?:(?:just|recently|finally|has|now)\ )*(?:switched|moved|migrated|changed)
    (?:\ over)?(?:\ from\ (?P<old>[\w+#. -]+?))?\ to\ (?P<new>[\w+#. -]+?)
    (?:\ (?:in|last|this|on|because|after|recently|for)\b[^.]*)?\.?$
    """
)
_USES: Final = compiled(
    r"the user (?:(?:mainly|mostly|usually|always|daily|currently|primarily) )*"
    r"(?:uses|works with|works in|codes in|edits in|writes code in|"
    r"is on|runs|prefers|drives) (?P<what>[\w+#. -]+?)(?: (?:as|for|on|every)\b[^.]*)?\.?$"
)
_RIVALS: Final = (
    {"vim", "neovim", "emacs", "vs code", "vscode", "visual studio code", "sublime text", "sublime",
     "intellij", "nano", "zed", "cursor", "helix", "pycharm", "atom", "eclipse"},
    {"windows", "linux", "macos", "ubuntu", "fedora", "arch linux", "debian", "mac"},
    {"chrome", "firefox", "safari", "edge", "brave", "opera", "arc"},
    {"iphone", "android", "an iphone", "an android", "ios"},
    {"bash", "zsh", "fish", "powershell"},
    {"spotify", "apple music", "tidal", "youtube music"},
    {"gmail", "outlook", "protonmail", "fastmail"},
    {"notion", "obsidian", "evernote", "onenote", "logseq"},
)  # fmt: skip
# An end without a name that lies years back is none of what holds now.
_DATED: Final = compiled(r"\b(?:19|20)[0-9]{2}\b|\bago\b")
_NO_MORE: Final = compiled(
    r"the user (?:no longer \w+|does not \w+\b.*\b(?:any ?more|any longer)\b|"
    r"(?:has )?(?:stopped|quit|gave up|given up) \w+ing\b)"
)
_SINGULAR: Final = {"children": "kid", "child": "kid", "kids": "kid", "grandchildren": "grandkid"}


def ends(new: str, old: str) -> bool:
    """Tell whether an old statement holds no longer, now that the new one does."""
    if has_cjk(new) and not new.startswith("The user"):
        return chinese_ends(new, old)
    return any(found(new, old) for found in (_job, _couple, _pet, _diet, _count, _switch))


def is_ending(content: str) -> bool:
    """Tell a statement that something is done no more: "does not drink coffee anymore"."""
    return _NO_MORE.match(content) is not None


def _value(old: str, attribute: str) -> str | None:
    given = attribute_of(old)
    return comparable(given[1]) if given and given[0] == attribute else None


def _job(new: str, old: str) -> bool:
    found = _JOB_ENDS.match(new)
    employer = _value(old, "user.employer") if found else None
    if not found or employer is None:
        return False
    named = next((each for each in found.groups() if each), None)
    return _names(employer, named) if named else not _DATED.search(new)


def _couple(new: str, old: str) -> bool:
    found = _COUPLE_ENDS.match(new)
    partner = _value(old, "user.partner") if found else None
    if not found or partner is None:
        return False
    named = found["one"] or found["other"]
    if named is None or named.startswith("their "):
        return not _DATED.search(new)
    return _names(partner, named)


def _names(value: str, named: str) -> bool:
    named = comparable(named)
    return bool(re.search(rf"(?<!\w){re.escape(named)}(?!\w)", value))


def _pet(new: str, old: str) -> bool:
    found = _PET_ENDS.match(new)
    pet = _PET.match(old) if found else None
    if not found or not pet:
        return False
    name = pet["name"] or pet["name2"]
    same = found["kind"].casefold() == (pet["kind"] or pet["kind2"]).casefold()
    return same and (not found["name"] or not name or found["name"] == name)


def _diet(new: str, old: str) -> bool:
    return bool(_MEAT_AGAIN.match(new) and _MEATLESS.match(old))


def _count(new: str, old: str) -> bool:
    one, other = _COUNT.match(new), _COUNT.match(old)
    if not one or not other or one["number"].casefold() in {"a", "an"}:
        return False
    same = _kind(one["what"]) == _kind(other["what"])
    return same and one["number"].casefold() != other["number"].casefold()


def _kind(what: str) -> str:
    what = what.casefold()
    return _SINGULAR.get(what, what.removesuffix("s"))


def _switch(new: str, old: str) -> bool:
    found = _SWITCHED.match(new)
    used = _USES.match(old) if found else None
    if not found or not used:
        return False
    now, before = comparable(found["new"]), comparable(used["what"])
    if found["old"]:
        return comparable(found["old"]) == before
    return now != before and any(now in group and before in group for group in _RIVALS)
