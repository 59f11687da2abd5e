"""The script that plays parts of a sound: it cuts them out of the waves that stand in the page, and asks for nothing else."""

from __future__ import annotations

# A page's script can hold no markup, hence no less-than sign: comparisons are written the other way round.
LISTEN = """(() => {
"use strict";
const SIZE = 1024, HOP = 256, TURN = 2 * Math.PI / SIZE;
const SOURCES = {adversarial: "after the attack", clean: "before the attack", change: "the change alone"};
const MODES = {alone: "this part alone", rest: "all the rest"};
const cosines = Float64Array.from({length: SIZE}, (_, i) => Math.cos(TURN * i));
const sines = Float64Array.from({length: SIZE}, (_, i) => Math.sin(TURN * i));
const hann = cosines.map((c) => 0.5 - 0.5 * c);

const fourier = (re, im) => {
  for (let i = 1, j = 0; SIZE > i; i++) {
    let bit = SIZE / 2;
    for (; j & bit; bit /= 2) j -= bit;
    j += bit;
    if (j > i) {
      [re[i], re[j]] = [re[j], re[i]];
      [im[i], im[j]] = [im[j], im[i]];
    }
  }
  for (let half = 1; SIZE > half; half *= 2) {
    const step = SIZE / (2 * half);
    for (let start = 0; SIZE > start; start += 2 * half) {
      for (let k = 0; half > k; k++) {
        const c = cosines[k * step], s = -sines[k * step], a = start + k, b = a + half;
        const x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    }
  }
};

const decoded = (audio) => {
  const text = atob(audio.getAttribute("src").split(",")[1]);
  const bytes = new DataView(Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer);
  return Float64Array.from({length: (bytes.byteLength - 44) / 2}, (_, i) => bytes.getInt16(44 + 2 * i, true) / 32768);
};

// Time-frequency cells of the chosen parts are kept, all others are silenced; windows overlap and are divided out again.
const cutOut = (one, wave, parts) => {
  const n = wave.length, total = SIZE + n + HOP;
  const sum = new Float64Array(total), weight = new Float64Array(total);
  const padded = new Float64Array(total);
  padded.set(wave, SIZE / 2);
  const wanted = new Set(parts), rows = one.cells.length / one.bands;
  for (let at = 0; n >= at; at += HOP) {
    for (let i = 0; SIZE > i; i++) weight[at + i] += hann[i] * hann[i];
    const row = Math.min(rows - 1, Math.floor(at / one.rate / one.seconds * rows));
    const keep = one.bandOf.map((band) => band >= 0 && wanted.has(one.cells[row * one.bands + band]) ? 1 : 0);
    if (!keep.includes(1)) continue;
    const re = Float64Array.from({length: SIZE}, (_, i) => padded[at + i] * hann[i]), im = new Float64Array(SIZE);
    fourier(re, im);
    for (let i = 0; SIZE > i; i++) {
      const kept = keep[Math.min(i, SIZE - i)] / SIZE;
      re[i] *= kept;
      im[i] *= kept;
    }
    fourier(im, re);
    for (let i = 0; SIZE > i; i++) sum[at + i] += re[i] * hann[i];
  }
  return Float64Array.from({length: n}, (_, i) => sum[SIZE / 2 + i] / weight[SIZE / 2 + i]);
};

const samples = (one, mode, parts, source) => {
  const wave = one.wave(source);
  if (mode === "whole") return wave;
  const alone = cutOut(one, wave, [].concat(parts));
  return mode === "alone" ? alone : wave.map((value, i) => value - alone[i]);
};

const file = (wave, rate) => {
  const bytes = new DataView(new ArrayBuffer(44 + 2 * wave.length));
  const write = (at, words) => Array.from(words).forEach((c, i) => bytes.setUint8(at + i, c.charCodeAt(0)));
  write(0, "RIFF");
  bytes.setUint32(4, 36 + 2 * wave.length, true);
  write(8, "WAVEfmt ");
  [[16, 16, 4], [20, 1, 2], [22, 1, 2], [24, rate, 4], [28, 2 * rate, 4], [32, 2, 2], [34, 16, 2], [40, 2 * wave.length, 4]]
    .forEach(([at, value, size]) => bytes[size === 4 ? "setUint32" : "setUint16"](at, value, true));
  write(36, "data");
  wave.forEach((value, i) => bytes.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(value * 32768))), true));
  return new Blob([bytes.buffer], {type: "audio/wav"});
};

const read = (box) => {
  const given = box.dataset, rate = Number(given.rate), known = {};
  const one = {box, rate, place: box.closest(".case"), times: {}, wave: (source) => {
    known[source] = known[source] || decoded(box.querySelector(`[data-source="${source}"]`));
    return known[source];
  }};
  box.querySelectorAll("audio").forEach((audio) => { one.times[audio.dataset.source] = audio.getAttribute("aria-label"); });
  if (given.cells) {
    const edges = given.hertz.split(" ").map(Number);
    one.cells = [];
    given.cells.split(" ").forEach((run) => {
      const [part, times] = run.split(":").map(Number);
      for (let i = 0; times > i; i++) one.cells.push(part);
    });
    one.names = JSON.parse(given.names);
    one.seconds = Number(given.seconds);
    one.bands = Number(given.bands);
    one.bandOf = Array.from({length: SIZE / 2 + 1}, (_, i) => edges.filter((edge) => i * rate / SIZE >= edge).length - 1)
      .map((band) => one.bands > band ? band : -1);
  }
  return one;
};

const make = (name, words, more) => Object.assign(document.createElement(name), {textContent: words}, more);
const drawn = (name, view, more) => {
  const element = document.createElementNS(view.namespaceURI, name);
  Object.entries(more).forEach(([key, value]) => element.setAttribute(key, value));
  return view.appendChild(element);
};

const player = new Audio();
let now = null;
let address = null;

const stop = () => {
  player.pause();
  if (!now) return;
  now.button.setAttribute("aria-pressed", "false");
  now.one.place.querySelectorAll(".playing, .playhead").forEach((mark) => mark.remove());
  now.one.said.textContent = "";
  now.one.stop.disabled = true;
  now = null;
};

const moved = () => {
  if (!now) return;
  const share = player.duration ? player.currentTime / player.duration : 0;
  now.heads.forEach(([head, width]) => head.setAttribute("transform", `translate(${share * width} 0)`));
  requestAnimationFrame(moved);
};

const play = (one, button, mode, parts, source, words) => {
  const again = now && now.button === button && now.parts.join() === parts.join();
  stop();
  if (again) return;
  const before = address;
  address = URL.createObjectURL(file(samples(one, mode, parts, source), one.rate));
  player.src = address;
  if (before) URL.revokeObjectURL(before);
  const number = one.place.id.split("-")[1];
  one.place.querySelectorAll(".cut, .who .view").forEach((view) => parts.forEach((part) => {
    drawn("use", view, {href: `#p${number}-${part}`, class: `playing under ${mode}`});
    drawn("use", view, {href: `#p${number}-${part}`, class: `playing ${mode}`});
  }));
  const heads = Array.from(one.place.querySelectorAll(".inputs .view")).map((view) => {
    const {width, height} = view.viewBox.baseVal;
    return [drawn("path", view, {d: `M0 0v${height}`, class: "playhead"}), width];
  });
  button.setAttribute("aria-pressed", "true");
  one.said.textContent = "Playing: " + words;
  one.stop.disabled = false;
  now = {one, button, parts, heads};
  player.play().catch((error) => {
    if (error.name === "AbortError") return;
    stop();
    one.said.textContent = "This browser does not play it: " + error.message;
  });
  moved();
};

const toPlay = (words, act) => {
  const button = make("button", words, {type: "button", className: "play"});
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => act(button));
  return button;
};

const choice = (name, options) => {
  const list = make("select", "");
  list.setAttribute("aria-label", name);
  Object.entries(options).forEach(([value, words]) => list.append(make("option", words, {value})));
  return list;
};

const partAt = (one, view, event) => {
  const box = view.getBoundingClientRect(), rows = one.cells.length / one.bands;
  const inside = (share, many) => Math.max(0, Math.min(many - 1, Math.floor(share * many)));
  const row = inside((event.clientX - box.left) / box.width, rows);
  return one.cells[row * one.bands + inside((box.bottom - event.clientY) / box.height, one.bands)];
};

const withParts = (one) => {
  const sources = Object.fromEntries(Object.entries(SOURCES).filter(([source]) => source in one.times)
    .map(([source, words]) => [source, "from the sound " + words]));
  if (sources.change) sources.change = "from " + one.times.change.replace("only ", "");
  const present = new Set(one.cells);
  const named = Object.fromEntries(one.names.map((name, part) => [part, name]).filter(([part]) => present.has(part)));
  const part = choice("Part", named), mode = choice("What of it", MODES), source = choice("From which sound", sources);
  const start = (button, parts, words) => play(one, button, mode.value, parts, source.value,
    `${mode.value === "alone" ? "" : "all but "}${words}, ${sources[source.value]}`);
  const button = toPlay("play the part", () => start(button, [Number(part.value)], one.names[part.value]));
  const hint = make("span", "or click it in a picture", {className: "aside"});
  const row = make("div", "", {className: "controls"});
  row.append(make("span", "A part:", {className: "what"}), part, mode, source, button, hint);
  part.addEventListener("change", stop);
  [mode, source].forEach((list) => list.addEventListener("change", stop));
  const number = one.place.id.split("-")[1];
  one.place.querySelectorAll(".cut, .who .view").forEach((view) => {
    view.classList.add("clickable");
    const hover = drawn("use", view, {class: "hover"});
    view.addEventListener("pointermove", (event) => hover.setAttribute("href", `#p${number}-${partAt(one, view, event)}`));
    view.addEventListener("pointerleave", () => hover.removeAttribute("href"));
    view.addEventListener("click", (event) => {
      const hit = partAt(one, view, event);
      part.value = hit;
      start(button, [hit], one.names[hit]);
    });
  });
  one.place.querySelectorAll(".who").forEach((who) => {
    const name = who.querySelector("b").textContent;
    const best = toPlay("hear these", () => {
      const shown = Array.from(who.querySelectorAll(".part.on use"));
      const parts = shown.map((use) => Number(use.getAttribute("href").split("-")[1]));
      start(best, parts, `the ${parts.length} best of ${name}`);
    });
    best.setAttribute("aria-label", `Hear the best parts of ${name}`);
    if (who.querySelector(".part")) who.querySelector("figcaption").append(best);
  });
  return row;
};

const ready = (one) => {
  const row = make("div", "", {className: "controls"});
  row.append(make("span", "Listen:", {className: "what"}));
  Object.entries(one.times).forEach(([source, words]) => row.append(
    toPlay(words, (button) => play(one, button, "whole", [], source, words))));
  one.stop = make("button", "stop", {type: "button", className: "stop", disabled: true, title: "Esc"});
  one.stop.addEventListener("click", stop);
  row.append(one.stop);
  one.said = make("p", "", {className: "said"});
  one.said.setAttribute("role", "status");
  one.box.querySelector(".heard").hidden = true;
  one.box.prepend(row, ...(one.cells ? [withParts(one)] : []), one.said);
};

const all = Array.from(document.querySelectorAll(".listen")).map(read);
all.forEach(ready);
player.addEventListener("ended", stop);
addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
window.whytrustListen = {
  samples: (number, mode, parts, source) => Array.from(samples(all[number], mode, parts, source)),
  playing: () => now && {parts: now.parts, paused: player.paused, time: player.currentTime},
};
})();"""
