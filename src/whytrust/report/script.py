"""The page's only script: it moves the gallery's k and plays parts of sounds. Without it the page shows k = 3."""

from __future__ import annotations

from whytrust.report.listen_script import LISTEN

SCRIPT = """(() => {
"use strict";
const slider = document.getElementById("k");
if (slider) {
  const all = (what) => Array.from(document.querySelectorAll(what));
  const show = (k) => {
    all(".k-shown").forEach((place) => { place.textContent = k; });
    all(".part").forEach((part) => part.classList.toggle("on", k >= Number(part.dataset.rank)));
    all("[data-bits]").forEach((who) => {
      const bits = who.dataset.bits;
      const now = bits[Math.min(k, bits.length) - 1];
      who.classList.toggle("hit", now === "1");
      who.classList.toggle("miss", now === "0");
      who.classList.toggle("unknown", now === "?");
    });
    all("[data-chances]").forEach((who) => {
      const chances = who.dataset.chances.split(" ");
      who.textContent = chances[Math.min(k, chances.length) - 1];
    });
    slider.setAttribute("aria-valuetext", k + " " + slider.dataset.unit + (k === 1 ? "" : "s"));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  document.getElementById("k-control").hidden = false;
  show(Number(slider.value));
}
let opened = [];
addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details:not([open])"));
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
""" + LISTEN
