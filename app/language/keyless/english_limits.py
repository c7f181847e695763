"""What somebody says in English that binds them: allergies, diets, budgets, duties."""

from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_frames import ADVERBIAL, frame
from app.language.keyless.patterns import compiled

KEPT: Final = (
    # What somebody keeps to or needs: "I keep kosher", "I need step-free access".
    frame(
        "constraint",
        r"""
        (?:
            keep (?:kosher|halal)|
            am on (?:
                blood thinners|medication|antidepressants|insulin|the pill|ssris|antibiotics|
                beta blockers
            )|
            avoid (?!it\b|this\b|that\b|using\b|the\b)\S.+|
            need (?:
                wheelchair|step-free|a wheelchair|an accessible|gluten-free|vegan|vegetarian|
                kosher|halal|subtitles|large print|captions
            )\b.*
        )
        """,
    ),
)
LIMITS: Final = (
    # What somebody is not: only what they were before and are no more says something.
    frame(
        None,
        r"""
        am not (?:really |actually |strictly |even |technically )?(?:an? )?(?:
            vegan|vegetarian|allergic|diabetic|lactose|gluten|celiac|coeliac|pregnant|religious|
            pescatarian|intolerant|deaf|blind|autistic
        )\b(?!.*\b(?:any ?more|any longer|after all)\b)
        """,
    ),
    # What the body does not allow: "I am allergic to nuts", "I am on a low-carb diet".
    frame(
        "constraint",
        rf"""
        (?:am|have been|was diagnosed as|have always been) {ADVERBIAL}
        (?:
            allergic(?!$)(?! to {words.FIGURATIVE})|intolerant|lactose|gluten|celiac|coeliac|
            diabetic|colou?r-?blind|pregnant|[0-9]+ (?:weeks|months) pregnant|breastfeeding|
            a type|type [12]|asthmatic|epileptic|dyslexic|deaf|blind|hard of hearing|
            a wheelchair user|in a wheelchair|
            on (?:a|the)[ ]
            (?:strict |low|gluten|keto|dairy|vegan|diet|ketogenic|mediterranean|special)|
            anaemic|anemic|hypertensive|immunocompromised|claustrophobic|nearsighted|
            visually impaired|autistic|sensitive to|prone to|bad with|recovering from
        )
        """,
    ),
    # A diet: "I have been vegan since May", "I went halal".
    frame(
        "constraint",
        rf"""
        (?:am|have been|went|became|turned|am a|have been a|am an?) {ADVERBIAL}(?:(?!going)\w+ )?(?:
            vegan|vegetarian|pescatarian|flexitarian|halal|kosher|teetotal|teetotaler|sober|
            celiac|coeliac|diabetic
        )\b(?! (?:recipe|option|version|restaurant|dish|food|meal|menu|friend|alternative)s?\b)
        """,
        may_retract=True,
    ),
    # An illness or a weakness: "I have a severe nut allergy", "I have a bad knee".
    frame(
        "constraint",
        r"""
        have (?:
            a |an |got a |severe |mild |bad |my |both |some |chronic |high |low |type [12] )*(?:
            severe |mild |bad |nut |peanut |food |shellfish |pollen |cat |strong |serious |
            dairy |gluten |wheat |soy |egg |\w+ )?(?:
            allergy|allergies|intolerance|sensitivity|celiac|coeliac|diabetes|asthma|adhd|
            epilepsy|dyslexia|hypertension|blood pressure|migraines?|ibs|arthritis|crohn's|
            anxiety|phobia|fear of \w+|condition|disability|hearing loss|cholesterol|insomnia|
            back pain|bad (?:knee|knees|back)|bad knees?|knee (?:injury|problems?)|chronic \w+|
            pacemaker|lupus|eczema|glaucoma|hemophilia|psoriasis|tinnitus|anemia
        )\b
        """,
    ),
    # What somebody cannot or must not do: "I cannot eat gluten", "I must not drive".
    frame(
        "constraint",
        r"""
        (?:
            cannot|must not|can not|can never|am not allowed to|am not supposed to|should not|
            may not
        ) (?:really |safely |properly )?(?:
            have|eat|drink|digest|tolerate|consume|take|use|touch|be around|work|travel|fly|
            lift|spend|afford|meet|do|go|wear|stay|attend|sleep (?:without|on)|start|run|walk|
            exceed|leave|commute|install|share|upload|store|drive|swim|climb|kneel|
            (?:stand|sit) (?=for|long|up|still)|handle|
            bend|hear|see (?:well|colou?rs|red|far)|get up|reach|process|raise|pay|use
        ) (?!
            it\b|this\b|that\b|my head|
            the (?:file|page|site|app|server|command|test|meeting|call|link|button|password)\b|
            you\b|anymore\b|to\b|in\b|into\b|wrong\b|through\b
        )(?!.*\b(?:error|command|right now|yet|working)\b)
        """,
    ),
    # "We are not allowed to send data abroad", "I am forbidden to lift".
    frame(
        "constraint",
        r"""
        am (?:
            not (?:legally )?(?:allowed|permitted|supposed)|forbidden|
            legally (?:required|obliged)|contractually bound
        )(?:[ ]to|[ ]from) (?!(?:know|say|tell|be here|ask)\b)\w+
        """,
        project=True,
    ),
    # The one thing that is possible: "I can only work mornings".
    frame(
        "constraint",
        r"""
        can only (?!
            see|find|imagine|think|hope|get|assume|guess|say|ask|tell|do (?:it|this)|
            use (?:it|this)
        )
        """,
    ),
    # What is never eaten or drunk: "I do not eat pork".
    frame(
        "constraint",
        r"""
        (?:do not|never|no longer) (?:eat|drink|consume|touch) (?!
            much|breakfast|lunch|dinner|a lot|enough|out|and|the|it|this|that|your|like|for|until
        )\S
        """,
    ),
    # The only thing that is: "I only drink oat milk".
    frame("constraint", r"(?:only|strictly) (?:eat|drink|consume) \S"),
    # The little that there is: "I only have 30 minutes a day", "we only have two testers".
    frame(
        "constraint",
        r"""
        (?:only have|have only(?: got)?|only get|have at most|have no more than|live on|get by on)
        (?: about| around)? (?:[$€£]? ?[0-9]+|an?|one|two|three|four|five|ten|half an|thirty|twenty)
        .{0,12}(?:hours?|minutes?|days?|euros?|dollars|pounds|bucks|[$€£]|evenings?|nights?|testers|
        people|developers|engineers|functioning|working|good|kidney|hand|arm|eye)\b
        (?!.*\b(?:left|until|before (?:the|my)|right now)\b)
        """,
        project=True,
    ),
    # Duties: "I have to be home by six", "we must support Python 3.8".
    frame(
        "constraint",
        r"""
        (?:have to|must|need to|am required to|am supposed to) (?:
            always |strictly |absolutely |really )?(?:
            avoid|take (?:my |insulin|medication|meds|pills|a pill|blood|it easy)|wear|
            be (?:home|back home|at work|in bed|in the office|at the office)|
            pick up (?:my|the kids)|stick to|stay under|stay below|keep (?:my|a|the)|
            follow (?:a|an|the)|limit|watch my|inject|
            eat (?:gluten|low|small|every|halal|kosher)|
            use (?:a|an|only|python|java|windows|linux|the company)|
            work (?:nights|weekends|saturdays)|submit|hand in|deliver|
            finish [\w ]+ (?:by|before)|support|comply|run on|
            be (?:finished|done|gdpr|hipaa|compliant|backwards?|accessible)|target
        )\b
        """,
        project=True,
    ),
    # What a team must not do: "we cannot deploy on Fridays".
    frame(
        "constraint",
        r"""
        (?:cannot|must not|must|can) (?:
            upgrade (?:to|our|the|any|past|beyond)|deploy|use|store|change|move|migrate|ship|
            break|merge|release|rely on|expose|exceed|touch
        ) (?!it\b|this\b|that\b|you\b|the (?:app|command|button)\b)
        """,
        lead=compiled(
            r"""
            \b(?:
                before|until|in production|because|anything|any|gpl|only|on fridays?|without|
                outside|data
            )\b
            """
        ),
        project=True,
    ),
)
