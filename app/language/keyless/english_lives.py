"""What somebody says in English of who, where and what they are, and of what is theirs."""

from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless import english_words as words
from app.language.keyless.english_frames import ADVERBIAL, NAME, Frame, frame
from app.language.keyless.patterns import compiled, exact, joined

_START_AS_AT = exact(
    r"""
    (?P<adv>(?:(?:just|recently|currently|now) )*)(?P<verb>
        started|starts|starting|is starting|will be starting|will start|has started|is working|
        interns|interned
    ) as (?P<what>(?:an?|the) [^,]+?) (?P<where>(?:at|for|with) [^,]+)$
    """
)
_AT_AS = exact(
    r"""
    (?P<first>
        (?:(?:just|recently|currently|now) )*(?:
            joined|started at|started with|works at|works for|work(?:s|ed) with|is employed by|
            is employed at|interns at|has worked at|has worked for|has been working at|
            has been working for|is working at|is working for|got a job at|got hired at|
            got hired by
        ) [^,]+?
    ) as (?P<what>(?:an?|the) [^,]+)$
    """
)
_WORK_AS_AT = exact(
    r"""
    (?P<work>works|has worked|has been working|is working) as (?P<what>an? [^,]+?) (?P<where>
        (?:at|for|with) (?:[^,]*? (?:called|named) )?(?P<employer>[^,]+)
    )$
    """
)
_OCC_AT = exact(
    r"""
    is (?P<what>(?:an?|the) (?:[\w-]+ ){1,4}?)(?P<how>at|for|with|based in|from|living in|in)[ ]
    (?P<where>[A-Z][^,]*)$
    """
)


def work_and_place(body: str) -> list[str]:
    match = _WORK_AS_AT.search(body)
    if match:
        return [body[: match.start("where")].strip(), f"works {match['where']}"]
    match = _START_AS_AT.match(body)
    if match:
        return [
            f"{match['adv']}{match['verb']} as {match['what']}",
            f"{match['adv']}{match['verb']} {match['where']}",
        ]
    match = _AT_AS.match(body)
    if match:
        return [match["first"], f"works as {match['what']}"]
    return [body]


def _occupation(body: str) -> list[str]:
    """Cut "is a nurse at Charité" in two; "is a student from Graz" too."""
    match = _OCC_AT.search(body)
    if not match:
        return [body]
    verb = {
        "at": "works at", "for": "works for", "with": "works with", "based in": "is based in",
        "from": "is from", "living in": "lives in", "in": "",
    }[match["how"].casefold()]  # fmt: skip
    if not verb:
        return [body]
    return [f"is {match['what'].strip()}", f"{verb} {match['where']}"]


_OCC_STOP = joined(r"""
    (?!
        (?:
            bit|worst|best|same|greatest|opposite|little|lot|tad|minute|few|fool|idiot|mess|
            genius|wreck|goner|sucker for punishment|good mood|bad mood|hurry|rush|huge|big|
            dumb|failure|loser|total|real|new here|noob here|step|position|situation|pickle|
            meeting|moment|taxi|train|bus|cab
        )\b
    )
    """)

CIRCUMSTANCES: Final = (
    # Between jobs, or what one does for a living: "I am between jobs".
    frame(
        "fact",
        r"""
        (?:
            am (?:in )?between jobs|am out of work|call (?-i:[A-Z])[\w ]{1,25} home|
            do [\w ]{3,25} for a living
        )
        """,
    ),
    # Fears: "I am afraid of dogs".
    frame(
        "fact",
        r"""
        am (?:scared|afraid|terrified|frightened) of (?!it\b|this\b|that\b|losing\b|breaking\b)\S
        """,
    ),
)
NAMES_AND_AGES: Final = (
    # A name: "I am Ada", "I am Ada Byron and …".
    Frame(
        exact(
            rf"""
            (?i:am) (?!(?i:{"|".join(sorted(words.NAMES_NOT))})\b){NAME}
            (?: {NAME}){{0,2}}(?: here)?(?=$|,| and| but)
            """
        ),
        "fact",
    ),
    # What somebody is called: "I go by Sam".
    frame(
        "fact",
        r"""
        (?:
            go by|am called|am named|am known as|prefer to be called|like to be called|
            want to be called|would like to be called|prefer being called
        )\b
        """,
    ),
    # An age: "I just turned 30", "I am twenty-one".
    frame(
        "fact",
        r"""
        (?:am|will be|am turning|turn|turned|just turned|have just turned|have turned) (?:
            actually |now |already |only |still |just |about |almost |nearly )?(?:
            [1-9][0-9]|twenty|thirty|forty|fifty|sixty|seventy|eighty|nineteen|eighteen|
            seventeen|sixteen
        )(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?
        (?= ?(?:years?(?:-| )old|y/?o|yrs|now|today|this|last|next|on|in|and|,|$))
        """,
    ),
    # An age in tens: "I am in my early forties".
    frame(
        "fact",
        r"""
        am in my (?:early |mid |mid-|late )?
        (?:teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|[2-8]0s)
        """,
    ),
)
PLACES_AND_WORK: Final = (
    # Where somebody lives or grew up: "I live in Rome", "I have been based in Oslo".
    frame(
        "fact",
        r"""
        (?:
            live|reside|dwell|am (?:based|living|located|residing|settled)|
            have (?:always |been |long )?(?:lived|been living|living|based|been based)|stay|
            grew up|was raised|was brought up|spent my childhood|am a native of|
            have been(?= in (?-i:[A-Z])[^,]* (?:since|for)\b)
        )(?:
            [ ](?:
                (?:out|over|up|down|right|just|here|now|currently|originally|together|happily)[ ]
            )*(?:
                in|at|near|on|with|alone|abroad|between|from|
                by the (?:sea|ocean|lake|beach|river|coast|park|canal)|outside|around|close|
                next|across|off|above|under|downtown|of|apart|there since
            )\b
        )(?!
            [ ](?:
                a hotel|the hotel|an airbnb|my hotel|home today|track|the line|me|it\b|a rock|
                pressure|the weather|fear|denial|hope|your|the moment
            )
        )
        """,
        may_retract=True,
    ),
    # "I am in Halifax these days", "we are now in Leeds".
    frame(
        "fact",
        r"""
        am (?=.*\b(?:these days|nowadays|at present|now|currently|permanently|for good)\b)
        (?:now |currently |living |permanently )*in (?-i:[A-Z])
        """,
    ),
    # Where somebody is from: "I am originally from Peru".
    frame(
        "fact",
        r"""
        (?:come|hail|am|am originally|am hailing) from (?!
            now\b|the (?:previous|last|other|future|same)|this|that|it
        )\S
        """,
    ),
    # What somebody does no longer or not: "I no longer work at Fiat", "I do not drive".
    frame(
        "fact",
        r"""
        (?:do not|no longer) (?!speak for\b|.*\b(?:one|any|it|them|there)$)(?:
            live|reside|work(?! like)|study|drive|own|
            have (?!
                time|any idea|a clue|enough|access|the|to|
                any (?:questions|idea|experience|problem)|it|that|this|one\b|permission|much
            )|
            speak|use|smoke|play|teach|run|rent|belong|wear|go to|attend
        )\b
        """,
        may_retract=True,
    ),
    # Where and when somebody was born: "I was born in 1990".
    frame("fact", r"was born (?:in|on|at|and|near|a |deaf|blind|[0-9])"),
    # Work: "I work as a nurse at Charité", "I have been with Bosch for years".
    frame(
        "fact",
        r"""
        (?:
            work|have worked|have been working|am working|worked my way|am employed|
            am currently employed|am contracting|consult|intern|am interning|freelance|
            am freelancing|am self-employed|run my own|am between jobs|am out of work|
            am on (?:maternity|paternity|parental|sick) leave|have been with|am with|
            have been at|am at(?! [0-9])|have a job|have been a|have been an|job-?share
        )(?! (?:
                on (?:this|that|it|the|a|an|my)|
                with (?:
                    a (?:dataset|file|script|list|table|client)|this|that|the|it|you|some|data|
                    json|csv|[a-z]+ files?
                )|
                through|best|hard|well|fine|like|it|out|in (?:the|a) (?:file|meeting|repo)|the|
                a loss|home
            )\b
        )(?: |$)
        """,
        split=work_and_place,
        may_retract=True,
    ),
    # What somebody works on: "I am writing my thesis", "we are building a shop".
    frame(
        "fact",
        r"""
        (?:am|have been) (?:currently |still |mostly |also )?
        (?:
            working on(?!
                [ ](?:
                    question|exercise|problem|chapter|section|task|slide|part|step|line|
                    ticket|homework|an? (?:assignment|exercise|problem|task)
                )
            )|
            building|developing|designing|
            writing (?:a (?:book|novel|thesis|phd|blog|paper)|my)|rewriting|migrating|
            refactoring|redesigning|porting|maintaining|creating|
            making (?:a|an) (?:app|game|website|podcast|film|documentary|album)|implementing|
            leading|running (?:a|an|my|the)|organi[sz]ing|researching|prototyping|
            setting up (?:a|our|my)|launching|in charge of|responsible for|renovating|
            restoring|hosting
        ) (?!
            this (?:bug|error|file|problem|issue)|it\b|
            a[ ]
            (?:bug|function|script|query|regex|letter|mail|email|reply|list|table|chart|slide)|
            that\b
        )
        """,
        project=True,
    ),
)
STATES: Final = (
    # What somebody is: "I am married", "I am Greek", "I am left-handed", "I am in sales".
    frame(
        "fact",
        rf"""
        am {ADVERBIAL}(?:
            married(?! to (?:my (?:job|work|sofa|couch|phone)|the))|engaged|single|divorced|
            widowed|separated|retired|unemployed|self-employed|adopted|gay|straight|bisexual|
            queer|trans|nonbinary|non-binary|left[- ]handed|right[- ]handed|ambidextrous|
            an only child|
            the (?:oldest|eldest|youngest|middle)
            (?= (?:of|child|sibling|son|daughter|brother|sister|in my family)|$)|
            (?:
                muslim|christian|jewish|catholic|hindu|buddhist|atheist|agnostic|mormon|sikh|
                orthodox
            )|
            expecting|of \w+ (?:descent|origin|heritage)|half[- ]\w+|
            (?:
                (?!selfish|childish|foolish|feverish|sluggish|stylish|boyish|civilian)\w+
                (?:ish|ese|ian|ican)|
                {words.NATIONALITIES}
            )|
            in a relationship(?! with (?:this|my bed|food))|
            on (?:a pension|disability|welfare|benefits|parole)|
            in (?:
                sales|tech|finance|marketing|hr|healthcare|education|it|real estate|
                consulting|logistics|insurance|construction|academia|grad school|med school|
                law school|high school|college|university|\w+ grade|year [0-9]+|
                my (?:first|second|third|fourth|final|last|junior|senior|sophomore|freshman) year
            )|
            on (?:the autism|team)|[0-9]['.]|[0-9]{{3}} ?cm|
            [0-9.,]+ ?(?:m|cm|kg|lbs|pounds|feet|ft)\b|tall|short|
            an? (?:
                introvert|extrovert|insomniac|workaholic|perfectionist|minimalist|homebody|
                bookworm|foodie|gamer|\w+holic
            )|
            dating|seeing someone|named after|about [0-9.]+ (?:m|cm|feet)|related to|
            good friends with|
            the (?:
                father|mother|parent|owner|founder|head|ceo|cto|cfo|lead|director|president|
                captain|chair|author|maintainer|creator|organizer|only|secretary|treasurer
            )|
            a morning|studying|majoring|
            doing (?:a|an|my) (?:
                phd|master|masters|mba|degree|apprenticeship|internship|bachelor|residency|
                postdoc
            )|
            pursuing|enrolled|on call|a member|part of|head of|ceo|cto|vp|co-?founder|founder|
            owner|responsible|team lead|currently on|self-taught|registered|raising|
            subscribed|using (?:a|an) (?!function|script|loop|regex)[A-Z0-9]|
            running (?:macos|windows|linux|ubuntu|android|ios)|
            on (?:a )?(?:windows|linux|mac|macos|ubuntu|android|ios|arch|fedora|debian)
        )(?![\w])(?! (?:this|that)\b)
        """,
        may_retract=True,
    ),
)
KIN_AND_THINGS: Final = (
    # A trade or a part: "I am a nurse at Charité".
    frame(
        "fact",
        rf"""
        am {ADVERBIAL}(?:an?|the) {_OCC_STOP}(?!\w+ (?:idea|question|problem)\b)
        (?!.*\b(?:you|this conversation|bit|little)\b)[\w'-]+
        """,
        split=_occupation,
        may_retract=True,
    ),
    # Kin, animals and things: "I have two cats", "I own a van".
    frame(
        "fact",
        rf"""
        (?:do not |no longer )?(?:have|own|adopted|keep|share|foster|raise|am raising) (?:
            (?:
                a|an|one|two|three|four|five|six|seven|eight|nine|ten|[0-9]+|several|many|some|
                no|any|another|my own|younger|older|little|big|twin|lovely|small|great|
                beautiful|old|young|adult|grown|teenage|adopted|both|only|identical|rescue|
                black|white|grey|gray|orange|ginger|golden|the cutest|new|elderly|fluffy|dual|
                tabby|siamese|persian|german|french|shy|tiny|[0-9]+-year-old|\w+-year-old
            ) )+(?:\w+ )??(?:
            {words.RELATIONS}|{words.PETS}|{words.ACQUAINTANCES}|siblings?|fish|kittens|puppies|
            horses|rabbits|car|house|apartment|flat|garden|motorcycle|bike|boat|piano|guitar|
            cabin|farm|citizenship|restaurant|shop|store|cafe|bakery|company|business|startup|
            podcast|blog|youtube channel|channel|newsletter|tattoos?|(?-i:[A-Z])\w*|macbook|
            iphone|android phone|laptop|pc|mac|thinkpad|pixel|tesla|allotment|greenhouse|
            beehives?|collection|subscription|account|accounts|server|nas|3d printer|telescope|
            drone|camera|kindle|ipad|xbox|ps5|playstation|switch|van|camper|scooter|truck|fear|
            scar|visa|passport|citizenship|mortgage|loan|studio|office|gym membership|
            membership|beard|glasses|braces|piercings?|implants?|library card|wife|dog|cat
        )\b
        """,
        may_retract=True,
    ),
    # What is no longer so: "I am no longer in Denver", "we are no longer with Telekom".
    frame(
        "fact",
        r"am (?:not )?(?:in|at|with|on|\w+ing|part of|an?|the) (?!.*\bthere\b)\S",
        lead=compiled(r"\bno longer\b|any ?more|any longer"),
        may_retract=True,
    ),
    # The same with "my": "I have my own shop".
    frame("fact", r"have (?:my|our) (?:own|" + words.RELATIONS + r")\b"),
)
DOINGS: Final = (
    # Facts by their verb: "I manage a team", "we use Kafka".
    frame(
        "fact",
        rf"""
        (?:{verbs.FACT_VERBS})
        (?! ?(?:it|this|that|these|those|your|the (?:following|same|function|command))\b).+
        """,
        may_retract=True,
        project=True,
    ),
)
