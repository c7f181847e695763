"""What a statement says has come to an end: a job, a home, a marriage; in English and Chinese."""

import re
from typing import Final, NamedTuple

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import simplify


class Ending(NamedTuple):
    """What holds no longer.

    Args:
        attributes: any of these.
        value: which; None where nothing but the kind is said ("I quit my job").

    """

    attributes: frozenset[str]
    value: str | None


_WORK: Final = frozenset({"user.employer", "user.workplace", "user.occupation"})
_HOME: Final = frozenset({"user.residence"})
_COUPLE: Final = frozenset({"user.partner", "user.marital_status"})
_SCHOOL: Final = frozenset({"user.school"})

_PARTS: Final = {
    "i": r"(?:.*, )?(?:i|the user|user)(?:'ve|'m| have| has| am| is)?(?: just| recently| finally)*",
    "name": r"(?P<v>(?-i:[A-ZÀ-Þ0-9])[^,;.]*?)",
    "no": r"(?: no longer| do not| does not| don't| doesn't| stopped)",
    "tail": r"(?: (?:in|last|this|on|after|because|to|yesterday|today|recently|for|any ?more|and|"
    r"any longer|as|when|two|three|[0-9]+)\b.*)?[.!]*",
    "we": r"(?: and [\w' ]+?)?(?: got| are| were| have)*",
    "me": r"(?:.{0,12}，)?(?:我们?|用户|本人)?(?:现在|已经|最近|刚刚?|正式|终于|[今昨]天"
    r"|上个?[周月])*",
    "v": r"(?P<v>[^，。,]{1,16}?)",
    "spouse": "(?:老[公婆]|妻子|丈夫|[男女]朋?友|对象)",
    "end": r"[了。！]*",
}
_ENDINGS: Final = tuple(
    (attributes, lazy_pattern(said.format_map(_PARTS), re.IGNORECASE))
    for attributes, said in (
        (_WORK, "{i} (?:quit|left|lost|resigned from) (?:my|the|their|a) job"
                "(?: (?:at|with) {name})?{tail}"),
        (_WORK, "{i}(?: was| got| been)* (?:laid off|fired|let go|made redundant)"
                "(?: (?:from|by) {name})?{tail}"),
        (_WORK, "{i} (?:resigned|retired)(?: from {name})?{tail}"),
        (_WORK | _SCHOOL, "{i} (?:quit|left) {name}{tail}"),
        (_WORK, "{i}{no} (?:work|works|working) (?:at|for) {name}{tail}"),
        (_WORK, "{i} no longer (?:at|with|working (?:at|for)) {name}{tail}"),
        (_HOME, "{i} moved (?:out of|away from) {name}{tail}"),
        (_HOME, "{i}{no} (?:live|lives|living) in {name}{tail}"),
        (_COUPLE, "{i}{we} (?:divorced|separated)(?: from (?:{name}|(?:my|their) \\w+))?{tail}"),
        (_COUPLE, "{name} and i{we} (?:divorced|separated){tail}"),
        (_COUPLE, "{i}{we} (?:broke|broken|split) up(?: with (?:{name}|(?:my|their) \\w+))?{tail}"),
        (_WORK, "{me}从{v}(?:离职|辞职|离开|退休|走人){end}"),
        (_WORK, "{me}(?:离职|辞职|退休|失业|辞[了掉]工作|把工作辞|被(?:裁员?|辞退|开除)){end}"),
        (_WORK, "{me}被{v}(?:裁员?|辞退|开除|解雇){end}"),
        (_WORK, "{me}离开了?{v}{end}"),
        (_WORK, "{me}不再?在{v}(?:工作|上班|干|任职){end}"),
        (_HOME, "{me}从{v}(?:搬走|搬出来?|搬离){end}"),
        (_HOME, "{me}(?:搬离了?|不再?住在?){v}{end}"),
        (_COUPLE, "{me}(?:[和跟与](?:我?{spouse}|{v}))?(?:离婚|分手){end}"),
        (_SCHOOL, "{me}从{v}(?:毕业|退学|辍学){end}"),
    )
)  # fmt: skip
# An end without a name that lies years back is none of what holds now.
_LONG_AGO: Final = lazy_pattern(r"\b(?:19|20)[0-9]{2}\b|\bago\b|[0-9]{4}年|年前|以前")


def endings_in(content: str) -> tuple[Ending, ...]:
    """What a statement says has ended, as it names it."""
    text = simplify(" ".join(content.replace("’", "'").split()))
    found = []
    for attributes, pattern in _ENDINGS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        value = match.groupdict().get("v")
        if value is not None or not _LONG_AGO.search(text):
            found.append(Ending(attributes, value))
    return tuple(found)
