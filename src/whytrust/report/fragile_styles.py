"""The look of swapped texts, on top of that of every page; each rule begins with .whytrust."""

from whytrust.pictures.colours import MINUS, PLUS, css, text_css
from whytrust.report.words import DARK_ORANGE, GREY

STEPS = 10
"""Shades of a colour: words have one by class, for a style a word would make a page of texts twice as long."""


def shade(strength: float) -> str | None:
    """The class of a word by its strength from -1 to 1; None where it hardly matters and stays plain."""
    step = int(abs(strength) * STEPS + 0.5)
    return None if step == 0 else f"{'p' if strength > 0 else 'n'}{step}"


def _shades() -> str:
    rules = []
    for kind, sign in (("p", 1), ("n", -1)):
        for step in range(1, STEPS + 1):
            strength = sign * step / STEPS
            rules.append(f"& .{kind}{step} {{ background: {css(strength)}; color: {text_css(strength)}; }}")
    return "\n".join(rules)


_RULES = f"""
& .fooled > p {{ max-width: 50em; }}
& .sentence {{ line-height: 1.9; overflow: hidden; padding: 2px 0; }}
& .sentence mark {{ padding: 1px 2px; }}
& mark[class^=p]::after {{ content: "{PLUS}"; }}
& mark[class^=n]::after {{ content: "{MINUS}"; }}
& .traded s {{ font-size: .78em; color: #57606a; margin-inline-end: .3em; text-decoration-thickness: 1px; }}
& .traded b {{ font-weight: 650; border-bottom: 2px solid #1b1f24; padding-bottom: 1px; }}
& .traded.latest {{ outline: 2px dashed #1b1f24; outline-offset: 1px; border-radius: 3px; padding: 0 3px; margin: 0 4px; }}
& .hole {{ color: #57606a; font-size: .87em; font-style: italic; margin: 0 .4em; }}
& .path {{ margin: .9em 0 1.2em; border-inline-start: 4px solid #d5d9df; padding-inline-start: 12px; }}
& .path > summary {{ font-size: 1em; }}
& .path .path {{ border: 0; padding: 0; }}
& .levels {{ table-layout: fixed; margin: .5em 0; }}
& .levels th, & .levels td {{ padding: .5em .8em .2em 0; border: 0; }}
& .levels thead th {{ font-size: .82em; line-height: 1.25; vertical-align: bottom; overflow-wrap: normal; }}
& .levels tbody {{ border-top: 1px solid #d5d9df; break-inside: avoid; }}
& .levels .wording {{ padding: 0 0 .7em; }}
& .levels .number {{ width: 6.6em; text-align: end; font-variant-numeric: tabular-nums; padding-inline-end: .4em; }}
& .levels thead .number {{ width: 8em; }}
& .levels tbody .judged {{ font-weight: 650; }}
& .levels tbody .level {{ color: #3d444d; }}
& .levels .level b {{ font-weight: 650; color: #1b1f24; }}
& .levels .asitwas > tr {{ background: #f6f7f9; }}
& .left {{ list-style: none; padding: 0; margin: .5em 0 .9em; max-width: 46em; font-size: .93em; }}
& .left li {{ display: grid; grid-template-columns: minmax(0, 17em) minmax(40px, 1fr) 4em; gap: 4px 12px;
  align-items: center; }}
& .left b {{ white-space: nowrap; font-variant-numeric: tabular-nums; text-align: end; font-weight: 500; }}
& .left li:first-child b {{ font-weight: 700; }}
& .meter {{ display: block; height: .75em; background: #eceef1; border-radius: 2px; overflow: hidden; }}
& .meter span {{ display: block; height: 100%; background: {GREY}; }}
& .left li:first-child .meter span {{ background: {DARK_ORANGE}; }}
& .why {{ margin: -.2em 0 .4em; }}
& .reading dl {{ grid-template-columns: minmax(8em, 13em) 1fr; }}
& .reading dd {{ color: #3d444d; }}
"""

_STACKED = """
& .levels, & .levels tbody, & .levels .wording { display: block; }
& .levels thead { display: none; }
& .levels tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 126px), 1fr)); gap: 1px 22px; }
& .levels th.level, & .levels td.wording { grid-column: 1 / -1; padding: .4em 0; }
& .levels td.number { display: flex; width: auto; padding: 0; justify-content: space-between; gap: 8px; }
& .levels .number::before { color: #57606a; font-size: .87em; font-weight: 400; text-align: start; }
& .levels .sure::before { content: "confidence"; }
& .levels .judged::before { content: "order, anew"; }
& .levels .seen::before { content: "order, as seen"; }
& .levels .top::before { content: "top half"; }
& .levels .perplexity::before { content: "perplexity"; }
& .levels .errors::before { content: "new errors"; }
& .levels .similarity::before { content: "similarity"; }
"""

_PHONE = """
& .left li { grid-template-columns: minmax(0, 1fr) 4em; }
& .left .meter { grid-column: 1 / -1; grid-row: 2; margin-bottom: .4em; }
& .path { padding-inline-start: 8px; border-inline-start-width: 3px; }
& .reading dl { grid-template-columns: 1fr; }
"""

_PRINT = """
& .sentence { overflow: visible; }
& .levels { font-size: 8.5pt; }
& .levels thead .number { width: 6.2em; }
& .left li { break-inside: avoid; }
"""

FOOLED = ((_RULES + _shades()).replace("&", ".whytrust") + "@media screen and (max-width: 900px) {"
          + _STACKED.replace("&", ".whytrust") + "}\n@media screen and (max-width: 620px) {" + _PHONE.replace("&", ".whytrust")
          + "}\n@media print {" + _PRINT.replace("&", ".whytrust") + "}\n")
