// What the three panels share: a slider over given values, a typed value, rows of one choice with bars.

import { choice, h, put } from "../explorer.js";

/** A slider; `values` in rising order, `say` puts one into words. A value between two of them stays as it is. */
export function slider({ label, values, say, give }) {
  const output = h("span", { class: "dd-value", "aria-hidden": "true" });
  const input = h("input", {
    type: "range", min: 0, max: values.length - 1, step: 1, "aria-label": label, oninput: () => give(values[input.value]),
  });
  const element = h("label", { class: "dd-slider" }, h("span", {}, label), input, output);
  function show(value, all = values) {
    values = all;
    input.max = all.length - 1;
    const past = all.findIndex((one) => one >= value);
    input.value = past < 0 ? all.length - 1 : past;
    output.textContent = say(value);
    input.setAttribute("aria-valuetext", say(value));
  }
  return { element, input, show };
}

/** A text field. `parse` gives null for what makes no sense; then `help` is shown and nothing changes. */
export function field({ id, label, size, help, parse, give }) {
  const note = h("span", { id: `${id}-help`, class: "ut-soft", "aria-live": "polite" });
  const mark = (bad) => {
    input.setAttribute("aria-invalid", bad);
    note.textContent = bad ? help : "";
  };
  let shown = "";
  const input = h("input", {
    id, type: "text", size, autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-label": label, "aria-describedby": `${id}-help`,
    oninput: () => {
      const value = parse(input.value);
      mark(value === null);
      if (value !== null) give(value);
    },
    onblur: () => show(shown),
  });
  function show(text) {
    shown = text;
    if (document.activeElement === input) return;
    input.value = text;
    mark(false);
  }
  return { input, note, show };
}

/** One of several, a row each, with a bar of named parts. `options` are [value, ...label]. */
export function barRows({ label, name, options, pick }) {
  const rows = options.map(() => ({ bar: h("span", { class: "dd-bar", "aria-hidden": "true" }), said: h("span", { class: "dd-said" }) }));
  const picked = choice({
    label, name, pick, look: "dd-rows",
    options: options.map(([value, ...shown], i) => [value, h("span", { class: "dd-name" }, shown), rows[i].bar, rows[i].said]),
  });
  /** `list` has per row { parts: [[class, share of the widest]], said }. */
  function show(value, list) {
    picked.show(value);
    list.forEach(({ parts, said }, i) => {
      fillBar(rows[i].bar, parts);
      put(rows[i].said, said);
    });
  }
  return { element: picked.element, show };
}

export const fillBar = (bar, parts) =>
  put(bar, parts.map(([kind, share]) => h("i", { class: kind, style: `width:${100 * share}%` })));

/** What the parts of the bars are. */
export const key = (list) => h("p", { class: "dd-key" }, list.map(([kind, name]) => h("span", {}, h("i", { class: kind }), name)));
