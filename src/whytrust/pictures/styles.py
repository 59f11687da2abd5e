"""The pages' look. Every rule of FRAGMENT begins with .whytrust, so that a notebook around it stays as it is."""

from whytrust.pictures.colours import css

PAGE = """
body { margin: 0; background: #f4f5f7; }
body > .whytrust { max-width: 1180px; margin: 0 auto; padding: 20px 16px 40px; box-sizing: border-box; background: none; }
@page { margin: 14mm; }
@media print { body { background: #fff; } body > .whytrust { max-width: none; padding: 0; } }
"""

_RULES = f"""
& {{ font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; color: #1b1f24;
  background: #fff; color-scheme: light; print-color-adjust: exact; -webkit-print-color-adjust: exact;
  overflow-wrap: anywhere; text-align: start; }}
& * {{ box-sizing: border-box; }}
& h1 {{ font-size: 1.7em; line-height: 1.25; margin: 0 0 .6em; font-weight: 650; }}
& h2 {{ font-size: 1.25em; line-height: 1.3; margin: 0; font-weight: 650; color: inherit; }}
& h3 {{ font-size: 1em; margin: 1.3em 0 .4em; font-weight: 650; color: inherit; }}
& h1, & h2, & h3 {{ max-height: 8em; overflow-y: auto; }}
& p {{ margin: .4em 0; }}
& .card {{ background: #fff; border: 1px solid #d5d9df; border-radius: 10px; padding: 18px; margin: 0 0 18px;
  min-width: 0; container-type: inline-size; }}
& .grid {{ display: grid; gap: 18px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); }}
& .grid > .card {{ margin: 0; }}
& section {{ margin: 0 0 24px; }}
& .plain {{ max-width: 340px; margin: 0 0 18px; }}
& .columns {{ display: grid; gap: 8px 32px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 310px), 1fr)); }}
& .columns > div {{ min-width: 0; }}
& .columns h3 {{ margin-top: .8em; }}
& .method, & .aside, & figcaption, & .meaning, & footer {{ color: #57606a; font-size: .87em; }}
& figure {{ margin: .8em 0; min-width: 0; break-inside: avoid; }}
& figcaption {{ margin-top: .3em; }}
& img {{ display: block; width: 100%; height: auto; border-radius: 4px; image-rendering: auto; }}
& audio {{ display: block; width: 100%; }}
& .stack {{ position: relative; }}
& .marks {{ position: absolute; inset: 0; width: 100%; height: 100%; }}
& .marks text {{ text-anchor: middle; dominant-baseline: central; font-weight: 700; fill: #000; stroke: #fff;
  paint-order: stroke; stroke-linejoin: round; }}
& .spectrogram {{ display: grid; grid-template-columns: auto 1fr; gap: 2px 6px; font-size: .8em; color: #57606a; }}
& .spectrogram img {{ min-height: 150px; image-rendering: auto; }}
& .pitch {{ display: flex; flex-direction: column; justify-content: space-between; text-align: end; max-width: 5em; }}
& .time {{ grid-column: 2; display: flex; justify-content: space-between; }}
& .text {{ white-space: pre-wrap; max-height: 26em; overflow-y: auto; padding: 12px 14px; border: 1px solid #e3e6ea;
  border-radius: 6px; line-height: 1.75; }}
& .unseen {{ color: #8a9099; }}
& mark {{ padding: 1px 2px; border-radius: 3px; }}
& mark.for::after {{ content: "+"; }}
& mark.against::after {{ content: "−"; }}
& mark::after {{ font-size: .75em; font-weight: 700; vertical-align: .35em; margin-inline-start: 1px; }}
& .legend {{ display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .87em; align-items: center; }}
& .swatch {{ display: inline-block; width: 1.35em; margin-inline-end: .45em; text-align: center; font-weight: 700;
  border-radius: 3px; line-height: 1.35; }}
& .ramp {{ display: inline-block; width: 84px; height: .85em; vertical-align: -1px; border: 1px solid #c4c9d0;
  background: linear-gradient(to right, {css(-1)}, #fff, {css(1)}); }}
& .map img {{ border: 1px solid #c4c9d0; }}
& .ramp.upward {{ background: linear-gradient(to right, #fff, {css(1)}); }}
& .notes {{ list-style: none; margin: .7em 0; padding: 0; }}
& .notes li {{ background: #fff6d6; border: 1px solid #d9b84a; border-left-width: 6px; border-radius: 4px; color: #3d2f00;
  padding: .5em .8em; margin: 0 0 .5em; break-inside: avoid; }}
& .doubt {{ background: #f1f2f5; border-left: 5px solid #7b8490; border-radius: 4px; padding: .45em .8em;
  font-size: .93em; }}
& .icon {{ font-weight: 700; }}
& .chart {{ display: block; width: 100%; max-width: 430px; height: auto; break-inside: avoid; font-size: 13px; }}
& .chart .name, & .chart .score {{ fill: #1b1f24; unicode-bidi: isolate; }}
& .chart .score {{ font-variant-numeric: tabular-nums; }}
& .chart .axis {{ font-size: 11px; fill: #57606a; }}
& .chart .zero {{ stroke: #57606a; stroke-width: 1; }}
& .chart .error, & .chart .cap {{ stroke: #1b1f24; stroke-width: 1.3; }}
& table {{ border-collapse: collapse; width: 100%; font-size: .93em; margin: 0; color: inherit; }}
& tr, & tr:nth-child(odd), & tr:hover {{ background: #fff; }}
& th, & td {{ text-align: start; vertical-align: top; padding: .4em .6em .4em 0; border: 0; border-bottom: 1px solid #e6e8ec;
  font-weight: 400; white-space: normal; max-width: none; }}
& thead th {{ font-weight: 650; }}
& .number, & .value {{ font-variant-numeric: tabular-nums; }}
& .facts th {{ width: 15em; max-width: 18em; }}
& .facts .number {{ font-weight: 650; min-width: 5em; padding-inline-end: 1.4em; }}
& table {{ overflow-wrap: break-word; }}
& th, & td {{ max-width: 34em; }}
& .wide {{ overflow-x: auto; }}
& .wide .number {{ white-space: nowrap; }}
& .track {{ display: inline-block; position: relative; overflow: hidden; width: 64px; height: .8em; margin-inline-end: .5em;
  vertical-align: -1px; background: linear-gradient(#57606a, #57606a) center / 1px 100% no-repeat; }}
& .half {{ position: absolute; top: 0; bottom: 0; }}
& pre {{ overflow-x: auto; background: #f6f7f9; border: 1px solid #e3e6ea; border-radius: 6px; padding: 10px 12px; margin: 0;
  font: 13px/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; color: inherit; }}
& details {{ margin: .6em 0; }}
& summary {{ cursor: pointer; font-weight: 600; font-size: .93em; }}
& dl {{ display: grid; grid-template-columns: minmax(8em, 15em) 1fr; gap: .3em 1em; font-size: .9em; }}
& dt {{ font-weight: 600; }}
& dd {{ margin: 0; color: #57606a; }}
& footer {{ margin-top: 1.5em; }}
"""

_NARROW = """
& .facts tr { display: grid; grid-template-columns: 1fr auto; }
& .facts th, & .facts td { width: auto; max-width: none; border-bottom: 0; padding: .35em 0 0; }
& .facts tr { border-bottom: 1px solid #e6e8ec; padding-bottom: .35em; }
& .facts .number { text-align: end; min-width: 0; padding-inline-end: 0; }
& .facts .meaning { grid-column: 1 / -1; padding-top: 0; }
& .wide thead { display: none; }
& .wide tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; border-bottom: 1px solid #e6e8ec; padding: .35em 0; }
& .wide th, & .wide td { border-bottom: 0; padding: 0; }
& .wide th { font-weight: 650; }
& .wide .number { grid-area: 1 / 2; padding-inline-start: .6em; }
& .wide .value, & .wide .condition { grid-column: 1 / -1; color: #57606a; }
& .wide .value::before { content: "value "; }
& .wide .condition:not(:empty)::before { content: "condition "; }
"""

_PHONE = """
& .card { padding: 14px; }
& dl { grid-template-columns: 1fr; }
& dd { margin-bottom: .5em; }
"""

_PRINT = """
& .text { max-height: none; overflow: visible; }
& .card { border-color: #999; }
& audio { display: none; }
& pre { white-space: pre-wrap; }
"""


def _scoped(rules: str) -> str:
    """`&` stands for the page's own element; older browsers do not know nesting, so it is written out."""
    return rules.replace("&", ".whytrust")


FRAGMENT = (_scoped(_RULES) + "@container (max-width: 500px) {" + _scoped(_NARROW) +
            "}\n@media (max-width: 560px) {" + _scoped(_PHONE) + "}\n@media print {" + _scoped(_PRINT) + "}\n")
