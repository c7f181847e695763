"""Named features of an English clause that speak for or against its being worth remembering."""

import re
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PERSON: Final = (
    r"(?:mother|father|mom|mum|dad|parents?|brothers?|sisters?|siblings?|sons?|daughters?|kids?"
    r"|child(?:ren)?|baby|wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|spouse|ex"
    r"|grand(?:mother|father|ma|pa|parents|son|daughter)|aunt|uncle|cousins?|niece|nephew|twins?"
    r"|family|friends?|roommates?|flatmates?|neighbou?rs?|colleagues?|co-?workers?|boss|manager"
    r"|mentor|coach|teacher|professor|advisor|supervisor|therapist|doctor|landlord|team|clients?"
    r"|dogs?|cats?|pets?|puppy|kittens?|in-laws?|(?:mother|father|sister|brother)-in-law)"
)
_PAST: Final = (
    r"(?:\w+ed|went|got|had|was|were|did|made|took|came|saw|met|bought|sold|found|lost|won|told"
    r"|said"
    r"|gave|left|began|became|broke|brought|built|chose|drew|drove|ate|fell|felt|flew|forgot|grew"
    r"|heard|held|kept|knew|led|learnt|lent|paid|put|quit|ran|read|rode|sang|sat|sent|set|slept"
    r"|spoke|spent|stood|swam|taught|thought|threw|wore|wrote|woke|ran|hurt|hit|cut|let)"
)
_I: Final = r"\b(?:i|we)(?: (?:just|also|already|recently|finally|really|actually|only|even|both))?"
_HAVE: Final = r"(?:(?:i|we) have|i'?ve|we've|(?:she|he|it|[A-Z]\w+) has|(?:they|who) have)"

_CUES: Final = {
    "date": lazy_pattern(
        rf"\b(?:{_MONTH} \d{{1,2}}|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|in {_MONTH}"
        rf"|{_MONTH} \d{{4}}"
        rf"|(?:in|since|until) (?:19|20)\d\d|{_DAY}s?|\d{{1,2}}/\d{{1,2}}|\d{{4}}-\d\d-\d\d)\b",
        re.IGNORECASE,
    ),
    "when": lazy_pattern(
        rf"\b(?:yesterday|tomorrow|tonight|ago|last (?:\w+ )?(?:week|month|year|night|summer|winter"
        rf"|spring|fall|fri|sat|sun|{_DAY}|weekend)|next (?:\w+ )?(?:week|month|year|summer|{_DAY})"
        rf"|this (?:month|week|weekend|summer|autumn|fall|year)|recently|just|since"
        rf"|for \w+ (?:years"
        rf"|months|weeks|days)|when i was|at age)\b",
        re.IGNORECASE,
    ),
    "time": lazy_pattern(r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?[ap]\.?m\b", re.IGNORECASE),
    "money": lazy_pattern(
        r"[$€£¥]\s?\d|\b\d[\d,.]*k?\s?(?:dollars|euros?|pounds|francs|usd|eur|chf|bucks|kroner)\b",
        re.IGNORECASE,
    ),
    "number": lazy_pattern(r"\d"),
    "version": lazy_pattern(r"\b[A-Za-z.+#]+ v?\d+(?:\.\d+)+\b|\b[A-Z][\w.]+ v?\d+\b"),
    "measure": lazy_pattern(r"\d\s?(?:%|ms\b|km\b|kg\b|hours?\b|minutes?\b|words\b|years?\b|px\b)"),
    "name": lazy_pattern(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]{2,}"),
    "title": lazy_pattern(r"[\"“'][A-Z][^\"”]{2,60}[\"”']"),
    "my_person": lazy_pattern(rf"\b(?:my|our) (?:[\w-]+ ){{0,2}}{_PERSON}\b", re.IGNORECASE),
    "person": lazy_pattern(rf"\b{_PERSON}\b", re.IGNORECASE),
    "my": lazy_pattern(r"\b(?:my|our|mine) \w", re.IGNORECASE),
    "i": lazy_pattern(r"\b(?:i|i'?m|i'?ve|we|we're|we've)\b", re.IGNORECASE),
    "opens_i": lazy_pattern(r"(?:i|i'?m|i'?ve|we|we're|we've)\b", re.IGNORECASE),
    "opens_my": lazy_pattern(r"(?:my|our)\b", re.IGNORECASE),
    "past": lazy_pattern(rf"{_I} {_PAST}\b", re.IGNORECASE),
    "past_other": lazy_pattern(rf"\b(?:she|he|they|it|who|[A-Z][a-z]+) {_PAST}\b"),
    "perfect": lazy_pattern(
        rf"\b{_HAVE} (?:\w+ )?(?:\w+ed|been|done|gone|seen|made|taken|written|bought|found|met"
        rf"|lost|won"
        r"|become|begun|chosen|built|had|spent|read|set|put|gotten|given|kept|known|run|sent)\b"
    ),
    "never": lazy_pattern(
        r"\b(?:never|not any ?more|no longer|any ?more|used to|gave up|stopped)\b"
    ),
    "state": lazy_pattern(
        r"\b(?:i'?m|i am|we're|we are) (?:an?|the|from|in|at|on|\d|not)\b", re.IGNORECASE
    ),
    "doing": lazy_pattern(
        r"\b(?:i'?m|i am|we're|we are|been)(?: (?:also|currently|now|always|still|just|actually))?"
        r" \w+ing\b",
        re.IGNORECASE,
    ),
    "trying": lazy_pattern(r"\b(?:trying|try) to\b"),
    "tried": lazy_pattern(r"\b(?:tried|been trying)\b"),
    "hearsay": lazy_pattern(
        r"\b(?:i|i've|we've) (?:heard|read|seen|saw|came across)\b|\bsays\b",
        re.IGNORECASE,
    ),
    "hoping": lazy_pattern(r"\b(?:hoping|hope|wish|keep (?:an eye|in mind)|definitely)\b"),
    "learning": lazy_pattern(
        r"\btrying to (?:understand|figure|calculate|solve|find out|debug|fix)\b"
    ),
    "have": lazy_pattern(
        r"\b(?:i|we) (?:have|own|got)\b|\bi'?ve got\b|\bthere(?:'s| is| are)\b", re.IGNORECASE
    ),
    "like": lazy_pattern(
        r"\b(?:love|like|likes|loves|loved|enjoy|enjoys|hate|hates|prefer|prefers|favou?rite|fan of"
        r"|can't stand|adore|dislike|rather|into|passionate|allergic|vegan|vegetarian|fond)\b",
        re.IGNORECASE,
    ),
    "habit": lazy_pattern(
        r"\b(?:every|usually|always|often|daily|weekly|each|most|regularly|sometimes|on (?:weekdays"
        rf"|weekends|{_DAY}s)|a (?:day|week|month|year)|twice|never)\b",
        re.IGNORECASE,
    ),
    "decision": lazy_pattern(
        r"\b(?:decided|decision|chose|chosen|picked|settled|going with|went with|opted|agreed"
        r"|switched"
        r"|leaning towards?)\b",
        re.IGNORECASE,
    ),
    "plan": lazy_pattern(
        r"\b(?:going to|gonna|plan(?:ning|ned|s)?|want to|hope to|aim|goal|need to|have to"
        r"|intend|would"
        r" like to|working on|looking to|preparing|scheduled|deadline|due|by (?:the end|next))\b",
        re.IGNORECASE,
    ),
    "will": lazy_pattern(r"\b(?:i'll|i will|we'll|we will)\b", re.IGNORECASE),
    "rule": lazy_pattern(
        r"(?:please )?(?:always|never|don't|do not|call me|from now on|whenever|when i ask|use"
        r"|keep)\b",
        re.IGNORECASE,
    ),
    "work": lazy_pattern(
        r"\b(?:works?|worked|job|project|company|team|startup|business|studying|study|degree|school"
        r"|university|college|thesis|essay|app|site|website|course|career|internship|interview"
        r"|freelance|budget|salary|rent|mortgage)\b",
        re.IGNORECASE,
    ),
    "live": lazy_pattern(
        r"\b(?:live[sd]?|living|moved|moving|born|grew up|originally|married|engaged|divorced"
        r"|retired"
        r"|pregnant|diagnosed|named|called|name is|years old|turned|birthday|passed away|died)\b",
        re.IGNORECASE,
    ),
    "third": lazy_pattern(r"(?:the )?user(?:'s)? (?:\w+s\b|\w+ (?:is|has)\b)", re.IGNORECASE),
    "someone": lazy_pattern(
        r"(?:[A-Z][a-z]+|he|she|they)(?: [A-Z][a-z]+)? (?:is|has|was|lives|works)\b"
    ),
    "hedge": lazy_pattern(
        r"\b(?:think|guess|maybe|perhaps|might|probably|suppose|seems?|sounds?|could|would|should"
        r"|hopefully|believe|feel like|some ?day|whatever)\b",
        re.IGNORECASE,
    ),
    "feeling": lazy_pattern(
        r"\b(?:excited|worried|nervous|overwhelmed|stressed|happy|glad|proud|grateful|sorry|scared"
        r"|frustrated|confused|anxious|relieved|struggling|stuck|having (?:some )?trouble"
        r"|having (?:some )?issues|can't wait|appreciate|feeling)\b",
        re.IGNORECASE,
    ),
    "make_sure": lazy_pattern(
        r"\b(?:make sure|ensure|best practices|properly|correctly)\b", re.IGNORECASE
    ),
    "you": lazy_pattern(r"\b(?:you|you're|your|you've|yours|u)\b", re.IGNORECASE),
    "opens_you": lazy_pattern(r"(?:you|you're|your|you've)\b", re.IGNORECASE),
    "thing": lazy_pattern(
        r"(?:(?:that|it|this|they|these|those|there|everything|nothing|the)\b(?:'s)?)",
        re.IGNORECASE,
    ),
    "praise": lazy_pattern(
        r"\b(?:awesome|amazing|great|cool|wonderful|beautiful|lovely|fantastic|incredible|congrats"
        r"|congratulations|perfect|helpful|makes sense|good (?:idea|point|luck)|inspiring)\b",
        re.IGNORECASE,
    ),
    "exercise": lazy_pattern(
        r"\b(?:probability|equation|formula|theorem|triangle|derivative|integral|fraction|dice|coin"
        r"|marbles|deck|homework|exercise|calculate|solve|problem like|example)\b|[=∩∪≈×√]|\bP\(",
        re.IGNORECASE,
    ),
    "bug": lazy_pattern(
        r"\b(?:error|exception|bug|doesn't work|not working|fails?|undefined|null|crash\w*"
        r"|throws?|stack ?trace|404|500)\b",
        re.IGNORECASE,
    ),
    "asks_inside": lazy_pattern(
        r"\b(?:how to|whether|what to|if i should|help me|can you|could you|which one|wondering)\b"
        r"|\?",
        re.IGNORECASE,
    ),
    "exclaims": lazy_pattern(r"!$"),
    "cut": lazy_pattern(" … "),
}
_FOR: Final = ("date", "when", "time", "money", "measure", "version", "name", "title", "my_person")
_VERB: Final = lazy_pattern(
    r"\b(?:is|are|was|were|am|has|have|had|do|does|did|can|will|'s|'m|'re|'ve|\w+ed|\w+s|\w+ing"
    r"|went|got|made|took|live|work|love|like|want|need|prefer|use|hate|own|speak|drive|go)\b"
    r"|'(?:s|m|re|ve)\b"
)


def english_cues(words: str, before: str) -> dict[str, float]:
    """The cues of a clause that are there, each 1, and some that grow with it.

    Args:
        words: of the clause, with plain apostrophes.
        before: the turn before, or nothing.

    """
    cues = {name: 1.0 for name, pattern in _CUES.items() if _found(name, pattern, words)}
    concrete = sum(each in cues for each in _FOR)
    count = len(words.split())
    cues["concrete"] = min(concrete, 4) / 2
    cues["length"] = min(count, 40) / 10
    if count <= 3:
        cues["short"] = 1.0
    if count > 40:
        cues["long"] = 1.0
    if not _VERB.search(words):
        cues["verbless"] = 1.0
    for one, other in (
        ("plan", "concrete"), ("will", "concrete"), ("trying", "concrete"), ("hedge", "concrete"),
        ("feeling", "concrete"), ("opens_i", "concrete"),
    ):  # fmt: skip
        if one in cues and concrete:
            cues[f"{one}_{other}"] = min(concrete, 3) / 2
    if before.rstrip().endswith("?"):
        cues["answers"] = 1.0
        if count <= 8:
            cues["answers_shortly"] = 1.0
    return cues


def _found(name: str, pattern: re.Pattern[str], words: str) -> bool:
    """Cues that are named after an opening look there alone."""
    opening = name.startswith("opens_") or name in {"rule", "third", "someone", "thing"}
    return bool(pattern.match(words) if opening else pattern.search(words))
