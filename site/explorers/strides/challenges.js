// What may be tried to reach, and whether a state reaches it. No DOM.

import { address, indices, product, viewed } from "./layout.js";
import { history } from "./ops.js";

const now = (state) => history(state).slice(0, state.step + 1);

export const CHALLENGES = [
  {
    id: "broken", goal: "Make view(-1) impossible, without copying anything.", start: "shape=3x4",
    reached(state) {
      const steps = now(state);
      const { layout } = steps.at(-1);
      return !steps.some(({ copied }) => copied) && product(layout.size) > 0 && !viewed(layout, [product(layout.size)]).stride;
    },
  },
  {
    id: "one", goal: "Give a tensor twelve elements that are all the same cell.", start: "shape=3x4",
    reached(state) {
      const { layout } = now(state).at(-1);
      const cells = new Set(indices(layout.size).map((index) => address(layout, index)));
      return product(layout.size) >= 12 && cells.size === 1;
    },
  },
];
