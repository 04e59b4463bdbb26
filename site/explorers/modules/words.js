// How the explorer says things, and models worth a look.

import { plain, takesOnce, takesRecurse } from "./walks.js";
import { tuple } from "./python.js";

export const TRIES = [
  ["one ReLU, two names", "model=stem-Linear-8-6*act-ReLU*block-Sequential*block.0-Linear-6-6*block.1-Tanh*head-Linear-6-2*last_act-is-act"],
  ["tied weights", "model=embed-Embedding-10-4*norm-LayerNorm-4*out-Linear-4-10*out.weight-is-embed.weight*out.bias-None-parameters&call=named_parameters"],
  ["one block, two names", "model=block-Sequential*block.0-Linear-6-6*block.1-ReLU*again-is-block*head-Linear-6-2"],
  ["conv and batch norm", "model=features-Sequential*features.0-Conv2d-3-8-3*features.1-BatchNorm2d-8*features.2-ReLU*head-Linear-8-2&call=state_dict"],
  ["a plain list", "model=stem-Linear-8-6*layers-list*layers.0-Linear-6-6*layers.1-Linear-6-6*head-Linear-6-2&call=named_parameters"],
  ["a buffer not saved", "model=positions-Buffer-16-4*positions-unsaved*scale-Buffer*proj-Linear-4-4&call=state_dict"],
  ["frozen stem", "model=stem-Linear-8-6*stem-frozen*act-ReLU*head-Linear-6-2&call=parameters"],
  ["empty", "model="],
];

/** What an object is: Linear(8, 6), (6, 8), a plain list. */
export const what = (object) => !object ? "None" : object.shape ? tuple(object.shape) : object.kind === "list" ? "plain list" : `${object.kind}(${object.sizes.join(", ")})`;

export const quoted = (path) => `'${path}'`;
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
const named = (path) => path || "the model";

/** The call with its arguments. */
export function written({ call, once, recurse }) {
  const words = [takesRecurse(call) && !recurse && "recurse=False", takesOnce(call) && !once && "remove_duplicate=False"];
  return `model.${call}(${words.filter(Boolean).join(", ")})`;
}

/** Before the first step, at each step, and after the last, in a sentence or two; `hidden` are plain lists. */
export function sentence(events, step, { call, once }, hidden) {
  const beside = hidden.length ? ` No walk comes to ${hidden.join(", ")}: a plain list is an ordinary attribute, whatever it holds.` : "";
  const lazy = call !== "state_dict";
  if (!events.length) return `There is nothing for this walk here.${beside}`;
  if (step === 0) return lazy ? "The walk is lazy: nothing happens before somebody asks for the first." : "The dict is empty. It fills module by module: parameters, buffers, then what is below.";
  if (step > events.length) {
    const passed = events.filter(({ what: kind }) => kind !== "given").length;
    return `The end: ${events.length - passed} given${passed ? `, ${passed} passed over` : ""}.${beside}`;
  }
  const { what: kind, path, object, first } = events[step - 1];
  if (kind === "none") return `${path} is None: an entry without an object. Passed over.`;
  if (kind === "unsaved") return `${path} is a buffer with persistent=False. A checkpoint leaves it out.`;
  if (kind === "seen") {
    return object.shape ? `${path} is the very object that came as ${first}. The memo has it: passed over.`
      : `${path} is the very object that came as ${named(first)}. The memo has it: passed over${plain(call) === "children" ? "" : ", with all below it"}.`;
  }
  if (first !== undefined) {
    return lazy ? `${path} is the object that came as ${named(first)}. No memo is kept: given again.` : `${path} is the object saved as ${first}. Every name gets a key.`;
  }
  if (!path) return "The walk begins with the model itself. Its name is the empty string.";
  if (object.species === "parameters" && !object.trainable && lazy) return `${path}: requires_grad is False, and it is given all the same.`;
  if (!object.shape) return `${path}, ${what(object)}: ${lazy && once ? "not seen before. Into the memo, and given." : "given."}`;
  return `${path}, shape ${tuple(object.shape)}: ${lazy ? "given" : "saved"}.`;
}
