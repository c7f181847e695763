"""Triples of English sentences in the third person, as data and how it is read.

The subject is the user, or somebody of theirs whose name stands beside what they are; whoever
else is named is read by `relations_named`. Names are told by their capitals, so nothing is read
where there are none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.language.keyless.patterns import exact
from app.language.keyless.relations_named import named_relations
from app.language.llm.extractor import SPEAKER, ProposedRelation
from app.language.text.lazy_pattern import lazy_pattern

_WORD: Final = r"[A-ZÀ-Þ][\w'’&+#.-]*[\w+#]|[A-ZÀ-Þ]"
_NAMED: Final = (
    rf"(?:{_WORD})(?: (?:(?:of|de|la|van|von|der|the|and|for) ){{0,2}}(?:{_WORD}|[0-9]+)){{0,5}}"
)
_PERSON: Final = (
    rf"(?:(?:Professor|Prof\.?|Dr\.?|Mr\.?|Mrs\.?|Ms\.?) )?(?:{_WORD})(?: (?:{_WORD})){{0,2}}"
)
_FIELD: Final = (
    r"[A-Za-z][\w+#-]*(?: (?!at\b|in\b|as\b|and\b|with\b|since\b|for\b|every\b|"
    r"on\b|to\b)[\w+#-]+){0,3}"
)
_SOON: Final = (
    r"(?:(?:currently|now|also|still|just|recently|previously|really|both|is|has|has been|was) )*"
)
_END: Final = (
    r"(?=$|[.,;!]|[ ](?:since|as|in (?:19|20)[0-9]{2}|in (?:January|February|March|April|May|"
    r"June|July|"
    r"August|September|October|November|December)|on|for|and|with|where|who|which|now|last|this|"
    r"again|together|from|at|until|because|near)\b)"
)
_THE: Final = r"(?:the |The )?"

_DAYS: Final = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"

_VOID: Final = lazy_pattern(
    r"\b(?:not|never|no longer|used to|former|formerly|ex|if|would|could|might|may|wants?|hopes?|"
    r"plans?|planning|wishes|considering|thinking|dreams?|will|going to|late|cannot|without|"
    r"left|quit|divorced|wonders?|almost|nearly)\b(?! \d)|n't\b|\?|ex-",
    re.IGNORECASE,
)
_MONTH_MAY: Final = lazy_pattern(r"\bMay\b(?= [0-9]|,|\.|$)")
_RETRACTED: Final = lazy_pattern(r"\bno longer |\bnot (?=.* any ?more)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Predicate:
    """What is said of a subject; the groups `one` and `two` are what it is joined with."""

    pattern: re.Pattern[str]
    one: tuple[str, str]
    two: tuple[str, str] | None = None


def _said(pattern: str, *joins: tuple[str, str]) -> _Predicate:
    return _Predicate(exact(rf"{_SOON}{pattern}"), joins[0], joins[1] if joins[1:] else None)


_PREDICATES: Final = (
    _said(
        rf"(?:lives|living|resides|based|settled)(?: with [\w' ]+?)? in {_THE}(?P<one>{_NAMED})"
        rf"{_END}",
        ("lives_in", "place"),
    ),
    _said(
        rf"(?:moved|relocated|emigrated)(?: back| over)?(?: from [\w ]+?)"
        rf"? to {_THE}(?P<one>{_NAMED}){_END}",
        ("lives_in", "place"),
    ),
    _said(
        rf"(?:works?|working|employed|worked)(?: [\w -]{{2,40}}?)? (?:at|for)"
        rf" {_THE}(?P<one>{_NAMED}){_END}",
        ("works_at", "organization"),
    ),
    _said(
        rf"(?:joined|got a (?:\w+ )?job at|started (?:a (?:new )?job |working )?at) "
        rf"{_THE}(?P<one>{_NAMED}){_END}",
        ("works_at", "organization"),
    ),
    _said(
        rf"(?:interns?|interning) (?:at|with) {_THE}(?P<one>{_NAMED}){_END}",
        ("interns_at", "organization"),
    ),
    _said(
        rf"(?:stud(?:ies|ying)|majors in|majoring in) (?P<two>{_FIELD})"
        rf" at {_THE}(?P<one>{_NAMED}){_END}",
        ("studies_at", "organization"),
        ("studies", "field"),
    ),
    _said(
        rf"(?:(?:stud(?:ies|ying)|enrolled) at|goes to|attends|an? (?:\w+ )?student at) "
        rf"{_THE}(?P<one>{_NAMED}){_END}",
        ("studies_at", "organization"),
    ),
    _said(
        rf"(?:stud(?:ies|ying)|majors in|majoring in) (?!hard|a lot|abroad|for |late|together|"
        rf"at |in )"
        rf"(?P<one>{_FIELD})(?=$|[.,;!])",
        ("studies", "field"),
    ),
    _said(rf"graduated from {_THE}(?P<one>{_NAMED}){_END}", ("graduated_from", "organization")),
    _said(rf"(?:married|engaged)(?: to)? (?P<one>{_PERSON}){_END}", ("married_to", "person")),
    _said(rf"dating (?P<one>{_PERSON}){_END}", ("in_relationship_with", "person")),
    _said(rf"an? (?:\w+ )?expert (?:in|on) (?P<one>{_FIELD})(?=$|[.,;!])", ("expert_in", "field")),
    _said(
        rf"(?:comes from|from|born in|originally from|grew up in) {_THE}(?P<one>{_NAMED}){_END}",
        ("comes_from", "place"),
    ),
    _said(
        r"speaks (?:fluent |native |some )?(?P<one>[A-Z][a-z]+)(?: and (?:fluent )"
        r"?(?P<two>[A-Z][a-z]+))?"
        rf"(?: fluently)?{_END}",
        ("speaks", "language"),
        ("speaks", "language"),
    ),
    _said(
        rf"(?:an? (?:\w+ )?(?:member|volunteer)|part) (?:of|with|at) {_THE}(?P<one>{_NAMED}){_END}",
        ("member_of", "organization"),
    ),
    _said(r"allergic to (?P<one>[a-z]+(?: [a-z]+)?)(?=$|[.,;!])", ("allergic_to", "thing")),
    _said(
        r"(?:has|owns|adopted|got) (?:an? |one )(?:\w+ )?(?:dog|cat|puppy|kitten|rabbit|parrot|"
        r"hamster|horse|"
        rf"turtle|pet)(?: who is)?(?: named| called|,) (?P<one>{_WORD}){_END}",
        ("owns", "pet"),
    ),
    _said(
        r"(?:works?|working|worked) on (?:an? |the )?(?:\w+ )?(?:project|app|library|product|"
        r"startup)?"
        rf"(?: (?:called|named) )?(?!{_DAYS})(?P<one>{_NAMED})(?: project| app)?{_END}",
        ("works_on", "project"),
    ),
)

# "-" is from the other.
_PEOPLE: Final[Mapping[str, str]] = {
    "advisor": "advised_by", "adviser": "advised_by", "supervisor": "advised_by",
    "mentor": "advised_by", "boss": "reports_to", "manager": "reports_to",
    "teacher": "taught_by", "coach": "coached_by", "doctor": "treated_by",
    "therapist": "treated_by", "dentist": "treated_by",
    "best friend": "friend_of", "friend": "friend_of", "colleague": "colleague_of",
    "coworker": "colleague_of", "co-worker": "colleague_of", "roommate": "roommate_of",
    "flatmate": "roommate_of", "classmate": "classmate_of", "neighbour": "neighbour_of",
    "neighbor": "neighbour_of",
    "wife": "married_to", "husband": "married_to", "spouse": "married_to",
    "partner": "in_relationship_with", "girlfriend": "in_relationship_with",
    "boyfriend": "in_relationship_with", "fiancé": "engaged_to", "fiancée": "engaged_to",
    "fiance": "engaged_to", "fiancee": "engaged_to",
    "daughter": "-child_of", "son": "-child_of", "child": "-child_of", "baby": "-child_of",
    "mother": "child_of", "father": "child_of", "mom": "child_of", "mum": "child_of",
    "dad": "child_of", "brother": "sibling_of", "sister": "sibling_of", "cousin": "cousin_of",
    "uncle": "nephew_or_niece_of", "aunt": "nephew_or_niece_of",
    "grandmother": "grandchild_of", "grandfather": "grandchild_of", "grandma": "grandchild_of",
    "grandpa": "grandchild_of", "grandson": "-grandchild_of", "granddaughter": "-grandchild_of",
}  # fmt: skip
_PETS: Final = "dog|cat|puppy|kitten|rabbit|parrot|hamster|horse|turtle"
_KIN: Final = "|".join(sorted(_PEOPLE, key=len, reverse=True))
_AGES: Final = r"(?:(?:older|younger|elder|little|big|eldest|youngest|twin|only|new|old) )?"
_CALLED: Final = r"(?:'s name)?(?: is(?: called| named)?| is|,)"

_OWN: Final = exact(
    rf"(?:{_AGES}(?P<who>{_KIN})(?:{_CALLED} (?P<name>{_PERSON})(?=$|[.,;!])|"
    rf",? (?P<bare>{_PERSON}))|"
    rf"(?P<pet>{_PETS})(?:{_CALLED}|) (?P<pet_name>{_WORD})\b)(?P<rest>.*)$"
)
_USER: Final = lazy_pattern(r"^The user(?P<own>'s)? ")
_WHO: Final = lazy_pattern(r"^[ ,]*(?:(?:who|which) )?")
_JOINT: Final = lazy_pattern(
    r",? and (?:their |the user's )?(?=(?:works|lives|studies|speaks|has|owns|is)\b)|,? (?:who|"
    r"which) |, "
)


def english_relations(text: str, *, retracts: bool = False) -> Iterator[ProposedRelation]:
    """The triples of a sentence about the user, somebody of theirs or somebody who is named."""
    text = _RETRACTED.sub("", text) if retracts else text
    if _VOID.search(_MONTH_MAY.sub("", text)):
        return
    user = _USER.match(text)
    if user is None:
        yield from named_relations(text)
        return
    rest = text[user.end() :]
    if user["own"]:
        yield from _of_theirs(rest)
    else:
        yield from _of(SPEAKER, rest)


def _of_theirs(rest: str) -> Iterator[ProposedRelation]:
    match = _OWN.match(rest)
    if match is None:
        return
    if match["pet"]:
        yield ProposedRelation(SPEAKER, "owns", match["pet_name"], "person", "pet")
        return
    name = match["name"] or match["bare"]
    relation = _PEOPLE[match["who"]]
    if relation.startswith("-"):
        yield ProposedRelation(name, relation[1:], SPEAKER, "person", "person")
    else:
        yield ProposedRelation(SPEAKER, relation, name, "person", "person")
    yield from _of(name, _WHO.sub("", match["rest"]))


def _of(subject: str, rest: str) -> Iterator[ProposedRelation]:
    """What each predicate says of the subject."""
    for part in _JOINT.split(rest):
        for predicate in _PREDICATES:
            match = predicate.pattern.match(part)
            if match is None:
                continue
            yield _joined(subject, predicate.one, match["one"])
            if predicate.two is not None and match["two"]:
                yield _joined(subject, predicate.two, match["two"])
            break


def _joined(subject: str, how: tuple[str, str], value: str) -> ProposedRelation:
    relation, kind = how
    return ProposedRelation(subject, relation, value.rstrip(" ."), "person", kind)
