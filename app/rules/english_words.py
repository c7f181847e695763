"""The words of the English grammar, as data. Every table may grow; rare senses stay out."""

from typing import Final

from app.rules.patterns import joined

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
SKILL_VERBS: Final = joined(r"""
    drive|swim|cook|bake|sing|dance|play(?= \S)|speak(?! (?:for|to|of|up|out|about))|code|
    program|type|ride|ski|snowboard|skate|surf|juggle|draw|paint|knit|sew|whistle|sail|dive|
    fly a|understand|
    read (?:music|sheet|arabic|chinese|japanese|korean|hebrew|latin|greek|russian)|
    write (?:in )?(?:python|sql|java|code)|weld|solder|climb|crochet|
    do (?:a )?(?:handstand|backflip|magic|calligraphy|cpr)|touch type|touch-type|beatbox|
    do the splits|hold my breath|tell|solve a rubik|lift|bench|deadlift|sign
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
HABIT_VERBS: Final = joined(r"""
    wake|get up|go|eat|drink|run|jog|swim|cycle|bike|walk|commute|read|write|cook|bake|listen|
    watch|play|meditate|exercise|train|work out|lift|practice|practise|do|take|make|have|use|
    start|begin|sleep|nap|stay|travel|fly|drive|ride|call|visit|meet|spend|journal|study|check|
    buy|order|shop|skip|avoid|fast|bring|pack|pay|save|commit|test|review|deploy|push|keep|
    leave|arrive|finish|work|attend|teach|volunteer|hike|climb|garden|knit|paint|draw|stretch|
    shower|brew|smoke|vape|snack|batch|plan|prep|wear|carry|book|clean|do laundry|binge|stream|
    game|code|set|turn|put|add|write down|sit|stand|speak|talk|follow|sign|name|format|document|
    backup|back up|rotate|eat out|order in|help|coach|babysit|foster|pick|drop|walk my|feed|
    water|scroll|post|tip|donate|tutor|mentor|pray|worship|attend|rest|hit|grab|sing|dance|row|
    box|surf|ski|fish|hunt|camp|get|wake up|log|track|count|try to
    """)
STEADY_HABITS: Final = joined(r"""
    (?:
        jog|meditate|journal|exercise|commute|work out|volunteer|smoke|vape|snack|garden|
        cycle to|bike to|walk to|
        work (?:
            from home|remotely|remote|nights|part-?time|full-?time|night shifts|shifts|
            weekends|freelance
        )|
        go (?:
            running|swimming|jogging|hiking|climbing|to the gym|to church|to bed|to yoga|
            to therapy|cycling|fishing|dancing|for (?:a )?(?:walk|run|swim)s?
        )|
        get up (?:at|early|late|around)|wake up (?:at|early|late|around)|
        do (?:
            yoga|pilates|crossfit|intermittent fasting|karate|judo|boxing|meal prep|parkour|
            bjj|taekwondo
        )|
        practi[cs]e (?:yoga|meditation|piano|guitar|the)|collect|
        play (?:the )?(?:
            tennis|football|soccer|basketball|chess|golf|badminton|volleyball|hockey|squash|
            padel|in a|board games|video games|d&d
        )|
        babysit|foster|skip breakfast|bake my own|brew my own|make my own|roast my own|
        sew my own|grow my own|
        take (?:public transport|the (?:[\w:.]+ )?(?:bus|train|subway|tube|metro|tram|ferry) )|
        listen to (?:podcasts|audiobooks|music)|
        read (?:before|a lot|mostly|mainly|manga|novels|sci)|
        write (?:poetry|poems|songs|a blog|fiction)|run marathons|do a lot of|
        spend (?:my|most|every|half|too|a lot|hours)|
        sleep (?:on|with|until|around|about|only|[0-9]|poorly|badly|like)|
        drink (?:a lot|about|around|two|three|four|[0-9]|mostly|only|my coffee|oat)|
        eat (?:a lot|out|mostly|only|late|early|halal|kosher|meat)|take my (?:coffee|tea)|
        take (?:insulin|medication|meds|vitamins|antidepressants)|deploy (?:every|on)|fast[ ]
    )
    """)
FACT_VERBS: Final = joined(r"""
    wear (?:glasses|contacts|contact lenses|hearing aids|a hearing aid|braces|size|a size)|
    run (?:everything|on|all our|our)|work (?:at|for|as|in|with|on the|out of)|
    own (?!(?:up|this|that|it|my|the mistake|goal)\b)|belong to|
    run (?:a|an|my|the|our) (?!marathon|5k|10k)|manage|lead|head|teach|attend|study|major in|
    minor in|drive (?:a|an|my) (?!hard|point|wedge)|ride (?:a|an|my)|weigh|stand [0-9]|
    come from|hail from|rent|
    share (?:a|an|my) (?!(?:\w+ )?(?:link|file|screenshot|story|thought|few|concern)\b)|
    freelance|serve (?:as|in|on)|edit|publish|report to|identify as|go by|suffer from|
    practice (?:law|medicine)|practise (?:law|medicine)|co-?own|co-?founded|research|
    specialize in|specialise in|coach|breed|keep (?:bees|chickens|goats|pigeons)|
    raise (?:chickens|goats|sheep|bees|cattle|kids|children|my|our|two|three|alpacas|horses)|
    homeschool|sell|design|maintain|contribute to|make (?:a living|my living)|earn|
    volunteer (?:at|for|with)|moonlight|represent|supervise|mentor|
    use (?:only |mostly |mainly |both )?(?:
        (?-i:[A-Z])|
        (?:a|an|my) (?:[\w-]+ ){0,2}?(?:
            phone|mac\w*|pc|laptop|iphone|android|wheelchair|cane|walker|hearing aid|inhaler|
            cpap|keyboard|kindle|bike|planner|journal|pixel|chromebook|thinkpad|prosthe\w+
        )|
        (?!
            (?:
                it|this|that|these|those|recursion|regex|whatever|both|some|print|sudo|the|a|
                an|my|our|your|one|two|to|all|any|more|less|chatgpt|ai
            )\b
        )[\w.+#-]+(?: (?:and|or|with|plus) [\w.+#-]+)?(?: (?:for|at|as|on|every) .+)?$
    )|
    get (?:motion|car|sea|air)[ -]?sick|get migraines|subscribe to|bank with|
    code in (?!(?:the|a|my|your|peace)\b)|deploy (?:to|on|with|via|from)|ship (?:to|with)|
    host (?:our|my|everything|all)|program in|
    (?:
        photograph|paint|bake|brew|film|repair|restore|illustrate|tutor|train|groom|grow|
        sculpt|weave|carve|tune
    )[ ](?!(?:the|this|that|it|a|an|my|your|some|these|those)\b)\w+s\b|
    develop|write for|do (?:research|freelance)|operate
    """)
EVENT_VERBS: Final = joined(
    r"""
    moved(?!
        [ ]on| it| the| this| my (?:file|code)| (?:a|some|all|everything)\b|
        [ ]to (?:the|a|an)(?:new |next |other |different )?
        (?:line|page|tab|folder|branch|step|chapter|section|question)\b
    )|
    relocated|graduated|
    got (?:
        married|engaged|divorced|promoted|hired|fired|laid off|accepted|
        into (?:(?:\w+ )?(?:school|college|university)|(?-i:[A-Z])[\w'-]*)|
        a (?:new )?
        (?:job|dog|cat|kitten|puppy|promotion|raise|tattoo|degree|scholarship|car|offer)|
        my (?:
            degree|driver|driving|licen[cs]e|phd|first|green card|citizenship|diploma|visa|
            results
        )|
        diagnosed|the job|covid|robbed|an offer|vaccinated|rid of
    )|
    married|divorced|
    bought (?:a|an|my|our|another|the (?:house|flat|apartment|car|shop|farm|place)) ?
    (?!
        (?:\w+ )?(?:
            ticket|coffee|sandwich|drink|beer|gift|present|card|cable|charger|bottle|pizza|
            wrong|bag|snack|shirt|pack|box|copy|few|bunch|couple|lot
        )s?\b
    )|
    adopted|
    started (?:
        at|as|with|working|learning|studying|university|college|school|therapy|playing|
        taking (?:\w+ )?(?:lessons|classes|courses|insulin|medication|meds|antidepressants)|
        (?:a|an|my|our) (?:new |own |first |small |part-time )*(?:\w+ )?
        (?:
            job|business|company|startup|blog|podcast|degree|phd|masters?|course|diet|family|
            relationship|band|career|internship|apprenticeship|position|role|channel|garden|
            treatment|training|club|shop|farm|chapter|life
        )
    )|
    joined(?!
        [ ](?:the|a|this|two|both) (?:\w+ )?(?:
            tables?|call|meeting|server|chat|waitlist|queue|lists?|strings?|channel|room|
            lobby|conversation|discord|datasets?
        )\b
    )|
    quit(?! (?:the|and) )|resigned|retired|
    left (?:
        my[ ]
        (?:job|husband|wife|position|role|company|partner|church|girlfriend|boyfriend|career)|
        the (?:
            company|army|navy|force|church|firm|team|bank|party|band|choir|club|orchestra|gym|
            union|board|industry|profession|faith|league|committee|association
        )|
        a job|(?-i:[A-Z])[\w'-]*
    )|
    switched (?:to|jobs|from|companies)|
    changed (?:my (?:name|job|career|major|surname)|jobs|careers|schools)|
    (?:finished|completed) (?:my|a|an|the|our) (?:\w+ ){0,2}?
    (?:
        degree|phd|thesis|dissertation|studies|marathon|masters?|residency|apprenticeship|
        course|bootcamp|novel|book|treatment|chemo\w*|military service|training|internship|
        triathlon|renovation|school|service|half|10k|5k|ironman
    )|
    finished (?:school|university|college|high school)|
    (?:passed|failed) (?:my|the|our) (?:\w+ ){0,3}?
    (?:
        tests?|exams?|bar|boards|driving|licen[cs]e|interview|audition|certification|finals|
        a-levels|ielts|toefl|gre|theory|board
    )|
    won (?:a|an|the|first|second|third|my|our|gold|silver|bronze)
    (?! (?:argument|bet|war|round)\b)|
    lost (?:
        my (?:
            job|dad|mom|mum|mother|father|grandmother|grandfather|dog|cat|wallet|passport|
            wife|husband|phone|keys|son|daughter|brother|sister|sense|licen[cs]e|home|house
        )|
        [0-9]+ ?(?:kg|kilos|pounds|lbs)
    )|
    broke (?:
        my (?:\w+ )?(?!(?:code|build|app|phone|laptop|promise|record)\b)\w+|up(?= with|$)|
        an? (?:\w+ )?
        (?:leg|arm|rib|toe|bone|ankle|wrist|finger|hip|foot|hand|nose|collarbone|tooth)
    )|
    had (?:
        a (?:
            baby|surgery|miscarriage|stroke|heart|son|daughter|boy|girl|baby girl|baby boy|
            car accident|c-section|hysterectomy|vasectomy|transplant|seizure
        )|
        (?:\w+ )?surgery|an? (?:operation|accident|abortion|appendectomy)|
        my (?:first (?:child|baby|seizure|kid)|wisdom|appendix|tonsils|gall)
    )|
    gave birth|handed in my (?:notice|thesis|dissertation|resignation)|
    gave (?:my |in my )?notice|had my (?:\w+ ){1,3}(?:out|removed|taken out|replaced)|
    (?:had to )?put (?:my |our )?[\w-]+ (?:down|to sleep)(?! (?:a|the|some|my thoughts)\b)|
    became (?:
        an?|the|vegan|vegetarian|muslim|catholic|parents|friends with|pregnant|self-employed|
        single
    )|
    ran (?:a (?:half |full )?(?:marathon|10k|5k|half|ultra)|the|my first)
    (?! (?:\w+ )?(?:tests?|code|command|script|query|build|numbers|errands?)\b)|
    visited (?-i:[A-Z])[\w'-]*|travel(?:l)?ed (?:to|through|around|across)|
    went (?:
        to (?:
            (?-i:[A-Z])[\w'-]*|school|college|university|rehab|prison|boarding school|
            art school|law school|med school
        )|
        on (?:
            vacation|holiday|safari|my honeymoon|our honeymoon|sabbatical|parental|maternity|
            paternity
        )|
        vegan|vegetarian|freelance|back to (?:school|college|university)
    )|
    flew to (?-i:[A-Z])[\w'-]*|climbed (?-i:[A-Z])[\w'-]*|hiked (?:the )?(?-i:[A-Z])[\w'-]*|
    published (?:my|a|an|our|the) (?:\w+ ){0,2}?
    (?:book|novel|paper|article|poem|album|memoir|thesis|app|game|study|story|poems)|
    released (?:my|our|an?) (?:\w+ ){0,2}?
    (?:album|book|game|app|song|single|ep|film|record|version)|
    founded|co-?founded|
    launched (?:my|our|a|an|the) (?:\w+ ){0,2}?
    (?:
        company|startup|business|podcast|shop|product|store|blog|newsletter|channel|brand|
        agency|label|magazine|beta|service
    )|
    sold (?:my|our|the (?:house|car|flat|company|business|farm|boat))|
    (?:earned|received) (?:a|my|an|the) (?:\w+ ){0,3}?
    (?:
        award|degree|diagnosis|offer|scholarship|promotion|grant|diploma|certificate|
        certification|medal|phd|visa|green card|prize|black belt|citizenship|licen[cs]e|title|
        fellowship|transplant
    )|
    learned to|met my (?:wife|husband|partner|girlfriend|boyfriend|best friend|fianc\w+)|
    proposed to|ended up (?:moving|marrying)|enrolled|
    was (?:
        diagnosed|promoted|hired|laid off|fired|accepted|admitted|hospitali[sz]ed|
        in a car accident|elected|awarded|baptized|made redundant|let go
    )|
    turned [0-9]+|celebrated (?:my|our)|took part in|competed in|participated in|
    signed (?:
        a (?:contract|lease|deal|book deal)|the (?:lease|contract|papers)|
        my (?:lease|contract)|up for
    )|
    dropped out|defended my|sprained|fractured|tore my|
    stopped (?:smoking|drinking|eating|working|taking|playing|using|going)|gave up|hurt my|
    injured my|dislocated|moved in|moved out|welcomed (?:a|our|my)|buried my|emigrated|
    immigrated|gave a talk|presented at|spoke at (?-i:[A-Z])[\w'-]*|
    donated (?:a kidney|blood|my)|wrote (?:a|my first) (?:book|novel|thesis)|
    crashed my (?!code|app|laptop|computer|server)|switched majors|cut my hair|dyed my hair|
    landed (?:a|the|my) (?:\w+ ){0,2}?
    (?:job|role|contract|deal|gig|internship|client|position)|
    turned vegan|turned vegetarian|
    opened (?:a|my|our) (?:\w+ ){0,2}?(?:
        shop|restaurant|bakery|cafe|café|studio|store|practice|bar|account|business|clinic|
        gym|office|gallery
    )|
    closed on|built (?:a|my|our) (?:own )?(?:house|cabin|shed)|saw (?-i:[A-Z])[\w ]+ live|
    (?:got|came) back from (?-i:[A-Z])[\w'-]*|returned from (?-i:[A-Z])[\w'-]*|
    spent (?:
        (?:[\w-]+ ){1,4}(?:
            days?|weeks?|months?|years?|summers?|winters?|holidays?|vacation|honeymoon|
            semester|childhood|christmas|easter|time
        )
    ) in (?-i:[A-Z])[\w'-]*
    """
)
PAST_IRREGULAR: Final = frozenset(
    ["was", "were", "had", "did", "went", "got", "bought", "left", "quit", "lost", "broke",
     "became", "ran", "won", "flew", "took", "gave", "met", "sold", "made", "began", "felt",
     "found", "wrote", "spoke", "saw", "came", "grew", "had", "built", "taught", "spent", "hurt",
     "tore", "cut", "came", "fell", "thought", "put", "let", "led", "read", "set", "shut",
     "understood", "forgot", "said", "told", "heard", "held", "kept", "lost", "paid", "sent",
     "slept", "stood", "wore", "woke", "threw", "drew", "drank", "ate", "gone", "done", "been",
     "seen", "chose", "knew", "drove", "rode", "swam", "sang", "hit"]
) - {"put", "let", "read", "set", "shut", "hit", "cut"}  # fmt: skip
GOAL_VERBS: Final = joined(r"""
    learn|become|
    get (?:
        a |an |into|better|fit|in shape|my|certified|promoted|married|back|out of debt|good|
        more|rid|healthier|stronger|divorced|engaged
    )|
    lose|gain|move|travel|visit|
    go (?:
        to (?!bed|sleep|the (?:store|shop|bathroom|supermarket|bank|gym|toilet))|back to|
        on (?:a|vacation|holiday)|freelance|vegan|vegetarian|part-?time|full-?time|hiking|
        skiing
    )|
    buy (?:a|an|my|our|the)|
    start (?:
        a|an|my|running|learning|working|eating|going|doing|exercising|playing|studying|
        investing|meditating|saving|dating|at|the
    )|
    open (?:a|an|my|our)|launch|run (?:a|the|my|[0-9])|quit|
    stop (?:smoking|drinking|eating|buying|working|procrastinating|using)|study|master|
    improve|save|finish (?:my|the|a|writing|reading|school)|publish|retire|apply (?:for|to)|
    switch|change (?:jobs|careers?|my)|live|work (?:in|as|at|for|abroad|less|from|remotely)|
    spend (?:more|less)|
    be (?:
        a|an|the|able|fluent|more|less|better|moving|travel|visiting|starting|getting|
        relocating|debt|healthier|at|in [A-Z]
    )|
    have (?:kids|children|a baby|a family|another|my own|a second)|climb|earn|pass|join|
    write (?:a|my|an) (?:book|novel|thesis|memoir|blog|dissertation|screenplay)|found|
    cut (?:down|back|out)|give up|reduce|eat (?:less|more|healthier|better)|raise|adopt|marry|
    propose|train|read (?:more|[0-9]+|all)|exercise|
    build (?:a|my|our) (?:
        house|business|company|startup|cabin|deck|shed|portfolio|habit|career|life|home|app|
        saas|game|product
    )|
    renovate|
    do (?:a|an|my)[ ]
    (?:phd|master|masters|marathon|triathlon|course|bootcamp|degree|mba|internship)|
    pursue|invest|qualify|compete|graduate|emigrate|relocate|complete|hike|sail|pay off|
    sell (?:my|our|the)|expand|hire|migrate|rewrite|release|ship|refactor|plant|grow|
    paint the|redo|remodel|refinance|volunteer|meditate|wake up|sleep|drink (?:less|more)|
    play (?:the )?\w+|speak|reach|break|beat|
    take (?:
        up|a (?:sabbatical|gap|year|trip|course|class)|
        the (?:gre|gmat|toefl|ielts|exam|train)|my
    )|
    host|attend|celebrate|fly to|drive to|see the (?:northern|world|pyramids|sea|alps|ocean)|
    enroll|enrol|swim|cycle|walk the|organize|organise|declutter|surprise|homeschool
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
