// What a choice and a moment are, in words. No DOM.

import { BATCH, broughtBy, gathers, groupsOf, hasBucket, layersOf, meshOf, paddingOf } from "./moments.js";

export const NAMES = { ddp: "DDP", zero1: "ZeRO-1", zero2: "ZeRO-2", fsdp: "FSDP (ZeRO-3)", hsdp: "HSDP", tp: "tensor parallel", fsdp_tp: "FSDP × tensor parallel" };

export const NOTES = {
  ddp: "Every rank keeps all of it, and all average their gradients at the end of backward.",
  zero1: "Weights and gradients are whole on every rank. But each rank keeps Adam's averages for some of the layers only, and sends round what it made of their weights.",
  zero2: "PyTorch has no class of this name. fully_shard comes near it where it does not reshard after forward: each rank keeps its rows, weights are gathered once, and stay until their gradients are sent.",
  fsdp: "Each rank keeps its rows of everything. A layer's weight is gathered for forward, let go, and gathered again for backward.",
  hsdp: "FSDP in each half of the ranks, and the halves average their gradients. A rank keeps twice what FSDP leaves it, but weights travel within a half only.",
  tp: "Weights are cut and never gathered. Each rank computes with its part, and what travels is activations.",
  fsdp_tp: "Two ranks compute each layer together, as in tensor parallel, and FSDP shares each half among those who have it.",
};

export const bytes = (n) => (n < 10_000 ? `${n.toLocaleString("en")} B` : `${Number((n / 1024).toPrecision(3))} KiB`);

const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

/** Of whom a collective is one: "among ranks 0 2, and 1 3". */
function among(state, dim) {
  const groups = groupsOf(state, dim);
  return groups.length > 1 ? ` It runs in ${groups.length} groups: ranks ${groups.map((group) => group.join(" ")).join(", ")}.` : "";
}

/** A moment: its name, and a sentence or two. */
export function tell(state, moment) {
  const { kind, layers, what, dim, early, from } = moment;
  const names = layersOf(state).map(({ name }) => name);
  const some = layers.length === names.length && names.length > 1 ? "all layers" : list(layers.map((i) => names[i]));
  const it = layers.length > 1 ? "them" : "it";
  const size = bytes(broughtBy(state, moment, 0));
  const padded = Array.from({ length: state.ranks }, (_, rank) => paddingOf(state, rank, layers)).some(Boolean);
  const split = meshOf(state).tensor > 1;
  const [flat, part] = [!gathers(state.strategy), split ? "this rank's part of the weight" : "the whole weight"];
  switch (kind) {
    case "rest": return ["Between two steps", "What is here now stays from step to step."];
    case "all_gather": return [`all_gather: the ${layers.length > 1 ? "weights" : "weight"} of ${some}`,
      `Each rank brings its rows, ${size}${padded ? " with padding" : ""}, and gets everybody's, in a buffer.${early ? " Early: the layer behind it runs backward first, and this can be on its way meanwhile." : ""}${among(state, dim)}`];
    case "forward": return [`Forward: ${some}`, flat ? `The layer runs with ${part}.` : state.wrap === "model"
      ? "The rows were copied from the buffer into weights, and the layer runs with its own. The buffer stays until forward is done." : "The rows were copied from the buffer into a weight, and the layer runs with it. The buffer stays until the next has come."];
    case "free": return [`Let go: ${some}`, state.wrap === "model" ? "Forward is done: the gathered weights are freed." : "The layer has run, and its gathered weight is freed."];
    case "loss": return ["The loss", "Forward is done, and backward begins."];
    case "backward": return [`Backward: ${some}`, state.strategy === "tp" ? "The gradient of this rank's part. All ranks had the same batch, so that it is ready." : hasBucket(state)
      ? "The gradient of this rank's own batch, in its place in DDP's bucket." : `The gradient of this rank's own batch, as large as ${part}.`];
    case "reduce_scatter": return [`reduce_scatter: the ${layers.length > 1 ? "gradients" : "gradient"} of ${some}`,
      `Each rank brings ${layers.length > 1 ? "its gradients" : "its gradient"}, copied into a buffer of ${size}, and gets the mean of its own rows. The gathered ${layers.length > 1 ? "weights are" : "weight is"} freed.${among(state, dim)}`];
    case "all_reduce": return {
      gradients: ["all_reduce: all gradients", `Each rank brings the bucket, ${size}, and gets the mean of all ranks.`],
      shards: [`all_reduce: the gradient rows of ${some}`, `The halves average what each has found, ${size}.${among(state, dim)}`],
      outputs: [`all_reduce: the output of ${some}`, `Each rank has a part of every sum. ${BATCH} rows of ${state.width} numbers, ${size}, are added up.${among(state, dim)}`],
      inputs: [`all_reduce: the gradient of what ${some} has read`, `Each rank knows a part of it, from its own units. ${BATCH} rows of ${state.width} numbers, ${size}, are added up.${among(state, dim)}`],
    }[what];
    case "broadcast": return [`broadcast: the new weight of ${some}`, `Rank ${from} has changed ${it}, and sends ${it} to all: ${size}.`];
    case "step": return ["optimizer.step()", state.strategy === "zero1" ? "Each rank changes the weights of which it has Adam's averages." : flat && !split ? "Every rank makes the same change to all weights." : "Each rank changes what it keeps. Nothing is sent."];
    default: return ["optimizer.zero_grad()", hasBucket(state) ? "The gradients are forgotten. DDP's bucket, in which they lie, stays." : "The gradients are freed."];
  }
}

/** What a rank brings to all collectives of a step, by their names: [name, how many, bytes]. */
export function sent(state, moments, rank) {
  const found = new Map();
  for (const moment of moments.filter(({ what }) => what)) {
    const [, count, size] = found.get(moment.kind) ?? ["", 0, 0];
    found.set(moment.kind, [moment.kind, count + 1, size + broughtBy(state, moment, rank)]);
  }
  return [...found.values()];
}
