// What may be tried to reach, and whether a state reaches it. No DOM.

import { moved } from "./costs.js";
import { planOf } from "./plan.js";
import { numel } from "./views.js";
import { DTYPES } from "./words.js";

const MIB = 2 ** 20;

export const CHALLENGES = [
  {
    id: "copies", goal: "Make A @ B copy ten times as many numbers as A and B have together.", start: "a=8x16x32&b=32x24",
    reached(state) {
      const { plan, shapes } = planOf(state);
      return state.mode === "matmul" && Boolean(plan.shape) && moved(plan).copied >= 10 * shapes.reduce((sum, shape) => sum + numel(shape), 0) && moved(plan).copied > 0;
    },
  },
  {
    id: "busy", goal: "Reach 100 FLOPs per byte moved, with operands of at most 1 MiB each.", start: "a=1x512&b=512x512",
    reached(state) {
      const { plan, shapes } = planOf(state);
      if (!plan.shape || shapes.some((shape) => numel(shape) * DTYPES[state.dtype] > MIB)) return false;
      const { read, write, copyRead, copied, flops } = moved(plan);
      return flops >= 100 * (read + write + copyRead + copied) * DTYPES[state.dtype] && flops > 0;
    },
  },
];
