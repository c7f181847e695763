"""Triples of English sentences about somebody who is named: "Tom works at Siemens."

Closed: the whole sentence is one of these, or there are none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from re import Match, Pattern
from typing import Final

from app.language.keyless.patterns import exact
from app.language.keyless.relations_names import ENGLISH_NAME, is_name
from app.language.llm.extractor import ProposedRelation

_WORD: Final = r"[A-ZÀ-Þ0-9][\w'’&+#.-]*[\w+#]|[A-ZÀ-Þ]"
# Capitals that name no place and no house.
_COMMON: Final = (
    r"(?!(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June|July|"
    r"August|September|October|November|December|HR|IT|PR|QA|R&D|Sales|Marketing|Finance|Legal|"
    r"Accounting|Support|Engineering|Operations|Procurement|Logistics|Home|Work|Night|Noon|"
    r"Midnight|Christmas|Easter|Heaven|Hell|Earth|Mars|Paradise|Fear|Denial|Sin|Exile|Hope|I|He|She|"
    r"It|We|They|You|The|A|An|My|Our|Your|His|Her|Their|This|That)\b)"
)
_HOUSE: Final = (
    rf"(?:the )?(?P<one>{_COMMON}(?:{_WORD})"
    rf"(?: (?:(?:of|de|la|van|von|der|for) )?(?:{_WORD})){{0,4}})"
)
_FIELD: Final = (
    r"(?P<two>(?:computer|political|social|data|material|environmental|life|earth|sport|"
    r"food|cognitive|brain) sciences?|(?:[a-z]+ )?(?:engineering|law|literature|history|"
    r"linguistics|economics|administration|design|psychology|management|studies|biology|physics|"
    r"chemistry|mathematics|philosophy)|maths?|medicine|architecture|nursing|pharmacy|music|arts?|"
    r"theology|sociology|geography|geology|journalism|informatics|accounting|finance|statistics|"
    r"astronomy|anthropology|artificial intelligence|machine learning|robotics|business|education)"
)
_LANGUAGES: Final = (
    r"English|German|French|Spanish|Italian|Portuguese|Dutch|Swedish|Danish|Norwegian|Finnish|"
    r"Polish|Czech|Russian|Ukrainian|Greek|Turkish|Arabic|Hebrew|Persian|Farsi|Hindi|Urdu|Bengali|"
    r"Tamil|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Indonesian|Malay|Swahili|"
    r"Romanian|Hungarian|Bulgarian|Serbian|Croatian|Catalan|Latin|Esperanto"
)
_PET: Final = "dog|cat|puppy|kitten|rabbit|parrot|hamster|horse|turtle"
_SOON: Final = r"(?:(?:currently|now|also|still) )?"
_BE: Final = rf"is {_SOON}"
_SINCE: Final = r"(?: since (?:19|20)[0-9]{2}| now| these days| at the moment)?"
_IN: Final = r"(?: in (?:19|20)[0-9]{2})?"
_AS: Final = r"(?: as an? (?:[a-z]+ ){0,2}[a-z]+)?"
_PLACE: Final = rf"{_HOUSE}(?:, (?:{_WORD})(?: (?:{_WORD}))?)?"


@dataclass(frozen=True, slots=True)
class _Said:
    """A predicate as a whole; what `one` and `two` are joined by, and what they are."""

    pattern: Pattern[str]
    one: tuple[str, str]
    two: tuple[str, str] | None = None


def _said(pattern: str, one: tuple[str, str], two: tuple[str, str] | None = None) -> _Said:
    return _Said(exact(pattern), one, two)


_PREDICATES: Final = (
    _said(
        rf"(?:{_SOON}works|{_BE}working){_AS} (?:at|for) {_HOUSE}{_AS}{_SINCE}",
        ("works_at", "organization"),
    ),
    _said(rf"{_BE}employed (?:at|by) {_HOUSE}{_AS}{_SINCE}", ("works_at", "organization")),
    _said(
        rf"{_SOON}(?:lives|resides) in {_PLACE}{_SINCE}|"
        rf"{_BE}living in {_PLACE.replace('<one>', '<one2>')}{_SINCE}",
        ("lives_in", "place"),
    ),
    _said(
        rf"(?:{_SOON}studies|{_BE}studying) {_FIELD} at {_HOUSE}{_SINCE}",
        ("studies_at", "organization"),
        ("studies", "field"),
    ),
    _said(
        rf"(?:{_SOON}studies|{_BE}studying|{_BE}(?:an? (?:[a-z]+ )?)student) at {_HOUSE}{_SINCE}",
        ("studies_at", "organization"),
    ),
    _said(
        rf"(?:{_SOON}studies|{_BE}studying) {_FIELD.replace('<two>', '<one>')}{_SINCE}",
        ("studies", "field"),
    ),
    _said(rf"graduated from {_HOUSE}{_IN}", ("graduated_from", "organization")),
    _said(rf"{_BE}married to (?P<one>{ENGLISH_NAME}){_SINCE}", ("married_to", "person")),
    _said(rf"{_BE}engaged to (?P<one>{ENGLISH_NAME})", ("engaged_to", "person")),
    _said(rf"{_BE}dating (?P<one>{ENGLISH_NAME})", ("in_relationship_with", "person")),
    _said(
        rf"{_BE}an expert (?:in|on) {_FIELD.replace('<two>', '<one>')}",
        ("expert_in", "field"),
    ),
    _said(
        rf"(?:comes from|{_BE}(?:originally )?from|was born in|grew up in) {_PLACE}{_IN}",
        ("comes_from", "place"),
    ),
    _said(
        rf"speaks (?:fluent |native )?(?P<one>{_LANGUAGES})(?: and (?P<two>{_LANGUAGES}))?"
        r"(?: fluently)?",
        ("speaks", "language"),
        ("speaks", "language"),
    ),
    _said(
        r"is (?:severely )?allergic to (?P<one>(?:peanuts?|nuts?|tree nuts|shellfish|fish|milk|"
        r"dairy|lactose|eggs?|soy|wheat|gluten|pollen|cats?|dogs?|dust|penicillin|latex|"
        r"strawberries|bees|bee stings|sesame|shrimps?|seafood|aspirin|nickel))",
        ("allergic_to", "thing"),
    ),
    _said(
        rf"(?:has|owns) (?:a|one) (?:[a-z]+ )?(?:{_PET}) (?:named|called) (?P<one>{_WORD})",
        ("owns", "pet"),
    ),
)

# "-" is from the other.
_PEOPLE: Final[Mapping[str, str]] = {
    "advisor": "advised_by", "adviser": "advised_by", "supervisor": "advised_by",
    "mentor": "advised_by", "boss": "reports_to", "manager": "reports_to",
    "teacher": "taught_by", "coach": "coached_by", "doctor": "treated_by",
    "friend": "friend_of", "colleague": "colleague_of", "roommate": "roommate_of",
    "wife": "married_to", "husband": "married_to", "girlfriend": "in_relationship_with",
    "boyfriend": "in_relationship_with", "daughter": "-child_of", "son": "-child_of",
    "mother": "child_of", "father": "child_of", "mum": "child_of", "mom": "child_of",
    "dad": "child_of", "brother": "sibling_of", "sister": "sibling_of",
}  # fmt: skip

_SENTENCE: Final = exact(rf"(?P<subject>{ENGLISH_NAME}) (?P<rest>[^,].*)")
_OTHER: Final = exact(
    rf"(?P<subject>{ENGLISH_NAME})['’]s (?P<who>{'|'.join(_PEOPLE)}) is (?:called |named )?"
    rf"(?P<name>{ENGLISH_NAME})"
)
_AND: Final = exact(r",? and (?=(?:works|lives|resides|studies|speaks|has|owns|is|graduated)\b)")


def named_relations(text: str) -> Iterator[ProposedRelation]:
    """The triples of a sentence whose subject is named; none where a part of it is not read."""
    said = text.strip().removesuffix(".")
    other = _OTHER.fullmatch(said)
    if other is not None:
        yield _stands(other)
        return
    whole = _SENTENCE.fullmatch(said)
    if whole is None:
        return
    parts = [_read(part) for part in _AND.split(whole["rest"])]
    if all(parts):
        for part in parts:
            yield from (_joined(whole["subject"], how, value) for how, value in part)


def _stands(match: Match[str]) -> ProposedRelation:
    relation, subject, name = _PEOPLE[match["who"]], match["subject"], match["name"]
    if relation.startswith("-"):
        return ProposedRelation(name, relation[1:], subject, "person", "person")
    return ProposedRelation(subject, relation, name, "person", "person")


def _read(part: str) -> list[tuple[tuple[str, str], str]]:
    for each in _PREDICATES:
        match = each.pattern.fullmatch(part)
        if match is None:
            continue
        values = match.groupdict()
        one = values.get("one") or values.get("one2") or ""
        if each.one[1] == "organization" and is_name(one):
            # Who works for Anna works for whatever is hers.
            return []
        found = [(each.one, one)]
        if each.two is not None and values.get("two"):
            found.append((each.two, values["two"]))
        return found
    return []


def _joined(subject: str, how: tuple[str, str], value: str) -> ProposedRelation:
    relation, kind = how
    return ProposedRelation(subject, relation, value, "person", kind)
