// A shape to type or to step: a text field, and beside it one spin button per dim.

import { h, put } from "../explorer.js";
import { parseShape } from "./views.js";

const MOST = 6;

/**
 * One operand's shape. Up and Down change the size of a dim, Page Up and Page Down double and halve it,
 * Left and Right move among the dims. give(shape) hears of every change; want(grad) of whether it needs a gradient.
 */
export function stepper(name, give, want) {
  const id = `mm-${name}`;
  let shape = [];
  const field = h("input", {
    id, type: "text", size: 12, maxlength: 40, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-help`,
    oninput: () => {
      const typed = parseShape(field.value);
      field.setAttribute("aria-invalid", typed === null);
      help.textContent = typed ? "" : "sizes with commas, at most six of them";
      if (typed) give(typed);
    },
    onblur: () => show(shape, grad.hidden ? null : box.checked),
  });
  const help = h("span", { id: `${id}-help`, class: "ut-soft" });
  const set = (dim, size) => give(shape.toSpliced(dim, 1, Math.max(0, Math.min(99999, size))));
  const dims = Array.from({ length: MOST }, (_, dim) => {
    const button = (sign, by) => h("button", { type: "button", tabindex: -1, "aria-hidden": "true", onclick: () => set(dim, shape[dim] + by) }, sign);
    const value = h("span", {
      class: "mm-size", role: "spinbutton", tabindex: -1, "aria-label": `${name}, dim ${dim}`, "aria-valuemin": 0, "aria-valuemax": 99999,
      onkeydown: (event) => key(event, dim), onfocus: () => rove(dim), onclick: () => value.focus(),
    });
    return { element: h("span", { class: "mm-dim" }, button("−", -1), value, button("+", 1)), value };
  });
  function rove(to) {
    dims.forEach(({ value }, dim) => { value.tabIndex = dim === to ? 0 : -1; });
  }
  function key(event, dim) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const size = shape[dim];
    const next = { ArrowUp: size + 1, ArrowDown: size - 1, PageUp: size * 2, PageDown: Math.floor(size / 2) }[event.key];
    const to = { ArrowLeft: dim - 1, ArrowRight: dim + 1, Home: 0, End: shape.length - 1 }[event.key];
    if (next === undefined && to === undefined) return;
    event.preventDefault();
    if (next !== undefined) set(dim, next);
    else if (to >= 0 && to < shape.length) dims[to].value.focus();
  }
  const row = h("span", { class: "mm-dims", role: "group", "aria-label": `Sizes of ${name}` }, dims.map((dim) => dim.element));
  const box = h("input", { type: "checkbox", onchange: () => want(box.checked) });
  const grad = h("label", { class: "mm-grad" }, box, "requires_grad");
  const element = h("div", { class: "mm-field" }, h("label", { for: id, class: "mm-name" }, name), field, row, help, grad);
  /** grad is null where it makes no difference. */
  function show(now, wants = null) {
    element.hidden = now === null;
    if (now === null) return;
    shape = now;
    grad.hidden = wants === null;
    box.checked = Boolean(wants);
    if (document.activeElement !== field) {
      field.value = shape.join(", ");
      field.setAttribute("aria-invalid", false);
      put(help, shape.length ? null : "0-D: a single number");
    }
    dims.forEach(({ element: cell, value }, dim) => {
      cell.hidden = dim >= shape.length;
      put(value, String(shape[dim] ?? ""));
      value.setAttribute("aria-valuenow", shape[dim] ?? 0);
    });
    if (!dims.some(({ value }, dim) => value.tabIndex === 0 && dim < shape.length)) rove(0);
  }
  return { element, show };
}
