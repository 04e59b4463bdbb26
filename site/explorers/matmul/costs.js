// FLOPs, bytes moved and bytes copied, as a bar and as numbers.

import { h } from "../explorer.js";
import { DTYPES, bytes, count, ratio } from "./words.js";

/** Elements that each step moves, added up. copied: what clone() wrote. */
export function moved(plan) {
  const total = { read: 0, write: 0, copyRead: 0, copied: 0, flops: 0 };
  for (const { copy, read = 0, write = 0, flops = 0 } of plan.steps) {
    total.read += read;
    total.write += write;
    total.flops += flops;
    total.copyRead += copy?.read ?? 0;
    total.copied += copy?.elements ?? 0;
  }
  return total;
}

export function costs(plan, shapes, dtype) {
  const { read, write, copyRead, copied, flops } = moved(plan);
  const size = DTYPES[dtype];
  const all = (read + write + copyRead + copied) * size;
  if (all === 0) return h("p", { class: "ut-soft" }, "Nothing moves.");
  const parts = [
    ["clone() reads", copyRead, "copy thin"], ["clone() writes", copied, "copy"], ["kernels read", read, "read"], ["kernels write", write, "write"],
  ].filter(([, elements]) => elements);
  const bar = h("div", { class: "mm-bytes", "aria-hidden": "true" }, parts.map(([, elements, look]) => h("i", { class: look, style: `flex:${elements}` })));
  const key = h("p", { class: "mm-key" }, parts.map(([name, elements, look]) => h("span", {}, h("i", { class: look }), `${name} ${bytes(elements * size)}`)));
  const rows = [];
  const add = (name, ...shown) => rows.push(h("div", {}, h("dt", {}, name), h("dd", {}, shown)));
  const work = plan.steps.filter((step) => step.kernel);
  const product = work.length === 1 && plan.kernel ? [plan.batch, plan.m, plan.k, plan.n].filter((factor, i) => i || factor !== 1) : null;
  add("FLOPs", h("b", {}, count(flops)), product ? h("span", { class: "ut-soft" }, ` = 2 · ${product.join(" · ")}`) : "");
  add("Bytes moved", h("b", {}, bytes(all)), h("span", { class: "ut-soft" }, " if each is moved once"));
  add("Copied", copied ? [h("b", { class: "no" }, bytes(copied * size)), h("span", { class: "ut-soft" }, ` written by clone(): ${times(plan, shapes)}`)] : h("b", {}, "nothing"));
  add("FLOPs per byte", h("b", {}, ratio(flops / all)), copied ? h("span", { class: "ut-soft" }, `, without the copies ${ratio(flops / ((read + write - copied + copyRead) * size))}`) : "");
  return [bar, key, h("dl", { class: "ut-facts" }, rows)];
}

/** What is copied, and how many times its size. */
function times(plan, shapes) {
  return plan.steps.filter((step) => step.copy).map(({ copy }) => {
    const own = copy.on.length === 1 ? shapes["ABC".indexOf(copy.on)].reduce((product, n) => product * n, 1) : copy.elements;
    const often = ratio(copy.elements / own);
    return `${copy.on || "the result"} ${often === "1" ? "once" : `${often} times`}`;
  }).join(", ");
}
