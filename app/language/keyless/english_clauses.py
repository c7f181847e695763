"""Where an English message tells something: its sentences with the questions and requests cut out.

A sentence is split at commas, dashes and conjunctions. A part that opens as a question, a
request, a doubt or a hypothesis is dropped, with what follows it until the speaker tells again.
What remains is one clause for each "I …", "my …" and what hangs on it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from app.language.keyless.clauses import ASKED, LONGEST, LONGEST_LEAD, Clause, without_pasted
from app.language.keyless.english_cues import english_cues
from app.language.text.lazy_pattern import lazy_pattern

LONGEST_CLAUSE: Final = 500
"""Of characters; a longer run of parts is two clauses."""

LONGEST_INTRODUCTION: Final = 60
"""Of characters, as in "While volunteering on Monday, I met …"."""

LONGEST_JOINT: Final = 24
"""Of characters that join two clauses: ", and since"."""

_SENTENCE: Final = lazy_pattern(
    r"(?:[^.!?\n]|\.(?=[\w,;)])|(?<=\b[A-Z])\.|(?<=\b(?:Dr|Mr|Ms|St|vs|Jr|Sr))\."
    r"|(?<=\b(?:Mrs|Rev))\.|(?<=& Co)\.|(?<=\bProf)\."
    r"|(?<=\b(?:e\.g|i\.e|a\.m|p\.m|etc))\.(?= ?[a-z,;])"
    r"|[!?](?=\w))+[.!?]*"
)
_FIRST: Final = r"(?:i|i'm|im|i've|ive|i'd|i'll|we|we're|we've|we'd|we'll|my|our|mine)\b"
_ASKS: Final = (
    r"(?:(?:can|could|would|will|should|shall|do|does|did|am|is|are|was|were|have|has|may|might"
    r"|isn't|aren't|don't|doesn't|didn't|won't|wouldn't|can't|couldn't|shouldn't|haven't|ain't)"
    r" (?:i|you|we|he|she|it|they|there|this|that|these|those|the|my|your|our|his|her|their|any"
    r"|anyone|someone|people)\b)"
)
_PURPOSE: Final = r"so (?:that )?(?:i|we) (?:can|could|don't|won't)\b"
# Where a sentence is split, before the word that follows.
_SPLIT: Final = lazy_pattern(
    r"(?<=[,;])\s++(?!\d{4}\b|who(?:se|m|'s)?\b(?! (?:can|could|should|do)\b)"
    rf"|{_PURPOSE})|—|\.{(3,)}\s*+|…\s*+|(?<!\s)\s++(?:[-–—]++\s++"
    r"|(?=(?:(?:and|but|so|or|plus) )?(?:(?:can|could|would|will|do|did) you|should (?:i|we)"
    r"|(?:how|what|where|which \w+) (?:can|do|should|would|could) (?:i|we|you))\b"
    r"|(?:and|but|so) (?:what|how|which|where|when|why|who)\b(?! (?:i|we|my)\b)"
    r"|(?:so |and |but )?please\b"
    rf"|(?!{_PURPOSE})(?:because|since|considering|given that|especially since|although"
    rf"|though|but|so|and|while|whereas|now that|even though) {_FIRST}"
    r"|so here(?:'s| is| are)\b))",
    re.IGNORECASE,
)
_CONNECTIVE: Final = lazy_pattern(
    r"(?:(?:and|but|also|plus|then|well|anyways?|actually|basically|honestly|however"
    r"|so(?! (?:far|glad"
    r"|happy|proud|sorry|many|much|cute|excited|cool)\b)|by the way|btw|fyi|just so you know"
    r"|(?:in case|if) (?:(?:it|that) (?:helps|matters)|you (?:forgot|(?:didn|don)'t know)(?=[,:]))"
    r"|as (?:you know|i (?:said|mentioned))"
    r"|when(?= (?:i|we)'ve)|for the record|guess what|to be honest|in fact|first of all"
    r"|unfortunately|luckily"
    r"|(?:that|it)(?:'s| is) (?:wrong|not (?:right|true|correct)|incorrect)|wrong"
    r"|especially(?= since| because)|considering(?: that)?|given(?: that)?|(?:because|since"
    r"|although"
    r"|though|while|whereas|now that|even though)(?= (?:i|i'm|i've|we|we've|my|our|he|she|they)\b)"
    r"|(?:yeah|yep|yes|yup|nope|no|nah|ok|okay|sure|oh|ah|hmm+|um|wow|haha|lol|hey|hi|hello|right"
    r"|great|cool|nice|awesome|definitely|totally|absolutely|exactly|thanks|thank you|same here)"
    r"(?=[,!.:]| (?:i|i'm|my|we)\b))\b[,!.:]*\s*)+",
    re.IGNORECASE,
)
_TRAILING: Final = lazy_pattern(
    r"(?<![\s,;:–—-])[\s,;:–—-]++(?:(?:and|but|so|or|because|since|also|plus|then|like|especially"
    r"|including|such as|given|considering)(?=[\s,]*$))?[\s,;:–—-]*$",
    re.IGNORECASE,
)
_AUXILIARY: Final = lazy_pattern(
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|am)\b", re.IGNORECASE
)
_VOCATIVE: Final = lazy_pattern(
    r"(?:(?i:hey|hi|hello|thanks(?: (?:so much|a lot|a bunch))?|thank you|wow|yeah|yes|congrats"
    r"|sure(?: thing)?|agreed?|oh|nice|no problem)),? (?:there|girl|guys|man|[A-Z][a-z]+)\b"
    r"(?:[,!.]+\s*|$)"
)
_QUESTION: Final = lazy_pattern(
    rf"(?:{_ASKS}|what\b|what's\b|how\b|how's\b|why\b|whose\b|where(?:'s"
    r"| (?:can|do|should|is|are)) "
    r"|who(?:'s| (?:is|are|can|should|do)) |when (?:can|do|should|is|are|will|did|does|would) "
    r"|which (?!(?:i|we|he|she|they|my|is|was|are|were|has|have|had|will|would|can|means?|\w+ed)\b"
    r"|\w+s (?!is\b|are\b|should\b|do\b|would\b|can\b))"
    r"|(?:where|when|who|which)\s*$|here(?:'s| is| are) (?:what|my|an?|the|some|how|our)\b"
    r"|any (?:advice|tips|ideas?|thoughts|suggestions?|recommendations?|chance|plans|news)\b"
    r"|ever (?:been|tried|heard|wondered)\b|wanna\b|right$|sounds? (?:good|great|ok))",
    re.IGNORECASE,
)
_REQUEST: Final = lazy_pattern(
    r"(?:please\b|kindly\b|help\b|let me know|let'?s\b|let us\b"
    r"|(?:tell|show|give|send|teach|remind|guide|walk|ask|get|find|make|write|create|build|draft"
    r"|list"
    r"|plan|suggest|recommend|explain|describe|summari[sz]e|translate|rewrite|proofread|edit|fix"
    r"|review|check|compare|calculate|solve|convert|provide|generate|design|imagine|pretend|suppose"
    r"|assume|consider|think|say|look|see|add|change|update|include|maybe (?:provide|something)"
    r"|talk|have fun|have a|take care|keep (?:up|it|going|me|in|spreading|pushing)|go for|enjoy"
    r"|wish (?:me|us)|good luck|come|try|do (?:it|this|that))\b(?!['’-])"
    r"|i(?:'d| would)? (?:want|need|like|love) (?:you|your|to (?:know|ask|hear|see if|get your))\b"
    r"|i(?:'m| am|'ve been| was)? (?:hoping|looking|asking|trying)(?: if)? you\b"
    r"|i(?:'m| am| was)? (?:just |also |still |now |kinda |really |currently )*(?:wondering|curious"
    r"|unsure|hoping you|asking|looking for (?:some |any )?(?:advice|tips|help|suggestions|ideas"
    r"|feedback|guidance|recommendations)|not (?:really |quite |entirely |100% )?(?:sure|certain)"
    r"|interested in (?:knowing|hearing))\b"
    r"|i (?:just |really |also |still )*(?:wonder|don't (?:know|understand|get|see)|need"
    r" (?:some |your |a bit of )?(?:help|advice|guidance|tips)|have (?:a|one|another|some"
    r"|two) (?:\w+ )?questions?"
    r"|could use (?:some )?(?:help|advice|tips)|can't (?:figure|tell|decide)|can try)\b"
    r"|i(?:'d| would) (?:appreciate|be grateful|(?:also |really )*(?:like|love) (?:if|some|any|your"
    r"|an?|the(?! [\w ]{1,20} to\b)|it|to (?:know|hear|get|ask|see|use|understand|have a look)))\b"
    r"|thanks?\b|thank you\b|not sure\b|wondering\b|unsure\b|no idea\b)",
    re.IGNORECASE,
)
_HYPOTHESIS: Final = lazy_pattern(
    r"(?:(?:like|say|for example|e\.g\.?) )?(?:if|unless|suppose|supposing|imagine|assuming"
    r"|assume|let's say|say (?:i|my)|in case|whether|what if|pretend)\b",
    re.IGNORECASE,
)
# What follows it is no longer supposed.
_REALLY: Final = lazy_pattern(
    r"[\s,]*(?:but|since|because|considering|given|although|though|now)\b", re.IGNORECASE
)
# Told to the assistant once and for all.
_RULE: Final = lazy_pattern(
    r"(?:please |kindly |also |from now on,? |in (?:the )?future,? |going forward,? )*"
    r"(?:always|never|do not|don't|call me|from now on|in future|going forward|whenever i"
    r"|every time i"
    r"|when(?:ever)? i (?:ask|say|talk|mention)|(?:use|keep|make|write|answer|reply|respond|give"
    r"|add|include|show|format|address|avoid|stop|explain|describe|leave out)\b[^?]{0,60}"
    r"\b(?:always|never|from now on|whenever|in the future|every time|each time|unless i"
    r"|when(?:ever)? i (?:ask|say|talk|mention)|your (?:answers?|repl(?:y|ies)|responses?)"
    r"|all (?:recipes|answers|examples|your)))\b",
    re.IGNORECASE,
)
_ASKED_TO_REMEMBER: Final = lazy_pattern(
    r"(?:please |can you |could you |just |also )*(?:remember|note|keep in mind|bear in mind"
    r"|don't forget(?!,)|make a note|take note)(?: down)?(?:(?: that(?! (?:time|day|night|one|guy"
    r"|show|movie|trip|song)\b)|:|,(?= (?:i|my|we|our)\b))+\s*"
    r"|\s+(?=(?:i|my|we|our)\b))|for the record,?\s+"
    r"|just so you know,?\s+|for future reference,?\s+",
    re.IGNORECASE,
)
_FORGET: Final = lazy_pattern(r"(?:please )?forget (?:that|about) (?:i|my|we|our)\b", re.IGNORECASE)
_MODAL: Final = r"(?:can|could|should|would|might|may|must|will|do|want|need)\b"
# What a question or request takes for granted: "Do you remember that I moved in May?".
_GRANTED: Final = lazy_pattern(
    r"(?:(?:do|did|don't|didn't) you (?:still |also |already )?(?:remember|recall|know|forget)"
    r"|have you (?:already )?forgotten|you (?:still )?(?:remember|know)"
    r"|(?:i'm )?not sure (?:if|whether) i(?:'ve| have)? (?:already |ever )?(?:said|mentioned)"
    r"(?: it| this)?)(?: that|:|,)? "
    rf"(?=(?:i|we)(?:'\w+)? (?!{_MODAL})\w"
    r"|(?:my|our) (?:(?!(?:that|who|which|if) )[\w'-]+ ){1,4}(?:is|are|was|were|has|have|had|lives"
    r"|works|moved|died) \w)",
    re.IGNORECASE,
)
_GRANTED_LATER: Final = lazy_pattern(
    r"\b(?:(?:when|since|now that) (?P<then>(?:i|we)(?:'ve| have(?! to\b)| had(?! to\b)| was| were"
    r"| \w+ed) \w)"
    r"|(?P<who>(?:my|our) [\w'&. -]{1,40}, who(?:'s|se)? (?!(?:even|am|can|could|should|do)\b)\w)"
    rf"|(?P<which>the (?:[\w-]+ ){{1,4}}(?:i|we) (?!{_MODAL}|(?:i|we) )\w+ .{{0,60}}\d))",
    re.IGNORECASE,
)
# Behind it nothing is taken for granted, nor in quotes.
_OPEN: Final = lazy_pattern(
    r"\b(?:think|thinks|believe|say|says|said|saying|tell|tells|told|claim|pretend|suppose|supposing"
    r"|imagine|assum\w+|if|unless|whether|possible|true|means?|meant|would|should|translate|write"
    r"|draft|rewrite|proofread)\b|[\"“”«»]|(?<!\w)['‘]",
    re.IGNORECASE,
)
# What belongs to the clause before it, if that tells, or takes it back: "but I'm not really".
_SUBORDINATE: Final = lazy_pattern(
    r"[\s,]*(?:(?:since|while|when|even though|though|although|whereas)\b"
    r"|but (?:i|we|it|that)(?: (?:am|are|is|was|were|do|did|have|had) not|'m not|'s not|'re not"
    r"| \w+n't)(?: (?:really|actually|at all|true|so))*[\s.!]*$)",
    re.IGNORECASE,
)
_OWN: Final = lazy_pattern(rf"\b{_FIRST}", re.IGNORECASE)
_PRONOUN: Final = lazy_pattern(
    r"(?:it|it's|its|she|she's|he|he's|they|they're|they've|her|his|their|that|that's|this|these"
    r"|those|there)\b(?=[ '])(?! (?:time|year|month|week|weekend|morning|summer|fall|winter"
    r"|spring)\b)",
    re.IGNORECASE,
)
_JOINT_SUBJECT: Final = lazy_pattern(
    r"(?:(?:^|, |\b(?:where|when|that|which|after|before|because|since|until|while) )(?!i\b|we\b)"
    r"(?:(?:my|our|the|me and my) )?|(?:day|week|weekend|month|year|ago|back|night) (?:my|our) )"
    r"[\w'.-]+(?: [\w'.-]+){0,2}$",
    re.IGNORECASE,
)
_FRAGMENT: Final = lazy_pattern(
    r"(?:to|than|as|like|such as|when|while|where|which)\b[^,]*$|including\b", re.IGNORECASE
)
_MAY_OPEN: Final = tuple("\"'“‘(@#$€£")
Part = Literal["tells", "asks", "goes_on", "inside"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of text by its place, and what it does."""

    start: int
    end: int
    part: Part


@dataclass(frozen=True, slots=True)
class _Message:
    """A message without what was pasted, and the same with plain apostrophes, to match."""

    shown: str
    said: str

    def opening(self, start: int, end: int) -> int:
        """Where a part begins behind its greetings and connectives."""
        at = start
        while at < end and self.said[at] in " \t\n-*•·\"'()":
            at += 1
        for pattern in (_VOCATIVE, _CONNECTIVE, _VOCATIVE, _ASKED_TO_REMEMBER):
            found = pattern.match(self.said, at, end)
            at = found.end() if found else at
        return at

    def part(self, start: int, end: int) -> Part:
        at = self.opening(start, end)
        if _RULE.match(self.said, at, end):
            return "tells"
        if any(each.match(self.said, at, end) for each in (_QUESTION, _REQUEST)):
            return "asks"
        return "tells" if _OWN.search(self.said, at, end) else "goes_on"

    def inside(self, sentence: int, piece: _Piece) -> _Piece | None:
        """What a question or request takes for granted, from somewhere on."""
        granted = _GRANTED.match(self.said, self.opening(piece.start, piece.end), piece.end)
        if granted:
            return _Piece(granted.end(), piece.end, "inside")
        later = _GRANTED_LATER.search(self.said, piece.start, piece.end)
        at = later.start(later.lastgroup or 0) if later else sentence
        told = later is not None and not _OPEN.search(self.said, sentence, at)
        return _Piece(at, piece.end, "inside") if told else None

    def words(self, pieces: Iterable[_Piece]) -> str:
        """The words of pieces, as they stand in the text; "…" where something was cut out."""
        runs: list[tuple[int, int]] = []
        for piece in pieces:
            if runs and not self.said[runs[-1][1] : piece.start].strip(" \t-–—"):
                runs[-1] = (runs[-1][0], piece.end)
            else:
                runs.append((piece.start, piece.end))
        return " … ".join(filter(None, (self._trimmed(*each) for each in runs)))

    def aside(self, clause: Clause, end: int) -> str:
        """A clause and what stands between it and the next one, if nothing was cut out there."""
        said = self.shown[clause.start : end].rstrip()
        rest = said.removeprefix(clause.text)
        return said if rest != said and len(rest) <= LONGEST_JOINT else f"{clause.text} …"

    def _trimmed(self, start: int, end: int) -> str:
        words = " ".join(self.shown[self.opening(start, end) : end].split())
        return _TRAILING.sub("", words.rstrip("?")).lstrip(" ,;:-–—")


_ELABORATION: Final = lazy_pattern(
    r"(?:like|maybe|such as|for example|especially|or|even|are|is|was|were|will|would)\b",
    re.IGNORECASE,
)
"""How goes on what was asked: "should I tell them, like I did in April"."""

_POINTER: Final = lazy_pattern(
    r"\b(?:it|they|them|those|these|him|he|she)\b|\b(?:one|that|this|her)\b(?= with|[.,!;]|$)",
    re.IGNORECASE,
)
_ANTECEDENT: Final = lazy_pattern(
    r"\b(?:my|our|an?|the|some|his|their|two|three|[0-9]+) \w|(?<=[a-z,] )[A-Z][a-z]"
    r"|\b\w{3,}(?:ing|s|ed) "
)


def _dangles(words: str) -> bool:
    """Tell whether a clause points at something that it has not named: "I bring it with me"."""
    pointer = _POINTER.search(words)
    return pointer is not None and not _ANTECEDENT.search(words, 0, pointer.start())


def english_clauses(text: str, before: str | None) -> list[Clause]:
    """Clauses in the order of the text; none for a text without any.

    Args:
        text: one message of the speaker.
        before: the turn before, which may be a question that this one answers.

    """
    shown = without_pasted(text)
    message = _Message(shown, shown.replace("’", "'"))
    clauses: list[Clause] = []
    told = ""
    for start, end in _sentences(message.said):
        units = _units(message, start, end)
        last: Clause | None = None
        for number, unit in enumerate(units):
            clause = _clause(message, unit, "" if number else told, before or "")
            if clause:
                if not clauses and "answers" in clause.cues:
                    clause = replace(clause, cues={**clause.cues, "answers_first": 1.0})
                if last and unit[0].part != "inside":
                    clause = replace(clause, aside=message.aside(last, clause.start))
                clauses.append(clause)
            last = clause
        words = message.words(units[-1]) if units else ""
        told = told if _PRONOUN.match(words) else words
    return clauses


def _sentences(said: str) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(said):
        if match[0].strip(" \t.-*•!?,;:"):
            yield match.span()


def _units(message: _Message, start: int, end: int) -> list[list[_Piece]]:
    """The parts of a sentence that tell, grouped into what stands alone."""
    units: list[list[_Piece]] = []
    keeps = True
    for piece in _parted(message, start, end):
        opening = message.opening(piece.start, piece.end)
        if piece.part == "asks":
            keeps = False
            units += [[told] for told in (message.inside(start, piece),) if told]
        elif units and keeps and _joins(message, units[-1], piece):
            units[-1].append(piece)
        elif keeps or not (piece.part == "goes_on" or _ELABORATION.match(message.said, opening)):
            units.append([piece])
            keeps = True
    return units


def _joins(message: _Message, unit: Sequence[_Piece], piece: _Piece) -> bool:
    """Whether a part belongs to the clause before it."""
    begin = unit[0].start
    if piece.end - begin > LONGEST_CLAUSE:
        return False
    return (
        not _OWN.match(message.said, message.opening(piece.start, piece.end))
        or (piece.start - begin <= LONGEST_INTRODUCTION and all(x.part == "goes_on" for x in unit))
        or _SUBORDINATE.match(message.said, piece.start, piece.end) is not None
        or _dangles(message.words([piece]))
    )


def _parted(message: _Message, start: int, end: int) -> list[_Piece]:
    """A sentence in pieces. The last one of a question asks, if none before it does."""
    said = message.said
    places = _places(message, start, end)
    parts = [message.part(one, other) for one, other in pairwise(places)]
    supposed = False
    for number, at in enumerate(places[:-1]):
        found = _HYPOTHESIS.match(said, message.opening(at, places[number + 1]))
        supposed = found is not None or (supposed and not _REALLY.match(said, at))
        if supposed:
            parts[number] = "asks"
    if said[start:end].endswith("?"):
        for number, at in enumerate(places[:-1]):
            if _AUXILIARY.match(said, message.opening(at, places[number + 1])):
                parts[number] = "asks"
        parts[-1] = parts[-1] if "asks" in parts else "asks"
    return [_Piece(*each) for each in zip(places, places[1:], parts, strict=False)]


def _places(message: _Message, start: int, end: int) -> list[int]:
    """Where a sentence is cut, with its start and end."""
    places = [start]
    for match in _SPLIT.finditer(message.said, start, end):
        if message.said.startswith("and ", match.end()):
            head = message.said[message.opening(places[-1], match.start()) : match.start()]
            if _JOINT_SUBJECT.search(head):
                continue  # "Jonas and I"
        if match.end() > places[-1]:
            places.append(match.end())
    return [*places, end]


def _clause(message: _Message, unit: Sequence[_Piece], told: str, before: str) -> Clause | None:
    """The clause of a unit, with the sentence before it if it opens with a pronoun."""
    words = message.words(unit)
    if not (words[:1].isalnum() or words.startswith(_MAY_OPEN)) or words.isdigit():
        return None
    if len(words) > LONGEST:
        return None
    fragment = _FRAGMENT.match(words)
    if fragment and (len(_OWN.findall(words)) < 2 or fragment[0].lower() == "including"):
        return None
    start, end = message.opening(unit[0].start, unit[0].end), unit[-1].end
    cues = english_cues(words.replace("’", "'"), before)
    lead = ""
    if _PRONOUN.match(words) or _dangles(words):
        lead = told if len(told) <= LONGEST_LEAD else ""
        if lead:
            cues["led"] = 1.0
            for each in ("not_the_speaker", "somebody"):
                cues.pop(each, None)
        else:
            cues["dangling"] = 1.0
    if unit[0].part == "inside":
        cues["inside"] = 1.0
    if _ASKED_TO_REMEMBER.search(message.said, unit[0].start, start) or _FORGET.match(words):
        cues[ASKED] = 1.0
    return Clause(words, start, end, cues, lead)
