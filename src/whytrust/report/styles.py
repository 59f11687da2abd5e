"""The audit page's look, on top of that of the pictures; every rule begins with .audit."""

from whytrust.report.words import BLUE, DARK_ORANGE, GREY, INK, LIGHT_BLUE

_RULES = f"""
& h1 {{ font-size: 2em; margin: 0 0 .35em; letter-spacing: -.01em; }}
& h2 {{ font-size: 1.4em; margin: 0 0 .5em; }}
& header {{ margin: 8px 0 22px; max-width: 52em; }}
& .lead {{ font-size: 1.25em; line-height: 1.45; margin: 0 0 .5em; }}
& .outcome {{ font-size: 1.08em; font-weight: 600; margin: 0 0 .6em; }}
& section > p:not(.legend), & .case > p {{ max-width: 50em; }}
& .card {{ padding: 22px 24px; }}
& .box {{ overflow-x: auto; max-width: 100%; }}
& .box td, & .box th {{ padding-inline-end: 1.1em; }}
& .box .number {{ text-align: end; white-space: nowrap; }}
& a {{ color: {BLUE}; }}
& summary {{ padding: .25em 0; }}
& svg {{ overflow: visible; }}
& .sign {{ width: 22px; height: 16px; vertical-align: -2px; margin-inline-end: 6px; }}
& .about, & .why, & .range {{ display: block; color: #57606a; font-size: .86em; font-weight: 400;
  line-height: 1.35; }}
& .verdicts {{ min-width: 0; }}
& .verdicts th, & .verdicts td {{ padding: .6em 1em .6em 0; vertical-align: middle; }}
& .verdicts thead th {{ vertical-align: bottom; font-size: .9em; line-height: 1.3; padding-bottom: 0; }}
& .verdicts thead th:not(.plot) {{ padding-bottom: .5em; }}
& .verdicts tbody th {{ width: 20%; font-weight: 650; }}
& .verdicts tbody th .about {{ margin-top: .15em; }}
& .verdicts .verdict {{ width: 23%; }}
& .verdicts .number {{ width: 6em; padding-inline-end: .4em; text-align: end; }}
& .verdicts thead .number {{ white-space: normal; }}
& .verdicts td.number:nth-last-child(2) {{ font-weight: 650; }}
& .verdicts td.plot {{ position: relative; width: 22%; padding: 0; }}
& .verdicts th.plot {{ padding: 0; }}
& .verdicts .baseline, & .verdicts .baseline th, & .verdicts .baseline td {{ background: #f6f7f9; }}
& .verdicts .baseline th {{ padding-inline-start: .6em; font-weight: 500; }}
& .verdicts .explainer th {{ padding-inline-start: .6em; }}
& .badge + .badge {{ margin-top: 3px; }}
& .named {{ display: flex; align-items: center; gap: 6px; }}
& .named .sign {{ flex: none; margin: 0; }}
& .named bdi {{ min-width: 0; overflow-wrap: break-word; max-height: 9em; overflow-y: auto; }}
& .verdicts .about, & .verdicts .why {{ max-height: 16em; overflow-y: auto; }}
& .verdicts .rate {{ display: block; width: 62px; text-align: end; font-weight: 650; font-variant-numeric: tabular-nums;
  line-height: 1.25; }}
& .verdicts .range {{ font-size: .78em; white-space: nowrap; }}
& .badge {{ display: inline-block; max-width: 100%; margin-inline-end: .4em; border-radius: 4px; padding: .12em .55em;
  font-weight: 650; font-size: .92em; line-height: 1.4;
  border: 1.5px solid transparent; }}
& .badge-sign {{ margin-inline-end: .45em; }}
& .rules .badge-sign {{ margin: 0; }}
& .badge.good {{ background: {BLUE}; color: #fff; }}
& .badge.fair {{ background: #e3f0f9; color: #00507d; border-color: {LIGHT_BLUE}; }}
& .badge.none {{ background: #fdf0e2; color: #7d3600; border-color: #d97a1c; }}
& .badge.bad {{ background: {DARK_ORANGE}; color: #fff; }}
& .badge.open {{ background: #eceef1; color: #3d444d; border-color: #9aa2ac; }}
& .badge.unstable {{ background: #fff6d6; color: #3d2f00; border-color: #d9b84a; margin-inline-end: .4em; }}
& .rules .badge {{ min-width: 2.2em; text-align: center; margin: 0; }}
& .rules {{ list-style: none; padding: 0; font-size: .93em; }}
& .rules li {{ margin: .45em 0; }}
& .strip {{ position: absolute; top: 0; left: 68px; width: calc(100% - 84px); height: 100%; }}
& .strip.head {{ position: static; display: block; height: auto; margin: 4px 0 0 68px; font-size: 11px; font-weight: 400; }}
& .strip text {{ fill: #3d444d; stroke: #fff; stroke-width: 4px; paint-order: stroke; }}
& .tick {{ stroke: #6b737d; stroke-width: 1.2; }}
& .tick.random {{ stroke-dasharray: 6 2 1 2; }}
& .tick.blind {{ stroke-dasharray: 5 2; stroke: #8a4b00; }}
& .tick.magnitude {{ stroke-dasharray: 4 3; stroke: #444b54; }}
& .tick.oracle {{ stroke: {INK}; }}
& .tick-key {{ display: none; flex-wrap: wrap; gap: 4px 16px; font-size: .87em; color: #3d444d; }}
& .tick-key svg {{ width: 8px; height: 18px; vertical-align: -4px; margin-inline-end: 5px; }}
& .track-line {{ stroke: #d5d9df; }}
& .whisker {{ stroke-width: 3; stroke-linecap: round; }}
& .dot {{ stroke-width: 2; }}
& .lines {{ display: block; width: 100%; max-width: 900px; height: auto; margin: 10px 0; }}
& .lines.narrow {{ display: none; }}
& .lines text {{ fill: {INK}; }}
& .lines .frame text {{ fill: #57606a; font-variant-numeric: tabular-nums; }}
& .lines .rule {{ stroke: #e3e6ea; }}
& .zero {{ stroke: #7b8490; }}
& .stroke {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
& .baseline > .stroke {{ stroke-width: 1.6; }}
& .leader {{ fill: none; stroke: #b4bac2; stroke-width: 1; }}
& .line {{ outline: none; cursor: default; }}
& .lines:has(.line:hover) .line:not(:hover), & .lines:has(.line:focus-visible) .line:not(:focus-visible) {{ opacity: .16; }}
& .line:hover .band, & .line:focus-visible .band {{ fill-opacity: .28; }}
& .line:hover .stroke, & .line:focus-visible .stroke {{ stroke-width: 3.2; }}
& .line:hover text, & .line:focus-visible text {{ font-weight: 700; }}
& .choice {{ border: 0; padding: 0; margin: 10px 0 0; min-width: 0; }}
& .choice > legend {{ float: left; padding: 0; margin-inline-end: .8em; font-weight: 600; }}
& .choice > label {{ margin-inline-end: 1.1em; cursor: pointer; }}
& .choice > .panel {{ display: none; clear: both; }}
& .pick.any:checked ~ .panel.any, & .pick.target:checked ~ .panel.target {{ display: block; }}
& .on-paper {{ display: none; }}
& .panels {{ display: grid; gap: 8px 36px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); }}
& .panels.fits {{ grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 500px)); }}
& .panels h3 {{ margin: .6em 0 .3em; }}
& .stacks {{ table-layout: fixed; }}
& .stacks th {{ width: 42%; border: 0; padding: 2px 8px 2px 0; vertical-align: middle; font-size: .93em; line-height: 1.2; }}
& .stacks td {{ border: 0; padding: 2px 0; vertical-align: middle; }}
& .stacks .baseline th {{ color: #57606a; padding-top: 10px; }}
& .stacks .baseline td {{ padding-top: 10px; }}
& .stacks .named {{ gap: 4px; }}
& .legend .swatch {{ height: 1.1em; vertical-align: -.2em; border: 1px solid #c4c9d0; }}
& .stack-bar {{ display: flex; height: 22px; border-radius: 3px; overflow: hidden; font-size: .8em; line-height: 22px; }}
& .stack-bar span {{ text-align: center; overflow: hidden; white-space: nowrap; font-variant-numeric: tabular-nums;
  border-inline-end: 1px solid #fff; }}
& .stack-bar span:last-child {{ border: 0; }}
& .dots {{ display: block; width: 100%; height: auto; }}
& .median {{ stroke: {INK}; stroke-width: 2; }}
& .strip-name {{ margin: .7em 0 .1em; font-size: .9em; font-weight: 600; }}
& .scale {{ display: flex; justify-content: space-between; font-size: .8em; color: #57606a; margin: .1em 0; }}
& .k-bar {{ position: sticky; top: 0; z-index: 5; background: #fff; padding: 10px 0; border-bottom: 1px solid #d5d9df;
  display: flex; flex-wrap: wrap; gap: 6px 20px; align-items: center; }}
& #k-control:not([hidden]) {{ display: inline-flex; align-items: center; gap: 10px; flex: 1 1 260px; max-width: 480px; }}
& #k {{ flex: 1; min-width: 0; height: 28px; accent-color: {BLUE}; }}
& output {{ font-weight: 700; font-size: 1.2em; min-width: 1.6em; font-variant-numeric: tabular-nums; }}
& #k-control label {{ font-weight: 650; }}
& .steps {{ display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 12px 0 0; font-size: .92em; }}
& .case {{ padding: 14px 0 18px; border-top: 1px solid #e6e8ec; scroll-margin-top: 60px; }}
& .steps + .case, & .k-bar + .case {{ border-top: 0; }}
& .case h3 {{ font-size: 1.15em; margin: .4em 0; }}
& .answer {{ font-style: italic; }}
& .kept {{ position: absolute; width: 0; height: 0; overflow: hidden; }}
& .pictures {{ display: grid; gap: 14px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 134px), 1fr));
  margin: 10px 0; }}
& .pictures.inputs {{ grid-template-columns: repeat(4, minmax(0, 200px)); margin-bottom: 18px; }}
& .pictures figure {{ margin: 0; }}
& .pictures figcaption {{ color: #3d444d; line-height: 1.3; font-size: .85em; }}
& .pictures figcaption b {{ display: block; font-weight: 650; color: {INK}; }}
& .pictures figcaption b.baseline {{ font-weight: 500; font-style: italic; }}
& .view {{ display: block; width: 100%; height: auto; overflow: hidden; border-radius: 4px; outline: 1px solid #d5d9df;
  background: #fff; }}
& .outlines {{ fill: none; stroke: #fff; stroke-width: 1.6px; }}
& .view .part {{ visibility: hidden; fill: {GREY}; stroke: #fff; }}
& .view .part.on {{ visibility: visible; }}
& .hit .part {{ fill: {BLUE}; }}
& .miss .part {{ fill: #e07b00; }}
& .view .part use {{ fill-opacity: .5; stroke-width: 1.4px; }}
& .view .part text {{ fill: #000; stroke: #fff; stroke-width: 2.6px; paint-order: stroke; stroke-linejoin: round;
  font-weight: 700;
  text-anchor: middle; }}
& .yes {{ color: #00568a; font-weight: 650; }}
& .no {{ color: #9a4300; font-weight: 650; }}
& .hit .no, & .miss .yes, & .unknown .yes, & .unknown .no, & .hit .open-question, & .miss .open-question {{
  display: none; }}
& .ranks .part.on {{ background: #cfe5f3; font-weight: 700; }}
& .ranks .yes, & .ranks .no {{ display: block; font-size: .8em; white-space: normal; }}
& .ranks .hit .no, & .ranks .miss .yes, & .ranks .unknown .yes, & .ranks .unknown .no {{ display: none; }}
& .ranks thead th.who {{ min-width: 5.6em; vertical-align: bottom; white-space: normal; padding-inline: .4em;
  font-size: .88em; line-height: 1.25; }}
& .ranks td.part {{ padding-inline: .4em; }}
& .ranks tbody th {{ white-space: nowrap; }}
& .texts {{ display: grid; gap: 14px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 320px), 1fr));
  margin: 10px 0 18px; }}
& .texts.inputs {{ grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); }}
& .texts figure {{ margin: 0; }}
& .texts figcaption {{ color: #3d444d; line-height: 1.3; font-size: .85em; }}
& .texts figcaption b {{ display: block; font-weight: 650; color: {INK}; }}
& .texts figcaption b.baseline {{ font-weight: 500; font-style: italic; }}
& .texts .text {{ max-height: 18em; padding: 8px 12px; }}
& .words .text {{ font-size: .93em; line-height: 2; }}
& .swap s {{ color: #57606a; }}
& .swap b {{ background: #fff0b8; border-radius: 3px; padding: 1px 2px; }}
& .swapped {{ border-bottom: 4px double {INK}; padding-bottom: 1px; }}
& .words .rank {{ display: none; }}
& .words .part.on {{ outline: 2px solid {INK}; border-radius: 3px; padding: 1px; margin: 0 1px; }}
& .words .part.on .rank {{ display: inline; background: {INK}; color: #fff; font-size: .72em; font-weight: 700;
  padding: 1px 3px; border-radius: 2px; margin-inline-end: 2px; vertical-align: .2em; }}
& .pictures.sounds {{ grid-template-columns: repeat(auto-fill, minmax(min(100%, 190px), 1fr)); }}
& .pictures.inputs.sounds {{ grid-template-columns: repeat(4, minmax(0, 1fr)); margin-bottom: 8px; }}
& .spectrum {{ display: grid; grid-template-columns: 46px minmax(0, 1fr); font-size: 11px; line-height: 1;
  color: #57606a; }}
& .hertz, & .seconds {{ position: relative; white-space: nowrap; overflow-wrap: normal; }}
& .seconds {{ grid-column: 2; height: 17px; }}
& .hertz span {{ position: absolute; inset-inline-end: 6px; transform: translateY(50%); }}
& .hertz .first {{ transform: none; }}
& .hertz .last {{ transform: translateY(100%); }}
& .seconds span {{ position: absolute; top: 5px; transform: translateX(-50%); }}
& .seconds .first {{ transform: none; }}
& .seconds .last {{ transform: translateX(-100%); }}
& .sounds .outlines {{ stroke: {INK}; stroke-width: 1.2px; }}
& .sounds .outlines.border {{ stroke: #fff; stroke-width: 3px; }}
& .sounds .view .part use {{ fill-opacity: .42; }}
& .inputs.sounds figcaption {{ padding-inline-start: 46px; }}
& .clickable {{ cursor: pointer; }}
& .playing, & .hover {{ fill: none; stroke: #000; stroke-width: 2.8px; pointer-events: none; }}
& .playing.under {{ stroke: #fff; stroke-width: 6px; }}
& .cut .playing.under.alone {{ fill: #ffd43b; fill-opacity: .4; }}
& .playing.rest:not(.under) {{ stroke-dasharray: 5 4; }}
& .hover {{ stroke-width: 1.4px; }}
& .playhead {{ stroke: #000; stroke-width: 1.2px; vector-effect: non-scaling-stroke; pointer-events: none; }}
& .listen {{ background: #f6f7f9; border: 1px solid #e3e6ea; border-radius: 8px; padding: 10px 14px; margin: 0 0 18px; }}
& .listen p {{ margin: 0; }}
& .heard {{ display: grid; gap: 4px 18px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 260px), 1fr)); }}
& .heard[hidden] {{ display: none; }}
& .heard figure {{ margin: 0 0 6px; }}
& .controls {{ display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 0 0 8px; }}
& .controls .what {{ font-weight: 650; min-width: 3.6em; }}
& button, & select {{ font: inherit; color: inherit; background: #fff; border: 1px solid #9aa2ac; border-radius: 6px;
  min-height: 36px; padding: 2px 12px; max-width: 100%; }}
& select {{ padding-inline: 8px; }}
& button {{ cursor: pointer; }}
& button:hover:not(:disabled) {{ border-color: {BLUE}; }}
& button:disabled {{ color: #6b737d; background: #eceef1; cursor: default; }}
& .play::before {{ content: "▶\\fe0e"; margin-inline-end: .5em; font-size: .85em; }}
& .play[aria-pressed=true]::before, & .stop::before {{ content: "■"; margin-inline-end: .5em; }}
& .play[aria-pressed=true] {{ background: {INK}; border-color: {INK}; color: #fff; }}
& .who .play {{ display: block; min-height: 30px; padding: 0 9px; margin-top: 5px; }}
& .said {{ min-height: 1.5em; font-weight: 650; }}
& button:focus-visible, & select:focus-visible,
& a:focus-visible, & summary:focus-visible, & input:focus-visible, & [tabindex]:focus-visible {{ outline: 3px solid {BLUE};
  outline-offset: 2px; border-radius: 3px; }}
& .line:focus-visible {{ outline: none; }}
"""

_PHONE = """
& { font-size: 15px; }
& h1 { font-size: 1.6em; }
& .lead { font-size: 1.1em; }
& .card { padding: 16px 14px; }
& .lines.roomy { display: none; }
& .lines.narrow { display: block; }
& .choice { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px; }
& .choice > legend { float: none; margin-bottom: .3em; }
& .choice > .panel { grid-column: 1 / -1; }
& .pictures.inputs { grid-template-columns: repeat(2, minmax(0, 1fr)); }
& .pictures, & .pictures.sounds { grid-template-columns: repeat(auto-fill, minmax(132px, 1fr)); gap: 12px; }
& .pictures.inputs.sounds { grid-template-columns: minmax(0, 1fr); }
& button, & select, & .who .play { min-height: 44px; }
& .listen { padding: 10px; }
& .controls > select { width: 100%; }
& .controls > .what { width: 100%; }
"""

_STACKED = """
& .pictures.inputs.sounds { grid-template-columns: repeat(2, minmax(0, 1fr)); }
& .verdicts, & .verdicts tbody, & .verdicts tr { display: block; }
& .verdicts thead { display: none; }
& .tick-key { display: flex; }
& .verdicts tr { padding: .8em .2em 1em; border-bottom: 1px solid #d5d9df; }
& .verdicts tbody th, & .verdicts td, & .verdicts .verdict, & .verdicts td.plot { display: block; width: auto; border: 0;
  padding: .15em 0; }
& .verdicts tbody th, & .verdicts .baseline th, & .verdicts .explainer th { padding-inline-start: 0; }
& .verdicts td.plot { height: 74px; margin: .5em 0 0; }
& .verdicts td.plot::before { content: attr(data-label); font-size: .85em; color: #57606a; }
& .verdicts td.plot .strip { top: 24px; height: 44px; left: 76px; width: calc(100% - 84px); }
& .verdicts td.plot .rate { text-align: start; margin-top: 4px; }
& .verdicts td.number { width: auto; text-align: start; display: inline-block; margin-inline-end: 1.5em; }
& .verdicts td.number::before { content: attr(data-label) " "; font-weight: 400; font-size: .9em; color: #57606a; }
"""

_PRINT = """
& .card { border: 0; padding: 0; margin-bottom: 10mm; }
& .box { overflow: visible; }
& table { font-size: 9pt; }
& tr, & .case figure, & .lines { break-inside: avoid; }
& h2, & h3, & summary { break-after: avoid; }
& thead { display: table-header-group; }
& .k-bar { position: static; }
& .listen, & .who .play { display: none; }
& .pictures.inputs.sounds { grid-template-columns: repeat(2, minmax(0, 1fr)); }
& #k-control:not([hidden]), & .steps { display: none; }
& details::details-content { content-visibility: visible; block-size: auto; height: auto; }
& .choice > .panel { display: block; }
& .choice > input { display: none; }
& .choice > label { display: none; }
& .choice > legend { display: none; }
& .on-paper { display: block; }
& .box td, & .box th { padding-inline-end: .7em; }
& .verdicts .number { width: 4.5em; }
"""

_SKIP = """
.skip { position: absolute; left: -9999px; }
.skip:focus { position: fixed; left: 10px; top: 10px; z-index: 9; background: #fff; padding: 8px 14px;
  border: 2px solid #0072b2;
  font: 15px/1.4 system-ui, sans-serif; color: #00568a; }
"""

AUDIT = (_SKIP + _RULES.replace("&", ".audit") + "@media screen and (max-width: 900px) {" + _STACKED.replace("&", ".audit")
         + "}\n@media screen and (max-width: 620px) {" + _PHONE.replace("&", ".audit") + "}\n@media print {"
         + _PRINT.replace("&", ".audit") + "}\n")
