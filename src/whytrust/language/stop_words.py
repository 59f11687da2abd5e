"""Words that carry a sentence rather than its content: few others can stand for them, and a "not" less turns it round."""

from __future__ import annotations


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ARTICLES_AND_PRONOUNS = _listed("""
    a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one ones oneself who whom whose which what
    whoever whomever whichever whatever someone somebody something anyone anybody anything everyone everybody everything
    each other another thou thee thy ye""")
_NEGATIONS = _listed("""
    no not nor neither never none nobody nothing nowhere without cannot n't hardly scarcely barely""")
_VERBS = _listed("""
    be am is are was were been being have has had having do does did doing done can could may might must shall should will would
    ought need dare used""")
_PREPOSITIONS = _listed("""
    about above across after against along amid among amongst around as at before behind below beneath beside besides between
    beyond by despite down during except for from in inside into like near of off on onto out outside over past per since
    through throughout till to toward towards under underneath until unlike up upon versus via with within""")
_CONJUNCTIONS = _listed("""
    and but or so yet if unless because although though while whilst whereas whether than then else once both either""")
_ADVERBS = _listed("""
    when where why how whenever wherever however therefore thus hence here there now again also too very just only even still
    already ever always almost quite rather really much many more most less least few fewer several some any all every half
    such same own enough further perhaps maybe instead otherwise anyway somehow somewhere anywhere everywhere away back""")
_NUMBERS = _listed("two three four five six seven eight nine ten first second third hundred thousand million billion")
_PIECES = ("'s", "'m", "'re", "'ve", "'ll", "'d", "n't")
_CONTRACTED = _listed("""
    don't doesn't didn't can't couldn't won't wouldn't shan't shouldn't mustn't mightn't needn't isn't aren't wasn't weren't
    hasn't haven't hadn't ain't daren't oughtn't i'm i've i'll i'd you're you've you'll you'd he's he'll he'd she's she'll she'd
    it's it'll it'd we're we've we'll we'd they're they've they'll they'd that's that'll that'd there's there'll there'd here's
    who's who'll who'd who've what's what'll what're where's when's why's how's let's one's y'all""")
# Tokenised corpora write "do n't" and "it 's"; other texts lose the apostrophe.
_BROKEN = _listed("ca wo sha ai don doesn didn couldn wouldn shouldn isn aren wasn weren hasn haven hadn ain ll ve re s t d m")
_PLAIN = (_ARTICLES_AND_PRONOUNS | _NEGATIONS | _VERBS | _PREPOSITIONS | _CONJUNCTIONS | _ADVERBS | _NUMBERS | _CONTRACTED
          | frozenset(_PIECES) | _BROKEN)

STOP_WORDS: frozenset[str] = _PLAIN | {word.replace("'", "’") for word in _PLAIN}
"""In lower case, contractions and their pieces included, with straight and curly apostrophes."""
