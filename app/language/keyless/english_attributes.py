"""Which attribute an English sentence in the third person gives, as data and how it is read."""

from typing import Final

from app.language.keyless.english_words import NAMES_NOT
from app.language.keyless.patterns import compiled, exact, joined

_WHO: Final = r"(?:(?:the )?(?:user|customer|client|person)|he|she|they|i)"
_SOME: Final = joined(r"""
    (?:
        (?:
            now|currently|also|still|just|recently|actually|really|originally|always|usually|
            happily|temporarily|permanently|has|have|had|been|is|are|am|was|no longer|does not|
            do not|not|lately|finally|stopped|quit|primarily|mostly|mainly
        ) )*
    """)
_END: Final = joined(r"""
    (?=
        $|[,.;!]|
        [ ](?:
            since|
            for (?:
                about|over|almost|nearly|the|a|an|one|two|three|four|five|six|seven|eight|
                nine|ten|[0-9]+
            )|
            because|and (?:works?|has|is|likes?|their)|until|any ?more|any longer|with|last|
            this|next|in (?:19|20)[0-9]{2}|in the (?:week|spring|summer|autumn|winter) of|
            on (?:the weekend of )?(?:19|20)[0-9]{2}|as of|right now|these days|now|where|but|
            (?:two|three|four|five|six|a few|a|an|one|[0-9]+) (?:days?|weeks?|months?|years?) ago|
            yesterday|again|
            in (?:
                january|february|march|april|may|june|july|august|september|october|november|
                december
            )|
            on (?:mon|tues|wednes|thurs|fri|satur|sun)day
        )\b
    )
    """)
_V: Final = r"(?P<value>[^,;!]{1,80}?)"
_KINDS: Final = joined(r"""
    band|color|colour|food|dish|movie|film|book|author|singer|song|team|sport|game|drink|city|
    country|animal|season|number|language|programming language|editor|show|series|artist|actor|
    actress|restaurant|cuisine|fruit|flower|subject|hobby|place|day|month|holiday|dessert|pizza|
    beer|wine|tea|coffee|genre|writer|poet|composer|album|podcast|video game|football team|club|
    football club|player|ice cream|snack|vegetable|meal|cocktail|brand|musician|director|museum|
    park
    """)


_ENGLISH: Final = tuple(
    (name, compiled(pattern))
    for name, pattern in (
        (
            "name",
            rf"""
            (?:the )?(?:user|client|customer)(?:'s|s) (?:(?:full|first|real|preferred) )?
            name is {_V}(?:\.|$)
            """,
        ),
        (
            "name",
            rf"""
            {_WHO} {_SOME}(?:(?:wants?|prefers?|likes?|would like) to be )?
            (?:called|named|goes by|go by|known as) {_V}(?:\.|$)
            """,
        ),
        ("name", rf"(?:their|his|her|my) (?:(?:full|first|real|preferred) )?name is {_V}(?:\.|$)"),
        (
            "age",
            rf"""
            {_WHO} (?:
                (?:
                    is|am|are|turned|turns|will be|is turning|has turned|just|has just|now|
                    about|almost|nearly
                ) )+(?P<value>
                [1-9][0-9]?|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:-\w+)?|
                nineteen|eighteen|seventeen|sixteen
            )(?: years? old)?(?![.,][0-9]| ?(?:m|ft|feet)\b)(?=[\s.,]|$)
            (?! (?:kg|km|cm|miles|minutes|hours|percent|weeks|months|days))
            """,
        ),
        ("age", r"(?:the )?user's age is (?P<value>[0-9]{1,3})"),
        (
            "birthday",
            rf"""
            (?:the user's|their|my|his|her)[ ]
            (?:birthday|bday|b-day|birth ?date|date of birth|birth year) (?:is|falls)(?: on)? {_V}
            (?:\.|$)
            """,
        ),
        (
            "birthday",
            r"""
            (?:.*\b)?(?:the user|he|she|they|i|user) (?:was|were) born (?:on |in )
            (?P<value>[^,;.]*?[0-9][^,;.]*?)(?= in [A-Z]|\.|,|$| at)
            """,
        ),
        (
            "timezone",
            rf"""
            (?:(?:the user's|their|my) )time ?zone is {_V}(?:\.|$)|
            {_WHO} is (?:in|on) (?P<value2>
                [A-Z]{{2,4}}|UTC[+-][0-9]+|(?:eastern|pacific|central|mountain) time
            )\b
            """,
        ),
        (
            "employer",
            rf"""
            (?:.*, )?{_WHO} {_SOME}(?:
                works?|worked|working|employed|interns?|interning|been|is|contracts?|consults?|
                started(?: a (?:new )?job)?|starts?|starting|starting (?:a (?:new )?)?job
            )(?: full-time| part-time| remotely)? (?:at|for|with|by) (?!
                (?:
                    home|night|nights|weekends|least|themselves|myself|a living|fun|
                    their (?:wife|husband|family|parents|partner)|the (?:moment|weekend)|
                    children|kids|clients|people|
                    (?:about |over |almost )?
                    (?:a|an|two|three|four|five|six|seven|eight|nine|ten|[0-9]+) (?:\w+ )?
                    (?:years?|months?|hours?|decades?)
                )\b
            ){_V}(?: as .*)?{_END}
            """,
        ),
        (
            "employer",
            rf"""
            (?:.*, )?{_WHO} {_SOME}(?:
                joined|switched jobs to|changed jobs to|moved (?:jobs )?to work (?:at|for)|
                (?:got|took|accepted|landed|started) (?:a|an|the) (?:\w+ ){{0,2}}?
                (?:job|position|offer|role) (?:at|with|from)
            ) {_V}(?: as .*)?{_END}
            """,
        ),
        (
            "employer",
            rf"""
            (?:(?:the user's|their|my) )(?:employer|company) is (?:called )?{_V}(?:\.|$)
            """,
        ),
        (
            "residence",
            rf"""
            (?:.*, )?(?:{_WHO}|the user and [\w' ]+?|the user's family) {_SOME}
            (?:lives?|lived|living|resides?|residing|based|located|dwells?|settled|stays?)
            (?: (?:alone|together|abroad|here|permanently|temporarily|now|out|up|down|over))*
            (?: with [\w' ]+?)? (?:in|at|near|outside|on|by|just outside|close to|around|out of) (?!
                (?:
                    a (?:house|flat|apartment|studio|big|shared|tent)|an apartment|
                    the (?:moment|same|present|past|office)|
                    (?:two|three|four|five|six|seven|eight|nine|ten|many|several|different)\b|
                    their own|peace|fear|this|[0-9]
                )\b
            ){_V}{_END}
            """,
        ),
        (
            "residence",
            rf"""
            (?:.*, )?(?:{_WHO}|the user and [\w' ]+?) {_SOME}
            (?:moved|relocated|emigrated|immigrated|moving|relocating)
            (?: (?:back|over|out|up|down))* (?:here )?(?:from [\w ]+? )?to (?!
                (?:a (?:new|bigger|smaller|different)|another|the next|part)\b
            ){_V}{_END}
            """,
        ),
        (
            "residence",
            rf"""
            (?:(?:the user's|their|my) )
            (?:home|home city|city|address|place of residence|residence) is (?:in |at )?{_V}
            (?:\.|$)
            """,
        ),
        (
            "origin",
            rf"""
            {_WHO} {_SOME}(?:comes?|came|hails?|is|are|am|originates?) {_SOME}from {_V}{_END}
            """,
        ),
        (
            "origin",
            rf"""
            (?:.*, )?{_WHO} {_SOME}
            (?:grew up|raised|brought up|born and raised|a native of|born)(?: and grew up)? (?:
                in|near|on
            )?\s?(?![^,.]*[0-9]){_V}{_END}
            """,
        ),
        (
            "origin",
            rf"""
            (?:the user's|their|my) (?:hometown|home town|birthplace|home country|nationality)
            [ ]is {_V}(?:\.|$)
            """,
        ),
        (
            "partner",
            r"""
            (?:the user's|their|my) (?:
                wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?
            )(?:(?:'s name)? is(?: called| named)?|,?) (?P<value>(?-i:[A-Z])[\w'-]+)(?=$|[\s.,])
            """,
        ),
        (
            "partner",
            rf"""
            {_WHO} {_SOME}(?:married|engaged|dating|in a relationship) (?:to|with) (?P<value>
                (?-i:[A-Z])[\w'-]+(?: [A-Z][\w'-]+)?
            )
            """,
        ),
        (
            "marital_status",
            rf"""
            {_WHO} {_SOME}(?P<value>married|single|divorced|widowed|engaged|separated)\b
            """,
        ),
        (
            "language",
            r"""
            (?:the user's|their|my) (?:native|first|mother) (?:language|tongue) is (?P<value>
                [^,.;]{2,40}
            )
            """,
        ),
        (
            "language",
            r"""
            (?:the user )?(?:wants|prefers) (?:
                the assistant to (?:always )?(?:answer|reply|respond|write|speak|talk)
                (?: to them| back)?|
                answers|replies
            ) in (?P<value>(?-i:[A-Z])[a-z]+)\b
            """,
        ),
        (
            "diet",
            rf"""
            {_WHO} {_SOME}(?:a |an |on a |became |went |turned )*(?:strict )?
            (?P<value>vegan|vegetarian|pescatarian|flexitarian|omnivore|keto|halal|kosher)\b
            """,
        ),
        (
            "occupation",
            rf"""
            (?:.*, )?{_WHO} {_SOME}(?P<value>
                (?:runs?|owns?|manages?) (?:an?|their own|my own|the) (?:\w+ ){{0,2}}?(?:
                    bakery|business|shop|store|cafe|café|restaurant|company|startup|studio|farm|
                    hotel|clinic|agency|salon|bar|gym|bookshop|bookstore|consultancy|practice|
                    school|firm
                )
            )\b
            """,
        ),
        (
            "occupation",
            rf"""
            (?:.*, )?{_WHO} {_SOME}(?:works?|worked|working|employed|serves?|started|starts?)
            (?: [^,.]{{2,40}}?)? as (?:an? |the )?{_V}(?: (?:at|for|with|in) .*)?{_END}
            """,
        ),
        (
            "occupation",
            r"""
            (?:the user's|their|my) (?:
                job|occupation|profession|job title|day job|title|role|position
            ) is (?:being |to be )?(?:an? |the )?(?P<value>[^,.;]{2,60})
            """,
        ),
    )
)
_OCCUPATIONS: Final = joined(r"""
    (?:
        \w*(?:er|or|ist|ian|eer|yst|ant|ect|ician|man|woman|person)|nurse|chef|cook|doctor|dev|
        student|intern|pilot|judge|clerk|coach|guide|guard|midwife|vet|freelancer|ceo|cto|cfo|
        founder|scientist|researcher|surgeon|paramedic|barista|monk|priest|rabbi|agent|model|
        potter|tailor|smith|apprentice|analyst|architect|accountant|consultant|assistant|
        executive|officer|physician|pharmacist|therapist|technician|undergrad|undergraduate|
        retiree|sre|pm|qa|dba|sysadmin|ux|nanny|au pair|soldier|diplomat|attorney|postdoc|dad|
        mom|mum|mother|father
    )
    """)
_OCCUPATION: Final = compiled(
    rf"""
    (?:.*, )?{_WHO} {_SOME}(?:an?|the) (?P<value>(?:[\w'/+#.-]+ ){{0,4}}?{_OCCUPATIONS})
    (?=
        $|[.,;]|
        [ ](?:
            at|for|with|in|from|by (?:profession|trade|day)|who|based|and|working|
            specializing|specialising|now|these days|here|since|living
        )\b
    )
    """
)
_NOT_OCCUPATION: Final = compiled(
    r"""
    .*\b(?:
        morning|night|dog|cat|people|coffee|tea|beach|city|outdoor|outdoorsy|big|beginner|lover|
        user|speaker|runner|swimmer|eater|drinker|reader|gamer|member|owner|person|smoker|
        sleeper|sister|brother|daughter|father|mother|walker|learner|newcomer|newbie|hoarder|
        listener|thinker|planner|believer|supporter|follower|meat-eater|non-smoker|cyclist|
        minimalist|perfectionist|feminist|atheist|buddhist|vegetarian|christian|winner|
        collector|bookworm|hater|sufferer|survivor|citizen|dreamer|traveller|traveler|hiker|
        climber|player|drummer|knitter|early riser|riser|foreigner|stranger|pessimist|optimist|
        amateur|hobbyist|dad|mom|mum|fan|introvert|extrovert|loser|outsider|expert|starter|
        number|monster|winner|native \w+|left-hander
    )$
    """
)
_TEACHES: Final = compiled(
    rf"(?:.*, )?{_WHO} {_SOME}(?P<verb>teach(?:es)?) (?P<value>[^,.;]{{2,60}}?){_END}"
)
_FAVOURITE: Final = compiled(
    rf"""
    (?:the user's|their|my) (?:all-time |absolute |current |personal )*favou?rite (?P<kind>
        {_KINDS}
    )(?: (?:of all time|ever|is|has))? (?:is|has (?:always )?been|will always be|are) (?P<value>
        [^,;]{{1,80}}?
    )(?:\.|,|$)
    """
)
_FAVOURITE_AFTER: Final = compiled(
    rf"""
    (?P<value>[\w' -]{{1,60}}) is (?:the user's|their|my) (?:all-time |absolute )?favou?rite[ ]
    (?P<kind>{_KINDS})\.?$
    """
)
_INTRODUCED: Final = exact(
    rf"""
    The user is (?!(?i:{"|".join(sorted(NAMES_NOT))})\b)
    (?P<value>[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){{0,2}})\.?$
    """
)


def english_attribute(text: str) -> tuple[str, str] | None:
    favourite = _FAVOURITE.match(text) or _FAVOURITE_AFTER.match(text)
    if favourite:
        kind = (
            favourite["kind"]
            .casefold()
            .replace(" ", "_")
            .replace("color", "colour")
            .replace("colourur", "colour")
        )
        return f"user.favourite_{kind.replace('movie', 'film')}", bare(favourite["value"])
    for name, pattern in _ENGLISH:
        match = pattern.match(text)
        if match:
            groups = match.groupdict()
            return f"user.{name}", bare(groups["value"] or groups.get("value2") or "")
    job = _OCCUPATION.match(text)
    if job and not _NOT_OCCUPATION.match(job["value"]):
        return "user.occupation", bare(job["value"])
    taught = _TEACHES.match(text)
    if taught:
        return "user.occupation", bare(f"teaches {taught['value']}")
    introduced = _INTRODUCED.match(text)
    if introduced:
        return "user.name", introduced["value"]
    return None


def bare(raw: str) -> str:
    """A value without the marks around it."""
    return raw.strip(" .,;:!?\"'“”《》。，、")
