// What may be tried to reach, and whether a state reaches it. No DOM.

import { cutOf, programOf, savedBytes } from "./reading.js";

function shown({ program, graph, stage, cut }) {
  const frame = programOf(program).frames[graph - 1];
  return stage === "partition" && frame ? { frame, made: cutOf(frame, cut) } : null;
}

export const CHALLENGES = [
  {
    id: "wrong", goal: "Find a cut that makes gradients wrong.", start: "program=mlp&stage=partition&cut=1.0",
    reached: (state) => Boolean(shown(state)?.made.wrong),
  },
  {
    id: "third", goal: "Save at most a third of what default_partition saves, with right gradients.", start: "program=loop&stage=partition&cut=default",
    reached(state) {
      const found = shown(state);
      if (!found || found.made.wrong) return false;
      const [own, usual] = [found.made, cutOf(found.frame, "default")].map((cut) => savedBytes(found.frame, cut));
      return own !== null && usual > 0 && own * 3 <= usual;
    },
  },
];
