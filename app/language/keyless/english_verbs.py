"""What the English grammar knows of verbs, as data: skills, habits, facts, events, goals."""

from typing import Final

from app.language.keyless.patterns import joined

SKILL_VERBS: Final = joined(r"""
    drive|swim|cook|bake|sing|dance|play(?= \S)|speak(?! (?:for|to|of|up|out|about))|code|
    program|type|ride|ski|snowboard|skate|surf|juggle|draw|paint|knit|sew|whistle|sail|dive|
    fly a|understand|
    read (?:music|sheet|arabic|chinese|japanese|korean|hebrew|latin|greek|russian)|
    write (?:in )?(?:python|sql|java|code)|weld|solder|climb|crochet|
    do (?:a )?(?:handstand|backflip|magic|calligraphy|cpr)|touch type|touch-type|beatbox|
    do the splits|hold my breath|tell|solve a rubik|lift|bench|deadlift|sign
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
