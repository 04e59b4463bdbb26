// The question “view or copy?”: the runs of dimensions, the joints between them, and the answer.

import { h, put } from "../explorer.js";
import { chunks, inferred, product } from "./layout.js";
import { answer, numbers } from "./words.js";

/** Dimensions in their runs, with what holds at each joint; and what each run becomes. */
function runs({ size, stride }, result, shape) {
  const dim = (d) => h("span", { class: "ut-dim" }, h("small", {}, `dim ${d}`), h("b", {}, size[d]), h("small", {}, `stride ${stride[d]}`));
  const joint = (d, to) => h("span", { class: "ut-joint" }, "joins",
    h("small", {}, size[d] === 1 ? "size 1" : stride[to] ? `${stride[d]} = ${stride[d] / stride[to]}·${stride[to]}` : "0 = 0"));
  return chunks({ size, stride }).map(({ from, to, numel, step, ...chunk }, n, list) => {
    const bad = result?.broken?.from === from ? "bad" : "";
    const part = result?.stride ? result.parts[n] : null;
    const becomes = !part ? "" : part.length ? `: as ${part.map((v) => shape[v]).join(" × ")}, stride ${part.map((v) => result.stride[v]).join(", ")}` : ": needs no dimension";
    const dims = Array.from({ length: to - from + 1 }, (_, i) => [i ? joint(from + i - 1, to) : null, dim(from + i)]);
    return [
      n ? h("span", { class: `ut-joint cut ${bad}` }, "breaks", h("small", {}, `${stride[from - 1]} ≠ ${chunk.wanted}`)) : null,
      h("span", { class: `ut-run ${bad}` }, h("span", {}, dims), h("small", {}, `${numel} × step ${step}${becomes}`)),
    ];
  });
}

/** `aim(shape)` is called when somebody asks of another shape, `call(text)` to apply a method. */
export function viewPanel({ aim, call }) {
  let typing = false;
  let asked = [];
  const field = h("input", {
    id: "ut-target", type: "text", size: 12, autocomplete: "off", spellcheck: "false", "aria-describedby": "ut-target-help",
    oninput() {
      const list = numbers(field.value);
      if (list === null) return show.refuse("A shape, such as 3, 4 or −1, 2.");
      typing = true;
      aim(list);
      typing = false;
    },
  });
  const help = h("p", { id: "ut-target-help", class: "ut-help", "aria-live": "polite" });
  const joints = h("div", { class: "ut-joints" });
  const button = (name) => h("button", { type: "button", class: "ut-button", onclick: () => call(`${name}(${asked.join(", ") || "()"})`) });
  const [asView, asReshape] = [button("view"), button("reshape")];
  const element = h("section", { class: "ut-panel", "aria-label": "View or copy" },
    h("p", { class: "ut-ask" }, h("label", { for: "ut-target" }, "view or copy? as shape"), field),
    joints, help, h("p", { class: "ut-tries" }, asView, asReshape));

  function refuse(sentence) {
    field.setAttribute("aria-invalid", "true");
    help.className = "ut-help";
    put(help, sentence);
    asView.disabled = asReshape.disabled = true;
  }

  function show(layout, target) {
    asked = target;
    if (!typing) field.value = target.join(", ");
    const text = target.join(", ") || "()";
    asView.textContent = `view(${text})`;
    asReshape.textContent = `reshape(${text})`;
    const drawn = (...more) => put(joints, product(layout.size) ? runs(layout, ...more) : null);
    let shape;
    try {
      shape = inferred(target, product(layout.size));
    } catch (error) {
      refuse(error.message);
      return drawn();
    }
    const result = answer(layout, shape);
    field.setAttribute("aria-invalid", "false");
    help.className = `ut-help ut-answer ${result.stride ? "" : "no"}`;
    put(help, result.words);
    asView.disabled = !result.stride;
    asReshape.disabled = false;
    return drawn(result, shape);
  }

  show.refuse = refuse;
  return { element, show };
}
