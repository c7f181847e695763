"""Irregular English forms and the words they are forms of: no stemmer brings them together."""

from typing import Final

_FORMS = """
arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began
begun; bend bent; bet; bind bound; bite bit bitten; bleed bled; blow blew blown; break broke
broken; breed bred; bring brought; broadcast; build built; burn burnt; buy bought; catch caught;
choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed;
feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden; forget
forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given;
go went gone; grind ground; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt;
leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met; pay paid;
prove proven; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen;
seek sought; sell sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show
shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid;
smell smelt; speak spoke spoken; spell spelt; spend spent; spill spilt; spin spun; spoil spoilt;
stand stood; steal stole stolen; stick stuck; sting stung; strike struck; strive strove striven;
swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach
taught; tear tore torn; tell told; think thought; throw threw thrown; undergo underwent undergone;
understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; wind
wound; withdraw withdrew withdrawn; write wrote written; child children; foot feet; goose geese;
half halves; knife knives; loaf loaves; man men; mouse mice; ox oxen; person people; shelf
shelves; tooth teeth; wife wives; wolf wolves; woman women; good better best; bad worse worst; far
further furthest farther farthest
"""

BASES: Final = {
    form: base for base, *forms in (line.split() for line in _FORMS.split(";")) for form in forms
}
"""The base of each form. "Lives" and "leaves" are missing: mostly they are of regular verbs."""
