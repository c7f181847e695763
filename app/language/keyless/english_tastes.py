"""What somebody says in English that they like, and what they can do."""

from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless import english_words as words
from app.language.keyless.english_frames import ADVERBIAL, frame
from app.language.keyless.patterns import joined

_LANGUAGE = joined(rf"""
    (?:
        (?:
            fluent|native|good|some|a bit of|a little|basic|conversational|broken|only|both|
            decent|perfect|passable|a little bit of|rusty
        ) )*(?:{words.LANGUAGES})\b
    """)

FOUND: Final = (
    # New to something: "I am fairly new to Rust".
    frame(
        "skill",
        r"""
        am (?:completely |totally |fairly |pretty )?new to (?!
            this|that|it|the (?:team|chat|forum|area)
        )\S
        """,
    ),
    # What somebody finds boring or soothing: "I find gardening relaxing".
    frame(
        "preference",
        r"""
        find (?!it|this|that|these|those|out|a|an|the (?:file|error|problem|bug|answer))
        [\w' -]{2,30} (?:
            boring|relaxing|annoying|fascinating|exhausting|disgusting|delicious|soothing|
            calming|stressful|inspiring|interesting|irritating|overrated|therapeutic|tedious|
            scary|distracting
        )$
        """,
    ),
)
TASTES: Final = (
    # Likes and dislikes: "I love tea", "I have never liked jazz".
    frame(
        "preference",
        rf"""
        (?:(?:do not|did not|cannot|could not|am not|never|no longer|always|can) {ADVERBIAL})?
        (?:have (?:always|never|long) )?(?:{words.LIKING}|liked|loved|hated|enjoyed|preferred)\b
        (?! (?:{words.TASTE_VETO}))(?:,? | to )\S
        """,
        may_retract=True,
    ),
    # The same as a state: "I am fond of tea", "I am a big fan of jazz".
    frame(
        "preference",
        rf"""
        (?:
            am|have (?:always |recently |never )?been|got|have gotten|was never|became|
            have become
        ) {ADVERBIAL}(?:{words.LIKING_STATES})(?! (?:it|this|that|you|your)\b)
        """,
    ),
    # Rather this than that: "I would rather walk", "I prefer trains".
    frame(
        "preference",
        r"""
        (?:would (?:much |always |really )?(?:rather|prefer|sooner|choose|pick|take)|prefer)(?! (?:
                not (?:to )?(?:say|talk|answer|share|discuss|go into|tell)|
                option|
                the (?:first|second|third|last|original|previous|other|one|\w+ one|version)|
                an? \w+ (?:version|answer|explanation|summary)|not to answer|not say|
                you (?:did|do) not
            )
        )\b
        """,
    ),
    # A weakness for something: "I have a sweet tooth", "I have a soft spot for pugs".
    frame(
        "preference",
        r"""
        have (?:a |an |always had a |got a )?(?:\w+ )?(?:
            preference|soft spot|weakness|sweet tooth|thing|crush|love|passion|aversion|dislike|
            interest
        ) (?:for|to|of|in|against)\b|
        have a (?:huge |big |real |major )?sweet tooth
        """,
    ),
)
NEVER_TAKEN: Final = (
    # "I do not do social media".
    frame(
        "preference", r"do not do (?!(?:it|this|that|well|much|anything|so|any|the|my|a|an)\b)\S"
    ),
    # What somebody was never taken by: "I never understood the appeal of golf".
    frame(
        "preference",
        r"""
        (?:have )?(?:do not )?(?:understood|understand|got|get|seen|saw|see) the[ ]
        (?:appeal|hype|fuss)(?:[ ]of|[ ]about|[ ]with|[ ]behind) \S
        """,
    ),
    # "I suck at maths", "I struggle with names".
    frame("skill", r"(?:suck|excel|struggle|shine) (?:at|with) (?!this|that|it|the|my|your)\S"),
    # "I taught myself Blender".
    frame("skill", r"(?:have )?taught myself (?!a lesson)\S"),
)
SKILLS: Final = (
    # What somebody can do: "I can swim", "I know how to weld".
    frame(
        "skill",
        rf"""
        (?:
            can|cannot|could never|can not|am able to|am learning (?:how )?to|
            learned (?:how )?to|taught myself(?: to)?|know how to|do not know how to|
            never learned (?:how )?to
        )(?: (?:
                really|also|fluently|barely|already|even|hardly|still|not|actually|kind of|
                sort of|finally
            )
        )* (?:{verbs.SKILL_VERBS})(?![\w-])(?! (?:it|this|that|to you|you)\b)(?!.*\bof it$)
        """,
    ),
    # Instruments: "I play the cello".
    frame(
        "skill",
        r"""
        play (?:the )?(?:
            guitar|piano|violin|drums|cello|bass|flute|saxophone|sax|trumpet|ukulele|harp|
            clarinet|banjo|accordion|keyboard|viola|oboe|harmonica|organ|percussion|trombone
        )\b(?!.*\b(?:every|each|times a|once a|twice a|on \w+days|daily|weekly)\b)
        """,
    ),
    # Languages: "I speak some Greek".
    frame(
        "skill",
        rf"""
        (?:do not |cannot )?{ADVERBIAL}(?:
            speak|understand|read|write|know|am fluent in|am native in|am conversational in|
            have a working knowledge of|studied
        ) (?:\w+ )?{_LANGUAGE}
        """,
    ),
    # Knowledge, experience, papers: "I know SQL", "I have ten years of experience in sales".
    frame(
        "skill",
        r"""
        (?:
            know|am familiar with|am experienced (?:in|with)|am proficient (?:in|with|at)|
            am fluent in|am skilled (?:in|at|with)|am comfortable (?:with|in|writing|using)|
            am (?:an )?expert (?:in|at|on)|am well versed in|am versed in|am certified|
            am trained|am qualified|am self-taught|am competent|am knowledgeable|have mastered|
            excel at|specialize|specialise|have expertise|have a background|
            have a (?:black|brown) belt|have (?:a )?(?:perfect pitch|photographic)|
            have (?:my |a |an )?(?:\w+ )?(?:
                pilot'?s? licen[cs]e|driving licen[cs]e|driver'?s licen[cs]e|certification|
                certificate|degree|phd|master'?s?|bachelor'?s?|mba
            )|
            am not familiar with|have no experience|
            have (?:
                little|some|lots of|plenty of|extensive|a lot of|years of|decades of|solid|
                limited|zero|hands-on
            ) (?:\w+ )?(?:experience|knowledge)|
            have (?:over |about |around |more than |almost |nearly )?(?:
                [0-9]+|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|a decade|
                many|several
            )\+? (?:years?|months?)(?: of|') (?:\w+ ){0,3}?experience
        )\b(?! (?:
                what|how|why|that|it|this|you|if|where|when|the (?:answer|feeling|meaning)|
                about (?:this|that|it)|who|i|nothing|right|better|someone|of|
                (?:a|an|some|the|this|many|several|people) (?!
                    little|bit|lot about|few words|basics|ins
                )|
                [\w+#.-]+ (?:is|are|was|has|can|will|does)|everyone|everything
            )\b
        )
        """,
    ),
    # What somebody has done for long: "I have played chess for years".
    frame(
        "skill",
        r"""
        have (?:been )?(?:
            \w+ing|programmed|coded|played|practi[cs]ed|taught|done|written|used|worked with|
            developed|skied|danced|sung|painted|flown|sailed
        ) (?:\w+ ){0,6}?(?:
            for (?:
                about |over |almost |nearly |more than |around |at least |the (?:past|last) )?(?:
                a|an|one|two|three|four|five|six|seven|eight|nine|ten|[0-9]+|many|several|years|
                ages|a few|decades|half
            )|
            since
        )\b(?!.*\b(?:hours?|minutes?|days|daily|weekly|every|each)\b)
        """,
    ),
    # Good or bad at something: "I am terrible at chess".
    frame(
        "skill",
        rf"""
        am {ADVERBIAL}(?:
            good|great|bad|terrible|excellent|awful|decent|better|hopeless|amazing|rubbish|
            horrible|brilliant|strong|weak|talented|useless|ok|okay|competent|handy|rusty
        ) (?:at|with|in)\b(?! (?:this|that|it|the (?:moment|weekend|meeting)|first|home|you)\b)
        """,
    ),
    # How far somebody has come: "I am an experienced diver".
    frame(
        "skill",
        r"""
        am (?:still |only |just |more of )?(?:a |an )?(?:
            complete |total |absolute |relative |intermediate |advanced |certified |
            self-taught |experienced |seasoned |trained |professional |native |fluent |
            licensed |decent |good |strong |expert |proficient )+(?:
            beginner|novice|newbie|noob|expert|speaker|swimmer|cook|skier|driver|dancer|singer|
            programmer|diver|typist|writer|coder|climber|chess player|
            \w+ (?:speaker|player|programmer|user)
        )\b
        """,
    ),
    # The same without an adjective: "I am still a beginner".
    frame(
        "skill",
        r"""
        (?:am|am still) (?:a |an )?(?:\w+ )?
        (?:beginner|novice|newbie|native speaker|polyglot|autodidact)\b
        """,
    ),
    # Papers earned: "I hold a degree in law".
    frame(
        "skill",
        r"""
        (?:hold|have earned|earned|got) (?:a|an|my) (?:[\w'-]+ ){0,3}
        (?:degree|certificate|certification|licen[cs]e|diploma|phd|mba|black belt|record)\b
        """,
    ),
)
