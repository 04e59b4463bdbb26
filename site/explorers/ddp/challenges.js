// What may be tried to reach, and whether a state reaches it. No DOM.

import { build, parseLayers, parseTimes, timeline } from "./buckets.js";
import { ledger } from "./ledger.js";

const GIB = 2 ** 30;

export const CHALLENGES = [
  {
    id: "hide", goal: "Hide 95 % of the communication behind backward.", start: "panel=overlap&model=equal&cap=default",
    reached({ panel, overlap }) {
      if (panel !== "overlap") return false;
      const { layers, times, plan, cap } = overlap;
      const shapes = parseLayers(layers);
      const { hidden, busy } = timeline(build(shapes, parseTimes(times, shapes.length)), { ...overlap, plan: plan === "cap" ? cap : plan });
      return hidden >= 0.95 * busy;
    },
  },
  {
    id: "fit", goal: "Train 70 billion parameters with Adam, in 80 GiB a rank before activations.", start: "panel=zero&params=70B&ranks=8&stage=0",
    reached: ({ panel, zero }) => panel === "zero" && zero.params >= 70e9 && zero.optimizer === "adam" && ledger(zero)[zero.stage].total <= 80 * GIB,
  },
];
