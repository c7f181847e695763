"""What somebody asks in English to be remembered."""

from typing import Final

from app.language.keyless.patterns import compiled

_REMEMBER: Final = compiled(
    r"""
    (?:
        (?:can|could|would|will) you |please |also |and |so |just |but |ok |okay |hey |btw |
        by the way |i (?:want|need|would like) you to |make sure (?:to |you )?|
        you (?:should|must|have to|need to) |let the record show |you )*(?:please )?(?:
        (?:
            remember|note|do not forget|never forget|keep in mind|bear in mind|make a note|
            make note|take note|memori[sz]e|save|store|write down|jot down|note down|put down|
            add to your memory|commit to memory|note for later|note to self|
            for future reference|for the future|for later|for next time|record|take a note|
            reminder|nb|mental note|log|jot (?:this|that|it) down|
            add (?:this |it |that )?to (?:your )?(?:memory|notes)|
            just so you know for (?:later|the future|next time)
        )(?: (?:
                that|this|the following|it|for me|for later|for next time|in mind|
                for the future|down|of this|of the fact|please|fact|as a note|somewhere
            )
        ){0,4}
    )[:,]?(?: -| –)?(?: that)? (?!to \b|when |how |what |where |who |why |if |me\b|your |you )
    """
)
# "Could you store this somewhere?": what is to be kept comes in the next sentence.
_BARE_WISH: Final = compiled(
    r"""
    (?:(?:can|could|would|will) you |please |also )*
    (?:remember|note|store|save|keep|record|log|write down|jot down)
    (?: (?:this|that|it|something|the following|one thing))?
    (?: somewhere| down| for me|for later| please| in mind)*
    """
)
_REMEMBER_AFTER: Final = compiled(
    r"""
    [,.]? (?:please )?(?:so )?
    (?:remember|note|keep|save|do not forget|make a note of|store|write down) (?:that|this|it)
    (?: down)?(?: in mind)?(?: for (?:me|later|next time|the future|future reference))?
    (?: please)?$|
    ^(?:please )?(?:remember|note|keep|save|do not forget|store) (?:that|this|it)(?: in mind)?
    (?: for (?:me|later|next time|future reference))?(?: please)?$
    """
)
# "Remember that …", "make a note: …": signs that something follows which is to be kept.
_TELLS: Final = compiled(
    r"""
    \b(?:that|this|it|following|fact|memory|self|later|future|next time|make a note|take a note|
    reminder|down)\b|[:,-]
    """
)
# "Note that the function returns None" is said of the function.
_NOTE_THAT: Final = compiled(r"(?:please |also |and |but )*note that")
# "One thing to know about me: …", "something to keep in mind about us is that …".
_ABOUT_ME: Final = compiled(
    r"""
    (?:
        (?:one|another|an important|a quick|some)(?: more| important| quick| last)?[ ]
        (?:thing|fact|note)|
        something|what you should know
    )(?:
        [ ]worth (?:knowing|remembering|noting)|
        (?: for you)? to (?:remember|know|keep in mind|note|bear in mind)
    )?(?: about (?:me|us|my \w+|our \w+))?(?: is(?: that)?|:| -|,) (?=(?:i|we|my|our)\b)
    """
)
_FORGET: Final = compiled(
    r"""
    (?:(?:can|could|would|will) you |please |ok |okay |and |now |also |just |actually,? )*
    (?:forget|stop remembering|delete|erase|unremember|remove)
    (?: (?:the memory|the fact|from (?:your )?memory|it))?,? that (?=(?:i|we|my|our)\b)
    """
)
_MEMORABLE: Final = compiled(r"\b(?:i|my|we|our|me)\b")


def unwished_in(said: str) -> str | None:
    """What somebody asks to be forgotten, or None."""
    asked = _FORGET.match(said)
    return said[asked.end() :] if asked else None


def wish_in(said: str) -> str | None:
    """What somebody asks to be remembered, or None when they ask for nothing of the kind."""
    about = _ABOUT_ME.match(said)
    if about:
        return said[about.end() :]
    asked = _REMEMBER.match(said)
    if asked:
        told = said[asked.end() :]
        # "Save the file" wants something done; "save that …" and "my …" want something kept.
        telling = _TELLS.search(asked[0]) and not _NOTE_THAT.match(asked[0])
        meant = telling or _MEMORABLE.search(said[asked.end() - 1 :])
        if meant and len(told.split()) > 1:
            return told
    tail = _REMEMBER_AFTER.search(said)
    return said[: tail.start()] if tail and tail.start() else None


def is_bare_wish(said: str) -> bool:
    """Tell a wish to remember what comes before or after it: "remember that, please"."""
    return bool(_REMEMBER_AFTER.match(said) or _BARE_WISH.fullmatch(said))


def is_own(said: str) -> bool:
    """Tell whether a sentence begins with the speaker or something of theirs."""
    return _MEMORABLE.match(said) is not None
