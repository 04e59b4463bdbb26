// What may be tried to reach, and whether a state reaches it. No DOM.

import { alone, cut, layersOf, meshOf, peakOf } from "./moments.js";

export const CHALLENGES = [
  {
    id: "tight", goal: "On four ranks and with FSDP, let no rank ever hold 45 % of what one rank would need alone.", start: "strategy=fsdp&ranks=4&width=8&hidden=16&blocks=2&wrap=model",
    reached: (state) => state.strategy === "fsdp" && state.ranks === 4 && peakOf(state).bytes < 0.45 * alone(state),
  },
  {
    id: "empty", goal: "Cut a weight that has more rows than there are ranks, and let a rank get none of them.", start: "strategy=fsdp&ranks=4&width=8&hidden=16&blocks=1&wrap=layer",
    reached(state) {
      const { shards } = meshOf(state);
      return state.strategy === "fsdp" && layersOf(state).some(({ rows }) => rows > shards && cut(rows, shards).some(([a, b]) => a === b));
    },
  },
];
