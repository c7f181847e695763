"""What is said without being meant of the speaker: questions, fictions, texts to work on."""

import re
from typing import Final

from app.language.keyless.patterns import compiled, exact, joined

_QUESTION: Final = compiled(
    r"""
    (?:(?:and|but|so|ok|then|or) )?(?:
        what|where|when (?:is|are|do|does|did|will|should|can|was|were)|why|whats|wheres|hows|
        whos|who|whom|whose|which|how|is (?:it|there|this|that|he|she|my|the)|
        are (?:there|these|you|they|my|the|we)|am i|do (?:you|i|we|they|people|my)|does|did|
        have (?:you|we|i)|has (?:anyone|my|the|he|she|it)|can (?:i|you|we|someone|my|the|it)|
        could (?:i|you|we|it|this)|would (?:you|it|i|that|this|my)|should (?:i|we|my)|
        will (?:it|i|you|this|my|the)|shall|may i|might i|
        any (?:idea|tips|thoughts|chance|advice|suggestions|recommendations)|anyone|wdyt|
        isn't|aren't|is not|was (?:it|that|this)
    )\b
    """
)
_FICTION: Final = compiled(
    r"""
    (?:.{0,40}\b)?(?:
        pretend|role[- ]?play|let us role|imagine|suppose|supposing|
        assume (?:that )?(?:i|you|we|my)|hypothetical|hypothetically|what if|let us say|
        let's say|say i (?:am|were|have)|act (?:as|like)|
        you are (?:a|an|the|now) (?!bit|little|great|genius|lifesaver|star|best)|
        you're (?:a|an|now) (?!bit|little|great|genius|lifesaver|star|best)|from now on you are|
        in this (?:scenario|story|game|role)|in character|stay in character|my character|
        the character|our heroine|the protagonist|the hero of|
        in my (?:novel|story|book|screenplay|campaign|fanfic|dream)|once upon a time|dialogue|
        lyrics|(?:as|like) if (?:i|you)
    )\b
    """
)
_POLITE: Final = joined(r"""
    (?:
        (?:
            please|can you|could you|would you|help me(?: to)?|now|ok|hey|i need you to|
            i want you to|i would like you to|just|kindly|then|and|let us
        ) )*
    """)
_TEXT_WORK: Final = compiled(
    _POLITE
    + r"""
        (?:
            translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|
            correct (?:this|the|my|any)|fix (?:this|the|my|any)|polish|edit (?:this|the|my)|
            improve (?:this|the|my)|reword|classify|parse|extract|shorten|spell-?check|
            make this|turn this|transcribe|repeat after|complete (?:this|the)|
            continue (?:this|the|my)|answer as|label|
            analy[sz]e (?:this|the) (?:
                text|sentence|sentiment|review|paragraph|poem|lyrics|quote|passage|message|
                email|dialogue|tweet
            )
        )\b
        """
)
_TASK: Final = compiled(
    _POLITE
    + r"""
        (?:
            write|draft|compose|generate|create|make (?:me|a|an|it|up)|
            give (?:me|us|her|him|it)|show|tell|find|list|explain|describe|review|check|debug|
            convert|format|send|post|say|type|print|read|copy|reply|respond|read|invent|finish|
            build|implement|calculate|compute|suggest|recommend|help|search|look up|compare|
            outline|brainstorm|analy[sz]e|sort|add|set|change|update|delete|remove|open|run|
            let me (?:know|see|check|think|try)|do (?:it|this|that|not worry)|go ahead|continue|
            try
        )\b
        """
)
_STANDING: Final = compiled(
    r"""
    \b(?:
        always|never|from now on|in (?:the )?future|going forward|by default|every time|
        whenever|each time
    )\b
    """
)
_SARCASM: Final = compiled(
    r"""
    (?:
        oh,? (?:great|sure|wow|wonderful|fantastic|lovely|perfect|joy|yeah|nice|how nice)|
        (?:yeah|sure|right|ok),? and i am|yeah,? (?:right|sure)|sure,? because|as if (?!you)|
        wow,? (?:thanks|great)|great,? (?:another|now)|just what i needed|because i totally|
        gee,? )
    """
)
_CONDITION: Final = compiled(
    r"""
    \b(?:
        if (?!possible|you (?:do not mind|must|can)|that (?:helps|matters))|unless|suppose|wish|
        might|maybe|perhaps|probably|possibly|would have|could have|
        should (?!be (?:short|brief))|as if|whether|i doubt|not sure|what if|or not|
        i (?:could|may)\b|in case|supposedly|apparently|rumou?r|i (?:dreamed|dreamt)|had i|
        were i|
        would (?:
            be|move|live|buy|eat|go|quit|die|kill|never|marry|do|take|need|have|work|
            choose to be|say|think|guess
        )\b|
        imagine|pretend|seems?|hypothetically|
        i (?:heard|read|saw) (?:that|about|somewhere|in|on|an?|the)|they say|people say|he said|
        she said|told me|article|according to|thinking (?:of|about)|considering|tempted|no idea|
        i thought|i used to|we used to|i was going to|i wanted to|i almost|i nearly|
        i was about to|supposed to|wonder|i feel like|joking|kidding|i could
    )\b|
    \blol jk\b|\bjk\b|/s$
    """
)
_WELCOME_CONDITION: Final = compiled(
    r"""
    (?:i|we) (?:really |always |usually |also |much |generally |would )*
    (?:
        prefer|like it|love it|hate it|appreciate it|hate|dislike|would rather|
        would take \S.* over
    )\b|
    when|i (?:am allergic|get)|(?:please )?(?:always|never)\b
    """
)


def is_english_question(said: str) -> bool:
    """Tell a question by how it begins, whether or not it ends in its mark."""
    return _QUESTION.match(said) is not None


def is_sarcasm(said: str) -> bool:
    """Tell what is meant the other way round by how it begins."""
    return _SARCASM.match(said) is not None


# "MARCO: I am a baker", "from the script: …": lines that somebody else speaks.
_SPEAKER: Final = exact(
    r"""
    (?:.{0,40}: )?[A-ZÀ-Þ][A-ZÀ-Þ]+(?: [A-ZÀ-Þ]+)?: |
    (?i:
        (?:this is |here is )?(?:from|in) (?:the|my|a|this) (?:\w+ )?
        (?:
            script|play|novel|book|transcript|dialogue|letter|movie|film|review|article|text|
            story|lyrics|song|poem|screenplay|email
        )\b[^.]{0,40}:
    )
    """
)


def english_opens_text(said: str) -> bool:
    """Tell whether a play, a supposition, or a text to work on begins here.

    What follows in the message is then nobody's own statement.
    """
    if _STANDING.search(said):
        return False
    if _FICTION.match(said) or _TEXT_WORK.match(said) or _SPEAKER.match(said):
        return True
    return ":" in said and _TASK.match(said) is not None


def is_english_task(said: str) -> bool:
    """Tell an order for this time from a wish for every time."""
    return _TASK.match(said) is not None


def english_clause_excluded(clause: str) -> bool:
    """Tell a clause that is a condition, a guess, hearsay, or meant the other way round."""
    if _SARCASM.match(clause) or (
        re.search(r"\b(?:LOVE|ADORE|ENJOY)\b", clause) and "just" in clause.casefold()
    ):
        return True
    found = _CONDITION.search(clause)
    return found is not None and not _WELCOME_CONDITION.match(clause)
