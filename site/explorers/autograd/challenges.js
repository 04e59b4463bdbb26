// What may be tried to reach, and whether a state reaches it. No DOM.

import { run } from "./run.js";
import { isWrong } from "./words.js";

const X = "x = torch.tensor([1., 2.], requires_grad=True)";
const start = (...lines) => String(new URLSearchParams([["code", [X, ...lines].join("\n")]]));

/** The shot after the chosen line; null where the program raises. */
function shown({ code, line }) {
  const shots = run(code);
  return shots.at(-1)?.error ? null : shots.findLast((shot) => shot.line.at <= line) ?? null;
}

export const CHALLENGES = [
  {
    id: "silent", goal: "Make a gradient wrong without an error.", start: start("y = (x * 2).exp()", "y.sum().backward()"),
    reached: (state) => Boolean(shown(state)?.tensors.some(({ grad }) => grad && isWrong(grad))),
  },
  {
    id: "free", goal: "Record five nodes, AccumulateGrad not counted, that save nothing for backward.", start: start("y = x.exp()"),
    reached(state) {
      const shot = shown(state);
      const nodes = (shot?.nodes ?? []).filter(({ variable }) => !variable);
      return nodes.length >= 5 && shot.bytes === 0 && !nodes.some(({ freed }) => freed);
    },
  },
];
