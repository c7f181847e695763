"""The words of the English grammar, as data. Every table may grow; rare senses stay out."""

from typing import Final

from app.language.keyless.patterns import joined

ADVERBS: Final = joined(r"""
    really|also|actually|currently|presently|still|just|already|absolutely|mostly|generally|
    mainly|recently|finally|now|definitely|personally|truly|deeply|totally|completely|quite|
    pretty|very|so|kind of|sort of|kinda|simply|strongly|particularly|especially|originally|
    basically|officially|always|never|usually|often|normally|typically|regularly|sometimes|
    occasionally|rarely|seldom|mostly|frequently|almost always|nearly always|hardly ever|
    tend to|both|each|do|severely|highly|mildly|happily|secretly|only|no longer|not|even|all|
    even|to be honest|too|slightly|extremely|incredibly|genuinely|temporarily|permanently|
    not really|primarily|long|at least|exclusively|strictly|constantly|religiously|recently|
    lately|eventually|once|barely
    """)
FREQUENCY: Final = (
    r"always|usually|often|normally|typically|regularly|frequently|rarely|seldom|hardly ever|never"
    r"|sometimes|occasionally|constantly|generally|tend to|almost always|nearly always|religiously"
    r"|every (?!time)(?:other |single |second |"
    r"few |[0-9]+ )?\w+|each (?:day|morning|evening|"
    r"night|week|month|year)"
    r"|(?:once|twice|thrice|(?:[0-9]+|two|three|four|five|six|seven|a few|several|many) times) "
    r"(?:a|an|per|every|each) \w+|daily|weekly|monthly|yearly|nightly"
    r"|on (?:most |my )?(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)days?(?<=s)|on (?:mon|tues|wednes|thurs|"
    r"fri|satur|sun)day (?:mornings|afternoons|evenings|"
    r"nights)|on week(?:ends|days|nights)"
    r"|on (?:\w+days),? (?:and|or) \w+days|at week-?ends|"
    r"most (?:days|mornings|evenings|nights|weeks"
    r"|weekends|sundays|saturdays)|in the (?:morning|evening|afternoon)s?|at night"
    r"|before (?:bed|work|breakfast|sleeping|going to bed)|"
    r"after (?:work|dinner|lunch|breakfast|school)"
    r"|all the time|by default|as a rule|whenever i|"
    r"when(?:ever)? i (?:travel|fly|work|cook|code|"
    r"write|read|am)"
    r"|first thing|in my (?:free|spare) time|for (?:breakfast|lunch|dinner) "
)
LIKING: Final = joined(r"""
    like|love|enjoy|prefer|adore|hate|dislike|detest|loathe|despise|cannot resist|
    cannot stand(?! (?:here|there|up|on|in|for|long))|cannot bear|favour|favor|appreciate|
    could not live without|cannot live without|lean towards|swear by|have a soft spot|
    have a weakness for|cannot get enough|have a thing for|would choose|would pick|
    care (?:a lot |deeply |more |about)|do not mind|do not care for|am not crazy about|
    root for|support|go for|cannot function without
    """)
LIKING_STATES: Final = (
    r"(?:a |an )?(?:(?:big|huge|massive|real|total|"
    r"lifelong|long-?time|avid|die-?hard|great|proud) )*"
    r"(?:fan of|lover of|sucker for|enthusiast|aficionado|"
    r"\w+ (?:fan|lover|enthusiast|person|buff|nerd))"
    r"|into|fond of|keen on|crazy about|passionate about|obsessed with|interested in|addicted to"
    r"|partial to|big on|nuts about|mad about|hooked on|allergic to the idea|more of an? |tired of"
    r"|sick of|a (?:coffee|tea|cat|dog|morning|night|beach|mountain|city) person|a night owl"
    r"|an early bird|team "
)
TASTE_VETO: Final = joined(r"""
    not to (?:say|answer|share|talk)|it\b|this\b|that\b|these\b|those\b|you\b|your\b|
    how (?:you|this|that|it)\b|what (?:you|i see)|
    the (?:
        way|idea|sound|look|first|second|third|last|latter|former|new|answer|explanation|
        suggestion|result|one
    )\b|
    them\b|both\b|him\b|her\b|
    to (?:know|see|ask|add|point|check|thank|say|mention|have it|get a|hear|book|order)\b|
    if you|where (?:this|you)|waiting\b|everything\b|all of (?:it|this|that|them)|
    my (?:life|code)\b|option \w+|
    (?:the )?(?:first|second|third|last|original|previous|other) \w*|the (?:\w+ )?one\b|
    the version|version \w+|how \w+ (?:the|it|this|that)|
    an? (?:list|summary|example|quick|recipe|table|few)\b|some\b|
    (?:an? )?\w+ (?:version|answer|recipe|example|summary|overview|explanation)\b
    """)
TRANSIENT_STATES: Final = joined(r"""
    tired|hungry|thirsty|busy|here|there|back|ready|sorry|sure|glad|confused|stuck|late|lost|
    happy|sad|exhausted|bored|curious|afraid (?:i|that|so|not)|certain|done|fine|ok|okay|
    good\b(?! (?:at|with))|great\b(?! (?:at|with))|well|sick(?! of)|ill|cold|hot|angry|mad at|
    upset|annoyed|excited|nervous|anxious|worried|aware|able|unable|about to|home|outside|away|
    offline|online|free (?:now|today|at|on|this|tomorrow)|available|supposed|trying|looking|
    wondering|asking|thinking|waiting|getting|having|sitting|standing|talking|calling|
    writing to|running (?:late|out|into|behind)|using this|doing|not sure|feeling|grateful|
    thankful|impressed|surprised|shocked|disappointed|frustrated|overwhelmed|stressed|jealous|
    proud of you|sleepy|drunk|freezing|starving|dying|dead|kidding|joking|serious|right|wrong|
    mistaken|guessing|assuming|all (?:set|ears|good)|off to|
    on (?:it|my way|the|a (?:train|bus|plane|call|break|flight))|
    at (?:the|a|home|work|my desk|school)|
    in (?:
        the|a (?:meeting|hurry|rush|bad|good|call|cab|taxi)|trouble|line|bed|traffic|
        love with (?:this|it|the)
    )|
    almost (?:done|there|finished)|seeing|reading (?:this|the|your|about)|close|alone|
    new to this|following|referring|having|hoping|struggling|dealing|
    so (?:done|over|confused|sorry|glad|happy|tired|bored)|tempted|considering|over (?:it|this)|
    out of|open to|willing|just (?:saying|curious|asking|checking|wondering|testing)|blown|
    speechless|better|yours|the one|like\b|
    going (?:crazy|insane|nuts|back|home|out|with you|through|over)|
    an? (?:idiot|fool|genius|mess|wreck|goner|bit|little|lot|tad|minute|few)\b
    """)
TRANSIENT_THINGS: Final = joined(r"""
    question|questions|problem|issue|headache|idea|meeting|doubt|bug|error|feeling|look|chat|
    call|minute|moment|second|sec|few minutes|hour|plan|list|table|file|function|class|script|
    csv|json|dataframe|dataset|string|array|document|text|pdf|image|picture|query|log|logs|
    point|hunch|suggestion|request|favou?r|choice|option|time|fun|trouble|difficulty|no idea|
    no clue|no time|no problem|no words|nothing|something|everything|task|assignment|homework|
    essay|paragraph|sentence|proposal|draft|email|message|flight|interview|date|cold|fever|sore|
    stomach|hangover|guess|theory|deadline|presentation|exam|test|appointment|million|billion|
    case|scenario|formula|column|row|button|page|form
    """)
TODAY: Final = joined(r"""
    \b(?:
        today|tonight|right now|rn|at the moment|this (?:morning|afternoon|evening|very)|
        for now|in a (?:minute|moment|second|sec|bit)|an hour ago|minutes? ago|hours? ago|
        just now|real quick|asap|atm
    )\b
    """)
AT_HAND: Final = joined(r"""
    \b(?:this|these|those) (?!
        year|month|week|weekend|spring|summer|autumn|fall|winter|semester|term|quarter|season|
        morning|evening|coming|kind|type|sort|time of
    )|
    \b(?:this|these|those)$|(?<!when )(?<!if )(?<!that )\byou\b|\byour\b
    """)
"""What points at the conversation or the screen, and so says nothing that lasts."""
TECHNICAL: Final = joined(r"""
    \b(?:run|running|ran|try|open|click|execute|call|import|restart) (?:it|this|that)\b|
    \b(?:the|a|an|my|some|both|two|all|another|each|every) (?:[\w-]+ )?
    (?:
        websites?|sites?|calls?|channels?|cart|queue|docs|servers?|files?|functions?|loops?|
        tables?|columns?|rows?|scripts?|commands?|methods?|class|variables?|parameters?|query|
        branch|commits?|comments?|repo|container|containers|package|packages|
        (?<!driving )(?<!bar )(?<!blood )(?<!road )(?<!theory )(?<!citizenship )tests?|
        outputs?|inputs?|buttons?|page|tab|window|errors?|port|process|task|build|node|pod|
        endpoints?|request|requests|response|link|image|list|cable|link|thread|ticket|message|
        cell|sheet|document|chat|conversation|prompt|folder|directory|header|footer|value|
        values|string|array
    )(?=
        $|
        [ ,.](?!
            team|engineer|admin|developer|company|architect|manager|designer|store|shop|
            for (?:women|men|kids)
        )
    )
    """)
RELATIONS: Final = joined(r"""
    wife|husband|partner|spouse|girlfriend|boyfriend|fiance|fiancé|fiancee|fiancée|mother|mom|
    mum|mommy|father|dad|parents|brother|brothers|sister|sisters|siblings?|son|sons|daughter|
    daughters|kid|kids|child|children|baby|twins?|grandmother|grandma|granny|grandfather|
    grandpa|grandparents|uncle|aunt|cousin|niece|nephew|stepson|stepdaughter|stepmother|
    stepfather|stepbrother|stepsister|mother-in-law|father-in-law|sister-in-law|
    brother-in-law|in-laws|toddler|newborn|grandson|granddaughter|grandkids|family|ex-wife|
    ex-husband|ex|boys|girls|old man|other half|better half|hubby|missus|folks|eldest|
    firstborn|nan|nana|gran|gramps|auntie|godmother|godfather|fiancé|stepkids|
    foster (?:son|daughter|child|kids?)|twin brother|twin sister
    """)
PETS: Final = joined(r"""
    dog|dogs|puppy|cat|cats|kitten|pet|pets|horse|parrot|rabbit|hamster|goldfish|turtle|
    tortoise|budgie|guinea pig|guinea pigs|bird|lizard|snake|pony|labrador|poodle|beagle|corgi|
    retriever|bunny|ferret|gecko|chickens|canary
    """)
ACQUAINTANCES: Final = joined(r"""
    boss|best mate|best buddy|bestie|best man|manager|supervisor|best friend|roommate|
    flatmate|housemate|team lead|tech lead|mentor|therapist|doctor|dentist|landlord|landlady|
    neighbou?r|assistant|co-?founder|business partner|advisor|adviser|trainer|coach|teacher|
    colleague|coworker|godson|goddaughter|nanny|vet|accountant|lawyer|piano teacher
    """)
OWN_NOUNS: Final = joined(r"""
    name|first name|last name|full name|middle name|surname|nickname|age|birthday|bday|b-day|
    birth ?date|date of birth|birth year|hometown|home town|home|native language|
    mother tongue|first language|job|occupation|profession|day job|job title|title|role|
    position|employer|company|startup|business|workplace|email|email address|phone number|
    number|time ?zone|address|pronouns|blood type|height|weight|shoe size|star sign|
    zodiac sign|nationality|citizenship|religion|diet|degree|major|university|school|college|
    hobby|hobbies|instrument|anniversary|wedding anniversary|passion|passions|specialty|
    speciality|field|car|bike|phone|laptop|computer|editor|ide|os|operating system|keyboard|
    team|department|office|commute|github handle|github username|github|twitter handle|
    username|handle|user name|user id|ethnicity|heritage|background|family|thesis|salary|rank|
    pace|resting heart rate|car plate|licen[cs]e plate|apartment|flat|house|skin type|
    eye color|hair color|clothing size|size|comfort food|usual order|go-to \w+|
    guilty pleasure|setup|stack|tech stack|main language|working hours|office hours
    """)
GOAL_NOUNS: Final = joined(r"""
    (?:main |big |biggest |long-?term |short-?term |next |ultimate |current |new |new year's )*
    (?:goal|aim|dream|plan|plans|ambition|objective|target|resolution|bucket list|intention)
    (?: (?:for|this|in) [\w ]{2,20}?)?
    """)
LIMIT_NOUNS: Final = joined(r"""
    (?:max(?:imum)? |total |monthly |weekly |hard |final |strict |current |own )*(?:
        budget|deadline|limit|spending limit|allergies|allergy|dietary restrictions?|
        restrictions?|requirements?|constraints?|upper limit|price limit|cut-?off
    )
    """)
PROJECT_NOUNS: Final = joined(r"""
    (?:\w+ ){0,2}?(?:
        project|team|company|startup|app|application|product|codebase|code base|code|repo|
        repository|monorepo|backend|back end|back-end|frontend|front end|front-end|website|site|
        api|apis|service|services|stack|tech stack|infrastructure|infra|database|db|server|
        servers|pipeline|pipelines|platform|system|systems|org|organization|organisation|
        department|ci|ci pipeline|release|releases|deployment|deployments|fiscal year|sprint|
        sprints|office|stand-?ups?|standup|style guide|coding standard|policy|microservices|
        tests|test suite|cluster|data warehouse|build|mobile app|web app|cloud provider|client|
        clients|customers|data|docs
    )
    """)
LANGUAGES: Final = joined(r"""
    english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|czech|
    slovak|hungarian|romanian|bulgarian|greek|turkish|arabic|hebrew|persian|farsi|hindi|urdu|
    bengali|tamil|telugu|punjabi|marathi|gujarati|chinese|mandarin|cantonese|japanese|korean|
    vietnamese|thai|indonesian|malay|tagalog|filipino|swahili|yoruba|igbo|hausa|zulu|swedish|
    norwegian|danish|finnish|icelandic|estonian|latvian|lithuanian|croatian|serbian|slovenian|
    bosnian|albanian|catalan|basque|galician|irish|welsh|latin|esperanto|sign language|asl|bsl|
    hokkien|amharic|somali|georgian|armenian|nepali|afrikaans|xhosa|mongolian|kazakh|languages
    """)
ORDERS: Final = joined(r"""
    answer|reply|respond|write|speak|talk|use|add|include|keep|call|address|format|explain|give|
    show|translate|send|cite|put|start|end|ask|check|remind|suggest|recommend|mention|assume|
    make|be|stick|sign|double-?check|avoid|round|convert|provide|apologi[sz]e|summari[sz]e|
    comment|indent|wrap|refer|quote|list|skip|leave|prefer|go|tell|offer|schedule|book|order|
    push|commit|deploy|run|delete|change|touch|edit|suggest
    """)
ANSWER_THINGS: Final = joined(r"""
    answers?|replies|reply|responses?|explanations?|emojis?|bullet(?: |-)?points?|bullets|
    jargon|markdown|tables?|sentences|summaries|messages|code comments|comments|metric|celsius|
    fahrenheit|imperial|exclamation marks?|headings|headers|examples|formal|informal|small talk|
    apologies|apologi[sz]e|disclaimers?|units|24-hour|type hints|tabs|spaces|british english|
    american english|spelling|dates|links|sources|citations|em dashes|emoticons|latex
    """)
NAMES_NOT: Final = frozenset(
    ["vegan", "vegetarian", "muslim", "jewish", "christian", "catholic", "hindu", "buddhist",
     "atheist", "married", "single", "divorced", "german", "french", "english", "british",
     "american", "chinese", "japanese", "korean", "indian", "italian", "spanish", "mexican",
     "canadian", "australian", "irish", "scottish", "welsh", "dutch", "belgian", "swiss",
     "austrian", "polish", "czech", "russian", "ukrainian", "turkish", "greek", "swedish",
     "norwegian", "danish", "finnish", "portuguese", "brazilian", "african", "asian", "european",
     "egyptian", "nigerian", "kenyan", "not", "so", "very", "really", "gay", "bi", "straight",
     "queer", "trans", "deaf", "blind", "left", "right", "diabetic", "allergic", "autistic",
     "adhd", "ok", "okay", "sorry", "done", "new", "good", "gluten", "lactose", "colorblind",
     "ready", "back", "here", "sure", "glad", "tired", "hungry", "mormon", "israeli", "iranian",
     "iraqi", "lebanese", "syrian", "thai", "filipino", "vietnamese", "taiwanese", "retired",
     "unemployed", "just", "still", "also", "currently", "usually", "monday", "tuesday",
     "wednesday", "thursday", "friday", "saturday", "sunday", "type", "using", "python", "java"]
)  # fmt: skip
FIGURATIVE: Final = joined(
    r"""
    (?:
        mondays?|bad|bull\w*|bs|crap|idiots?|work|working|meetings|drama|people|stupid\w*|
        exercise|responsib\w+|mornings|bugs|the idea|small talk|commitment|effort|fun|change|
        nonsense|everything you|adulting|math|bureaucracy|my (?:job|boss|ex|work)
    )\b
    """
)
"""What one is allergic to in jest only."""
OFTEN: Final = (
    "always|usually|often|normally|typically|regularly|frequently|rarely|seldom|hardly ever|never"
    "|sometimes|occasionally|constantly|generally|tend to|almost always|nearly always|religiously"
    "|mostly|almost never|never ever"
)
"""Adverbs that make what follows a habit."""
RECURRING: Final = joined(
    r"""
    every (?!time)(?:other |single |second |few |[0-9]+ )?\w+|
    each (?:day|morning|evening|night|week|month|year|spring|summer|autumn|winter)|
    (?:once|twice|thrice|(?:[0-9]+|two|three|four|five|six|seven|a few|several|many) times)
    (?:[ ]a|[ ]an|[ ]per|[ ]every|[ ]each)[ ]\w+|
    daily|weekly|monthly|yearly|nightly|at week-?ends|
    on (?:most |my )?(?:mon|tues|wednes|thurs|fri|satur|sun)days|
    on week(?:ends|days|nights)|
    most (?:days|mornings|evenings|nights|weeks|weekends|sundays|saturdays)|
    (?:mornings|evenings|weekends|(?:mon|tues|wednes|thurs|fri|satur|sun)days)|
    in the (?:morning|evening|afternoon)s?|at night|whenever i|in my (?:free|spare) time|
    before (?:bed|work|breakfast|sleeping|going to bed)|
    after (?:work|dinner|lunch|breakfast|school)|first thing|for (?:breakfast|lunch|dinner)|
    when(?:ever)? i (?:travel|fly|work|cook|code|write|read)
    """
)
"""Times that come again."""
MUSING: Final = (
    r"(?:wondered|wonder|thought|think|wanted|want|been|had|felt|feel|know|knew|understand|get|got"
    r"|see|saw|find|found|forget|said|say|told|good|nice|great|fun|happy|glad|welcome|mind|heard"
    r"|liked|loved|hated|seen|tried|will|would|could|should|can|mean|meant|fail|fails|works?|is|was"
    r"|the|a|an|in|on|at|up|there|here|so|too|again|believe|believed|needed|need|dreamed|knew)\b"
)
"""What is no habit even with "always" before it: "I always wondered"."""
PERSONAL: Final = joined(
    r"""
    \b(?:mov(?:e|ed|ing) (?:back )?to (?-i:[A-Z])\w*|moved? in|child|children|baby|kids?|wedding|
    honeymoon|married|marry|engaged|divorced?|house|home|apartment|flat|dog|cat|puppy|kitten|
    vacation|holidays?|trip|retire|adopt(?:ed|ing)?|family|pregnan\w+|dinner|garden|kitchen|parents|
    honeymooning|expecting|couch|car|bed|christmas|daughter|son|twins|cruise|camping)\b
    """
)
"""What "we" does at home and not at work."""
CONCRETE: Final = frozenset({"event", "fact", "skill", "goal", "habit", "decision"})
"""Types of statements that are often about a file or an error."""
NATIONALITIES: Final = (
    "german|french|dutch|greek|swiss|czech|thai|welsh|iraqi|israeli|pakistani|bengali|bangladeshi"
    "|nepali|somali|kuwaiti|qatari|emirati|saudi|yemeni|omani|filipin[ao]|afghan|kazakh|uzbek|tajik"
    "|kyrgyz|turkmen|cypriot|icelandic|slovak|croat|serb|slovene|latvian|basque|catalan|kurd|kurdish"
    "|malagasy|swazi|congolese|ivorian|mexican|american|african|korean|german|texan|hawaiian|kiwi|aussie"
    "|quebecois|scouse|cornish|inuit|maori|māori|cherokee|navajo|latin[ao]|hispanic|asian|roma"
)
