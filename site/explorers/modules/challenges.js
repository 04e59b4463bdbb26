// What may be tried to reach, and whether a state reaches it. No DOM.

import { build, unpack } from "./graph.js";
import { counts } from "./walks.js";

const told = ({ model }) => counts(build(unpack(model)));

export const CHALLENGES = [
  {
    id: "tied", goal: "Make a checkpoint that saves one tensor under two keys.", start: "model=embed-Embedding-10-4*out-Linear-4-10",
    reached(state) {
      const { keys, tensors } = told(state);
      return keys > tensors;
    },
  },
  {
    id: "hidden", goal: "Hide a layer: let the model hold numbers that no walk finds.", start: "model=stem-Linear-8-6*act-ReLU*head-Linear-6-2",
    reached: (state) => told(state).hidden > 0,
  },
];
