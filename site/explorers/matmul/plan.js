// What follows from two or three shapes and the way they meet: the plan, the table of dims, the chosen element. No DOM.

import { BATCH, aligned, equationOf, letters } from "./axes.js";
import { einsum, operandsOf } from "./einsum.js";
import { FUNCTIONS } from "./products.js";

export const countOf = ({ mode, eq }) => (mode === "einsum" ? Math.min(operandsOf(eq), 3) : 2);

/** All that follows from a state of the page. */
export function planOf({ mode, eq, shapes: all, grads, at }) {
  const shapes = all.slice(0, countOf({ mode, eq }));
  const named = mode === "einsum" ? null : letters(...shapes, mode === "linear");
  const plan = mode === "einsum" ? einsum(eq, shapes) : FUNCTIONS[mode](...shapes, grads);
  const [operands, out] = named ? [named.slice(0, 2), named[2]] : [plan.operands, plan.out];
  const fits = named && shapes.every((shape) => shape.length);
  const order = named ? [...out.filter((letter) => letter !== "j"), ..."kj"].filter((letter) => fits ? true : out.includes(letter)) : plan.out && [...plan.out, ...plan.summed];
  if (fits && !order.includes("i")) order.splice(-2, 0, "i");
  const ghosts = fits ? [shapes[0].length === 1 ? "i" : null, shapes[1].length === 1 ? "j" : null] : [];
  const table = operands && aligned({ operands, shapes, out, order, ghosts, strict: fits ? "k" : "", batch: fits && !plan.folded ? out.filter((letter) => BATCH.includes(letter)) : [] });
  const element = (out ?? []).map((_, dim) => Math.min(at[dim] ?? 0, Math.max((plan.shape?.[dim] ?? 1) - 1, 0)));
  return { mode, shapes, plan, operands, out, table, at: element, equation: named ? equationOf(named) : eq };
}
