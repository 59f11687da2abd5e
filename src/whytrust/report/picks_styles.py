"""The look of a page of picked explanations, on top of that of audits; every rule begins with .picks."""

from whytrust.report.words import BLUE

_RULES = f"""
& .card {{ scroll-margin-top: 10px; }}
& .so-far {{ display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; margin: .5em 0; color: #3d444d;
  font-size: .93em; }}
& .meter {{ display: inline-flex; flex: none; width: 220px; max-width: 100%; height: 12px; border-radius: 3px; overflow: hidden;
  background: #e6e8ec; }}
& .meter.small {{ width: 110px; height: 9px; vertical-align: 1px; }}
& .meter .before {{ background: #9db7c9; }}
& .meter .fill {{ background: {BLUE}; }}
& .chips {{ line-height: 2; }}
& .chip {{ border: 1px solid #3a8fc7; background: #e3f0f9; color: #00456c; border-radius: 4px; padding: 0 7px;
  font-size: .93em; display: inline-block; line-height: 1.6; max-width: 100%; }}
& .says {{ font-weight: 600; margin-top: .8em; }}
& h4 {{ font-size: .93em; margin: .8em 0 .3em; font-weight: 650; }}
& .sides {{ display: grid; gap: 8px 32px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }}
& .sides > .side {{ min-width: 0; }}
& .sides > .side + .side {{ border-inline-start: 1px solid #e3e6ea; padding-inline-start: 24px; }}
& .important {{ max-width: 600px; }}
& .important th, & .important td {{ vertical-align: middle; padding: .3em .8em .3em 0; }}
& .important .example {{ display: inline-block; width: 40px; height: 40px; object-fit: contain; flex: none;
  image-rendering: pixelated; border-radius: 3px; }}
& .important .number {{ white-space: nowrap; }}
& .important .weight {{ width: 124px; }}
& .aside bdi {{ font-style: normal; }}
"""

_PHONE = """
& .sides > .side + .side { border-inline-start: 0; padding-inline-start: 0; border-top: 1px solid #e3e6ea; padding-top: 12px; }
& .important .weight { width: 74px; }
& .meter.small { width: 64px; }
"""

PICKS = _RULES.replace("&", ".picks") + "@media screen and (max-width: 760px) {" + _PHONE.replace("&", ".picks") + "}\n"
