// What may be tried to reach, and whether a state reaches it. No DOM.

import { dense, plan } from "./loops.js";
import { route } from "./road.js";

const contiguous = (size, stride) => dense(size, size.map((_, d) => size.length - 1 - d)).every((step, d) => size[d] === 1 || stride[d] === step);

export const CHALLENGES = [
  {
    id: "below", goal: "Compute x + 1 without a kernel of autograd.", start: "call=add&x=grad&around=no_grad",
    reached(state) {
      if (state.panel !== "road" || state.call !== "add") return false;
      const { stops, error } = route(state);
      return !error && !stops.some(({ key }) => key.startsWith("Autograd"));
    },
  },
  {
    id: "single", goal: "Add two operands of 12 elements or more, neither contiguous, in a single loop.", start: "panel=loops&size=3x4&a=4,1&b=1,3",
    reached({ panel, size, a, b }) {
      if (panel !== "loops" || size.reduce((n, one) => n * one, 1) < 12) return false;
      const { loops } = plan([{ size, stride: a }, { size, stride: b }]);
      return loops.length === 1 && !contiguous(size, a) && !contiguous(size, b);
    },
  },
];
