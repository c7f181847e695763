"""What English clauses say that begin with "my" or "our": what somebody has, what a team makes."""

from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_frames import Frame
from app.language.keyless.patterns import compiled, joined

_IS: Final = joined(r"""
    (?:
        is|are|was|were|has (?:always )?been|have (?:always )?been|will (?:always )?be|
        would (?:have to )?be|=|:
    )
    """)


_BROKEN: Final = joined(r"""
    (?!
        not (?:working|sure|the|responding|loading)|broken|dead|at [0-9]+ ?%|slow|acting|dying|
        crash|down|fail|frozen|full|gone|missing|stuck|too|so |really (?:slow|bad|bugging)|
        giving|making|the (?:problem|same|issue|worst)|weird|being|lost|almost|about to|not |
        to (?:find|fix|get this|make this|use|write)|that (?:it|this|you)|killing me|driving me|
        wrong|correct|right|good|great|fine|ready|done|below|above|attached|here
    )
    """)


MY_FRAMES: Final = (
    # What the talk is about: "my question is …", "my code is …".
    Frame(
        compiled(
            r"""
            (?:my|our) (?:
                biggest |main |only |first |next |last |other |second |third |original |real |
                actual )?(?:
                question|problem|issue|point|understanding|guess|code|script|query|bad|mistake|
                apologies|
                favou?rite (?:part|thing|bit|one|line|of (?:these|those|them|the)|answer|option)|
                thoughts?|concern|worry|friend|friends|colleagues?|bot|character|assignment|
                homework|essay|professor said
            )\b(?! (?:is allergic))
            """
        ),
        None,
    ),
    # A skill that somebody has: "my Spanish is rusty".
    Frame(
        compiled(
            rf"""
            my (?:spoken |written )?(?:
                {words.LANGUAGES}|cooking|handwriting|math|maths|singing|typing|drawing|driving|
                coding|spelling|pronunciation|accent|sense of direction
            )(?: skills?| level)? (?:is|are) (?:
                (?:pretty|very|really|quite|rather|still|only|at|not|so|just|almost) )*(?:
                good|bad|terrible|rusty|basic|decent|fluent|excellent|poor|great|awful|weak|
                strong|native|intermediate|beginner|conversational|ok|okay|better|broken|
                limited|perfect|[abc][12]
            )\b
            """
        ),
        "skill",
    ),
    # Favourites: "my favourite band is Queen".
    Frame(
        compiled(
            rf"""
            (?:my|our) (?:all-time |all time |absolute |current |personal |number one |#1 )*
            favou?rites?(?: [\w'-]+){{0,4}}? {_IS} {_BROKEN}\S
            """
        ),
        "preference",
    ),
    # The same in other words: "my go-to drink is mate".
    Frame(
        compiled(
            rf"""
            (?:my|our) (?:[\w-]+ )?
            (?:go-to|preferred|usual|default|least favou?rite|ideal|dream|guilty)
            (?: [\w'-]+){{1,4}}? {_IS} {_BROKEN}\S
            """
        ),
        "preference",
    ),
    # Goals: "my plan for next year is to move".
    Frame(compiled(rf"(?:my|our) {words.GOAL_NOUNS} {_IS} {_BROKEN}\S"), "goal", past=False),
    # Limits: "my budget for the trip is 900 euros".
    Frame(
        compiled(
            rf"""
            (?:my|our) {words.LIMIT_NOUNS}(?: (?:for|on) [\w ]{{2,40}}?)? (?:
                {_IS}|includes?|maxes out|cannot|must|should not|tops out|stops|starts
            ) (?!(?:yesterday|last|on yesterday)\b|tight|over|too|weird|fine|today|tonight)\S
            """
        ),
        "constraint",
        past=False,
    ),
    # What belongs to somebody near: "my son's name is Leo".
    Frame(
        compiled(
            rf"""
            (?:my|our) (?:[\w-]+ ){{0,2}}?
            (?:{words.RELATIONS}|{words.PETS}|{words.ACQUAINTANCES})(?: [A-Z]\w+)?(?:'s|s'|') (?:
                full |first |last |middle )?(?:
                name|names|birthday|job|age|favou?rite \w+(?: \w+)?|school|allergy|nickname|
                phone number|number|email|profession|employer|due date|wedding|graduation|
                native language
            ) (?:is|are|was) (?!not )\S
            """
        ),
        "fact",
    ),
    # Things and places: "our office is in Lyon", "my bike is a Brompton".
    Frame(
        compiled(
            r"""
            (?:my|our) (?:
                car|bike|phone|laptop|computer|keyboard|house|home|apartment|flat|family|
                company|team|startup|business|employer|school|university|office|department|
                thesis|stack|setup|editor|os|background|heritage|doctor|wedding|anniversary|
                commute|shifts?
            )(?:'s name)? (?:is|are|was|runs|has|have|comes?|takes|starts?|employs) (?:
                (?:always|currently|originally|mostly|about|around) )*(?:
                a|an|[0-9]+|called|named|from|in|at|on|two|three|four|five|six|seven|eight|nine|
                ten|about|(?-i:[A-Z])\w+
            )\b(?! (?:
                    fire|time|minute|mess|nightmare|joke|[0-9]+ ?%|total|complete|bit|little|
                    hurry|trouble|%
                )
            )(?! ?%)
            """
        ),
        "fact",
        project=True,
    ),
    # What somebody has one of: "my blood type is A".
    Frame(
        compiled(
            rf"""
            (?:my|our) (?!project|team|app\b|code|backend|frontend|database)(?:[\w-]+ )??
            (?:{words.OWN_NOUNS}) {_IS} (?:(?:actually|currently|now|still|also|always) )*
            {_BROKEN}\S
            """
        ),
        "fact",
    ),
    # Routines and dreams: "my morning routine is …", "my idea of a perfect day is …".
    Frame(
        compiled(
            r"""
            my (?:\w+ ){0,2}?(?:routine|ritual|workout plan)[ ]
            (?:is|starts|begins|includes|involves|consists)(?! (?:not|broken|a mess|too)\b)
            """
        ),
        "habit",
    ),
    Frame(
        compiled(
            r"""
            my idea of (?:an?|the) (?:perfect|ideal|good|great|dream|lazy) [\w ]{2,25}[ ]
            (?:is|involves)\b
            """
        ),
        "preference",
    ),
    # What a business of the user does: "my shop sells old cameras".
    Frame(
        compiled(
            r"""
            (?:my|our) (?:[\w-]+ )?(?:
                shop|store|company|startup|business|bakery|studio|farm|agency|firm|restaurant|
                cafe|café|practice|clinic|label|bar|brewery|gallery|nonprofit|charity|app|
                site|blog|podcast|channel|newsletter|band|school
            ) (?:mostly |mainly |only |now )*(?:
                sells?|makes?|serves?|employs?|speciali[sz]es|offers?|builds?|ships?|exports?|
                imports?|teaches|plays?|publishes|repairs?|designs?|helps?|covers?|caters|
                brews?|is about|runs on
            )(?! (?:me|it|this)\b)\b
            """
        ),
        "fact",
        project=True,
    ),
    # First times: "my first marathon was Berlin".
    Frame(
        compiled(
            r"""
            my first (?:
                marathon|half marathon|job|child|baby|concert|book|novel|album|tattoo|car|
                language|triathlon|company|startup|boss|house|home|solo show|exhibition
            ) (?:was|is) (?!not\b)\S
            """
        ),
        "event",
    ),
    # What others did to one's things: "our flat was burgled", "my bike got stolen".
    Frame(
        compiled(
            r"""
            (?:my|our) [\w -]{3,25}? (?:was|were|got|has been|have been)[ ]
            (?:
                stolen|burgled|robbed|totaled|totalled|flooded|burnt down|demolished|
                broken into|put down|diagnosed
            )\b
            """
        ),
        "event",
    ),
    # How many: "our team has seven people".
    Frame(
        compiled(
            r"""
            (?:my|our) (?:team|company|group|department|startup|family|band|class) (?:
                has|consists of|is made up of|numbers|counts
            ) (?:about |around )?
            (?:[0-9]+|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b
            """
        ),
        "fact",
        project=True,
    ),
)


# "The repo is a monorepo": things that only whoever works on them calls so.
OWN_PROJECT: Final = compiled(
    r"""
    (?:
        the[ ]
        (?:repo|codebase|monorepo|backend|frontend|stack|infra|ci|test suite|staging server)|
        prod|production|staging
    )\b
    """
)
_PROJECT: Final = joined(rf"""
    (?:prod|production|staging|(?:all (?:of )?)?(?:our|my|the) {words.PROJECT_NOUNS})
    (?: (?:of|for|in) (?:our|my|the) \w+)?
    """)


PROJECT_FRAMES: Final = (
    # How it is doing: "our server is down".
    Frame(
        compiled(
            rf"""
            {_PROJECT} (?:is|are|was|were|keeps?|has|have|got|went) (?:
                down|broken|failing|crashing|slow|not|gone|stuck|up|back|ready|done|fine|ok|so|
                too|really|very|a (?:mess|nightmare|disaster|bit)|an? \w+ mess|
                the (?:same|problem|issue)|throwing|returning|giving|red|green|being|been|still|
                just|currently failing|an? (?:bug|error|issue|problem)
            )\b
            """
        ),
        None,
    ),
    # What binds it: "our app must run offline".
    Frame(
        compiled(
            rf"""
            {_PROJECT} (?:
                must|has to|have to|needs? to|cannot|can only|may only|may not|must not|
                should (?:always|never|only|not)|is required to|are required to|
                is not allowed|are not allowed|is limited to|are limited to|is restricted|
                (?:is|are) (?:rate[- ])?limited to|is capped at|forbids?|bans?|prohibits?|
                requires?|only (?:allows?|supports?|accepts?|runs?)|does not allow|
                do not allow
            )\b
            """
        ),
        "constraint",
        past=False,
    ),
    # What it is and uses: "our backend is written in Go".
    Frame(
        compiled(
            rf"""
            {_PROJECT} (?:(?:mostly|mainly|currently|also|all|always|now|still|entirely) )*(?:
                uses?|
                (?:is|are) (?:(?:all|mostly|entirely|currently|mainly|now) )*(?:
                    written|built|hosted|deployed|based|running|in|on|at [0-9]|every|called|
                    named|an? |using|powered|implemented|coded|made|[0-9]+|(?-i:[A-Z])\w+|due|
                    scheduled|self-hosted|located|split|managed|open source|closed source|for
                )|
                runs?|consists?|
                has (?:about |around )?
                (?:[0-9]+|two|three|four|five|six|seven|eight|ten|a |no |an )|
                have (?:[0-9]+|two|three|four|five)|targets?|supports?|deploys?|follows?|relies|
                depends|starts?|begins?|ships?|serves?|meets?|releases?|ends?|lives?|stores?|
                talks?|sits|happens?|goes (?:live|out)|go out|connects?|integrates?|handles?|
                processes|sells?|makes|develops?|builds?|works? (?:in|with|on|from|remotely)|
                operates|is made up
            )(?!\w)
            """
        ),
        "fact",
        past=False,
    ),
)
