"""What somebody says in English that they want, plan or have decided."""

from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless.english_frames import ADVERBIAL, frame
from app.language.keyless.patterns import compiled

_DATE_AHEAD = compiled(
    r"""
    \b(?:
        next|this (?:spring|summer|autumn|fall|winter|year|month|week|coming)|
        in (?:
            january|february|march|april|may|june|july|august|september|october|november|
            december|20[0-9]{2}|
            (?:a|an|two|three|four|five|six|[0-9]+) (?:weeks?|months?|years?)
        )|
        come (?:
            january|february|march|april|may|june|july|august|september|october|november|
            december|spring|summer|autumn|winter
        )|
        soon|by (?:the end|next)|before (?:the|i am|my)|at the end of|
        (?:on )?(?:
            january|february|march|april|may|june|july|august|september|october|november|
            december
        ) [0-9]|
        one day|some ?day
    )\b
    """
)

SETTLED: Final = (
    # Decisions that begin like talk: "I said yes to the job", "I will not be renewing Netflix".
    frame(
        "decision",
        r"""
        (?:have |finally )*(?:
            said (?:yes|no) to (?:the|a|an|my|their) |
            will (?:not|no longer) be (?:
                renewing|going back|attending|joining|buying|using|returning|continuing|
                working|taking|coming back
            )
        )
        """,
    ),
    # "We have set our hearts on a farm", "I have my heart set on Lisbon".
    frame(
        "goal",
        r"(?:have )?(?:set (?:my|our) (?:heart|hearts|sights)|(?:my|our) hearts? set) on \S",
        past=False,
    ),
)
UNDER_WAY: Final = (
    # What is under way towards an end: "I am saving for a house", "I am moving to Rome".
    frame(
        "goal",
        r"""
        (?:am|have been) (?:currently |still |slowly |actively |also |finally )?
        (?:
            planning (?!
                an?[ ]
                (?:party|dinner|lunch|meeting|surprise|lesson|menu|workout|meal|bbq|barbecue)
            )|
            hoping (?:to|for)|aiming|intending|
            looking forward to (?:moving|starting|becoming)|determined|preparing|saving|
            training|studying for|applying|
            trying to (?:
                lose|quit|learn|get (?:fit|in shape|pregnant|better|my|into|more)|eat|cut|
                save|become|improve|gain|build (?:a|an|my|muscle)|stop|buy|conceive|start|
                reduce|read more|move|sleep|drink|
                find a (?:new )?(?:job|apartment|flat|house)|be more
            )|
            working (?:towards?|up to)|moving (?:to|back|out|in|house|home)|relocating|
            getting (?:married|a (?:dog|cat|puppy|divorce)|divorced|my)|
            starting (?:a|an|my|at|work|college|university|school)|
            taking (?:a (?:sabbatical|gap|course|class|year)|my driving)|
            (?:flying to|travel(?:l)?ing to|visiting)(?!.*\b(?:tomorrow|tonight|today)\b)
            (?! (?:this|the|your)\b)|
            running (?:the|my first|a (?:half )?marathon|in)|expecting|
            switching (?:to|careers?|jobs)|quitting|retiring|launching|buying a|
            looking (?:
                to|
                for a (?:new )?(?:job|apartment|flat|house)
                (?! (?:posting|description|title|ad|offer))
            )|
            about to (?:become|move|start|have|graduate|get|retire|turn)|due (?:in|on)|
            having (?:a baby|surgery|twins)|job hunting|scheduled
        )(?: |$)
        (?!(?:this|that|it|you|to (?:use|ask|see|get this|make this|find|do this|fix))\b)
        """,
        past=False,
        project=True,
    ),
)
PLANS: Final = (
    # What is going to be: "I am going to learn Greek".
    frame(
        "goal",
        rf"""
        (?:going|am going|will be|am gonna) to (?:{verbs.GOAL_VERBS})\b
        (?! (?:it|this|that|you)\b)
        """,
        past=False,
        project=True,
    ),
    # The same without a verb of will, with a date ahead: "I am marrying next June".
    frame(
        "goal",
        r"""
        (?:am (?=\w+ing\b)|am going to |will be |will )(?!
            be back|let|try|do|see|use|check|get back|send|take a look|go now|call|text|ping|
            tell|need|have to|say|think|read|ask|test|give|talk|come back|report|keep|have|
            be able|ask|look|check
        )\w+
        """,
        lead=_DATE_AHEAD,
        past=False,
        project=True,
    ),
    # Wishes: "I want to run a marathon", "I would love to become a pilot".
    frame(
        "goal",
        rf"""
        (?:
            want|would like|would love|hope|wish|need|aspire|dream of|dream about|
            have always wanted|have been wanting|have long wanted|am eager|am keen|am itching|
            am excited
        ) (?:to )?(?:{verbs.GOAL_VERBS})\b(?!
            [ ](?:
                it|this|that|you|about|how (?:this|that|you|it|to use)|more about|see the|
                from (?:this|you)|the (?:code|difference|basics)|why|whether|if|what
            )\b
        )
        """,
        past=False,
        may_retract=True,
    ),
    # "I am off to Nepal next spring".
    frame(
        "goal",
        r"am (?:off|headed|heading|away) to (?-i:[A-Z])",
        lead=_DATE_AHEAD,
        past=False,
    ),
    # What is on the calendar: "we ship the beta in October", "I start at Bosch next month".
    frame(
        "goal",
        r"""
        (?:
            ship|launch|release|go live|open|start|begin|move|leave|fly|publish|retire|
            graduate|finish|deliver
        )(?! (?:it|this|that|the (?:app|server|page|game))\b)(?=[ ](?!every))
        """,
        lead=_DATE_AHEAD,
        past=False,
        project=True,
    ),
    # Plans: "I plan to retire early", "I dream of a farm".
    frame(
        "goal",
        r"""
        (?:
            plan|intend|aim|hope|aspire|resolved|vowed|pledged|promised myself|dream of|
            dream about|have plans|am set|set a goal|set myself|have a goal|have set|
            have been meaning|am committed
        )(?: (?:to|on|of|about))(?! (?:
                use (?:this|it|that)|ask|see|get (?:this|it|that)|hear|be back|
                do (?:this|it|that)|finish this|fix|it|this|that
            )
        )\b
        """,
        past=False,
        project=True,
    ),
    # Things and people wished for: "I want a dog".
    frame(
        "goal",
        r"""
        want (?:a|an|my|to own a|to have a|to get a) (?:
            dog|cat|puppy|baby|house|new job|better job|promotion|divorce|family|phd|degree|
            career
        )\b
        """,
        past=False,
    ),
)
DECISIONS: Final = (
    # Decisions: "we decided to use Kafka", "I went with the red one".
    frame(
        "decision",
        r"""
        (?:have |had |ended up )?(?:finally |now |just |already |all |eventually |officially )*(?:
            decided (?:to|on|against|not to|in favou?r of|that (?:we|i|our|my))|settled (?:on|for)|
            opted (?:for|to|not to|out)|landed on|zeroed in on|made up my mind (?:to|about|on)|
            went with|gone with|resolved to|ruled out|elected to|standardi[sz]ed on|
            (?:am |will be |going to be )?(?:going|sticking|staying) with|
            (?:am going to|will|gonna) (?:go|stick|stay) with|am opting|signed off on|
            deciding on|ended up (?:choosing|picking|going with|buying|getting|taking)|
            (?:chose|chosen|picked|selected|am choosing|am picking) (?=.*\b(?:
                over|instead of|rather than|as (?:my|our)|for (?:my|our|the|his|her)|to (?!the\b)
            )\b|(?:the |a |an )?(?:\w+ )?(?-i:[A-Z]))|
            (?:am |have )?(?:turn(?:ing|ed) down|tak(?:ing|en)|accept(?:ing|ed)|declin(?:ing|ed)|
                reject(?:ing|ed)) (?:the|an|a|their|my) (?:\w+ )?(?:offer|job|position|role|deal|
                promotion|scholarship|internship)|
            am (?:cancell?ing|dropping|leaving|ditching|getting rid of|selling) my
        )(?![\w-])(?! (?:
                it|this|that|these|those|them|you|your|if|whether|yet|what|which|how|both|two|one|
                ask|try|check|see|give|write|take a (?:break|look|walk|nap)|go with the flow|
                (?:the|a|an) (?:\w+ )?(?:first|second|third|last|latter|former|next|same|other|one|
                wrong|flow|answer|option|paragraph|sentence|image|picture)
            )\b
        )
        """,
        project=True,
    ),
    # What a team decides, and one person only does: "we dropped GraphQL", "we are moving to Go".
    frame(
        "decision",
        r"""
        (?:have |had )?(?:finally |now |just |already |all |eventually |officially )*
        (?:
            agreed (?:as a \w+ |together )?(?:to|on|that|upon|not to)|
            voted (?:for|to|against)|committed to|concluded that|dropped|rejected|chose|
            chosen|picked|selected|switched (?:from .{2,30} )?to|
            migrated (?:from .{2,30} )?to|killed|scrapped|shelved|postponed|
            (?:am|will be|going to be) (?:
                dropping|adopting|keeping|postponing|shelving|scrapping|retiring|killing|
                standardi[sz]ing on|
                (?:switching|moving|migrating)[ ](?:(?:away )?from .{2,30} |over )?to
            )|
            will[ ]
            (?:use|drop|adopt|keep|switch to|move to|postpone|migrate to|standardi[sz]e on)
        )(?![\w-])(?!
            [ ](?:
                it|this|that|these|those|them|you|your|if|whether|yet|what|which|how|both|off|
                by|out|in|out of|a (?:puppy|dog|cat|kitten|baby|child|girl|boy)
            )\b
        )
        """,
        project=True,
        team=True,
    ),
)
LEARNING: Final = (
    # What somebody learns: "I am learning Greek".
    frame(
        "goal",
        rf"""
        am {ADVERBIAL}(?:learning|taking (?:\w+ )?(?:lessons|classes|courses))\b
        (?! (?:about this|a lot from|this)\b)
        """,
        past=False,
    ),
)
