// The knobs: sliders and switches in two groups, and the samples, any of which can be made slow.

import { h, put } from "../explorer.js";
import { split } from "./run.js";

/** name → what stands beside it, least, most. */
export const RANGES = {
  batch_size: ["", 1, 8],
  num_workers: ["", 0, 4],
  prefetch_factor: ["", 1, 4],
  samples: ["samples", 1, 32],
  load: ["a sample takes", 1, 9],
  late: ["a slow one takes", 1, 60],
  work: ["consumer, per batch", 0, 40],
};
const SWITCHES = ["in_order", "drop_last"];

/** turn({name: value}) hears of every change. */
export function knobs(turn) {
  const inputs = {};
  const slider = (name) => {
    const [words, min, max] = RANGES[name];
    const value = h("b", { "aria-hidden": "true" }); // the slider says its value itself
    const input = h("input", { id: `dl-${name}`, type: "range", min, max, oninput: () => turn({ [name]: Number(input.value) }) });
    inputs[name] = { input, value };
    return h("div", { class: "dl-knob" }, h("label", { for: `dl-${name}` }, words || h("code", {}, name)), value, input);
  };
  const toggle = (name) => {
    const input = h("input", { type: "checkbox", onchange: () => turn({ [name]: input.checked }) });
    inputs[name] = { input };
    return h("label", { class: "dl-switch" }, input, h("code", {}, name));
  };
  const cells = Array.from({ length: RANGES.samples[2] }, (_, sample) => h("button", {
    type: "button", tabindex: sample ? -1 : 0, onclick: () => flip(sample), onfocus: () => rove(sample),
  }));
  const boxes = cells.map(() => h("span", { class: "dl-box" }));
  let slow = [];
  let length = 0;
  const flip = (sample) => turn({ slow: slow.includes(sample) ? slow.filter((i) => i !== sample) : [...slow, sample].sort((a, b) => a - b) });
  function rove(to) {
    cells.forEach((cell, i) => { cell.tabIndex = i === to ? 0 : -1; });
  }
  function key(event) {
    const at = cells.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (to >= 0 && to < length) cells[to].focus();
  }
  const row = h("div", { class: "dl-samples", role: "group", "aria-label": "Slow samples", onkeydown: key });
  const note = h("span", {});
  const group = (name, ...parts) => h("fieldset", {}, h("legend", {}, name), parts);
  const element = h("section", { class: "ut-panel dl-knobs", "aria-label": "Knobs" },
    h("div", { class: "dl-groups" },
      group("DataLoader", ["batch_size", "num_workers", "prefetch_factor"].map(slider), h("div", { class: "dl-switches" }, SWITCHES.map(toggle))),
      group("Your data and your model", ["samples", "load", "late", "work"].map(slider))),
    h("p", { class: "ut-soft dl-note" }, note), row);

  function show(state) {
    ({ slow } = state);
    length = state.samples;
    for (const name of Object.keys(RANGES)) {
      inputs[name].input.value = state[name];
      put(inputs[name].value, String(state[name]));
    }
    for (const name of SWITCHES) inputs[name].input.checked = state[name];
    for (const name of ["prefetch_factor", "in_order"]) {
      inputs[name].input.closest("div.dl-knob, label").classList.toggle("moot", !state.num_workers);
      inputs[name].input.disabled = !state.num_workers;
    }
    const batches = split(state);
    const kept = batches.flat().length;
    put(note, "The samples, batch by batch. Press one to make it slow", kept < length ? `; the last ${length - kept} are dropped.` : ".");
    const drawn = kept < length ? [...batches, Array.from({ length: length - kept }, (_, i) => kept + i)] : batches;
    // The buttons stay where they are while their box does, so that a press keeps the focus.
    const shape = drawn.map((list) => list.length).join();
    if (row.dataset.shape !== shape) {
      row.dataset.shape = shape;
      put(row, drawn.map((list, i) => put(boxes[i], list.map((sample) => cells[sample]))));
    }
    boxes.forEach((box, i) => box.classList.toggle("dropped", i >= batches.length));
    cells.forEach((cell, sample) => {
      const pressed = slow.includes(sample);
      cell.setAttribute("aria-pressed", pressed);
      cell.setAttribute("aria-label", `sample ${sample}, slow`);
      put(cell, String(sample));
    });
    if (!cells.some((cell, i) => cell.tabIndex === 0 && i < length)) rove(0);
  }
  return { element, show };
}
