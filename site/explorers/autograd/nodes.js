// Nodes of the graph, what they save, and the walk backward. No DOM. `edge` and `gradFn` come in with `world`.

import { Raised } from "./program.js";

const TWICE = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.";

/**
 * A node: its edges, the shape of the gradient that it takes, and apply(grad, read), a gradient per edge.
 * `seq` is when it was made: of all nodes that are ready, the engine runs the youngest; AccumulateGrad comes first.
 */
export function node(world, name, next, shape, { saved = {}, ...more }) {
  world.made += 1;
  return { name, next, shape, saved, seq: more.variable ? Infinity : world.made, id: world.made, freed: false, ...more };
}

/** How error messages call a node. */
export const operation = ({ name }) => name === "CopySlices" ? "torch::autograd::CopySlices" : name.replace(/Backward0?/, "");

/** What a node keeps: a tensor, not a copy, and the number that its counter showed. */
export function saved(world, tensor, result = null) {
  if (tensor.inference) {
    throw new Raised("RuntimeError", "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  }
  return { tensor, counter: tensor.counter, version: tensor.counter.n, then: world.values(tensor), result };
}

/** The numbers that a saved tensor holds now; raises where it was freed or its version moved. */
export function unpack(world, owner, part) {
  const kept = owner.saved[part];
  if (!kept) return null;
  if (owner.freed) throw new Raised("RuntimeError", TWICE);
  const { tensor, counter, version, result } = kept;
  if (counter.n !== version) {
    const fn = result ?? world.gradFn(world, tensor);
    const which = fn ? `, which is output 0 of ${operation(fn)},` : "";
    throw new Raised("RuntimeError", `one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [${tensor.shape.join(", ")}]]${which} is at version ${counter.n}; expected version ${version} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).`);
  }
  return world.values(tensor);
}

export const reachable = (roots) => {
  const met = new Set();
  const waiting = [...roots].reverse();
  while (waiting.length) {
    const one = waiting.pop();
    if (!one || met.has(one)) continue;
    met.add(one);
    waiting.push(...[...one.next].reverse());
  }
  return [...met];
};

const added = (a, b) => a.map((value, i) => Math.fround(value + b[i]));

/** tensor.backward(). Beside each gradient walks the one that the values at recording time would have given. */
export function backward(world, tensor, keep) {
  const runtime = (message) => new Raised("RuntimeError", message);
  if (world.requiresGrad(tensor) && tensor.shape.some((size) => size !== 1)) throw runtime("grad can be implicitly created only for scalar outputs");
  const root = world.edge(world, tensor);
  if (!root) throw runtime("element 0 of tensors does not require grad and does not have a grad_fn");
  const missing = new Map();
  for (const one of reachable([root])) for (const to of one.next) if (to) missing.set(to, (missing.get(to) ?? 0) + 1);
  const arrived = new Map([[root, { grad: [1], right: [1] }]]);
  const ready = [root];
  const leaves = [];
  while (ready.length) {
    ready.sort((a, b) => a.seq - b.seq);
    const one = ready.pop();
    const came = arrived.get(one);
    if (one.variable) {
      if (came) accumulate(world, one.variable, came, leaves);
      continue;
    }
    const owner = one.inner ?? one;
    if (one.inner && one.freed) throw runtime(TWICE);
    // The order in which the generated code unpacks.
    const now = {};
    for (const part of ["mat2", "other", "result", "self", "tensor", "vec"]) now[part] = unpack(world, owner, part);
    const outs = came ? one.apply(came.grad, (part) => now[part]) : [];
    const rights = came ? one.apply(came.right, (part) => owner.saved[part].then) : [];
    if (!keep) one.freed = owner.freed = true;
    one.next.forEach((to, i) => {
      if (!to) return;
      if (outs[i]) {
        const there = arrived.get(to);
        const [grad, right] = [outs[i].map(Math.fround), rights[i].map(Math.fround)];
        arrived.set(to, there ? { grad: added(there.grad, grad), right: added(there.right, right) } : { grad, right });
      }
      missing.set(to, missing.get(to) - 1);
      if (missing.get(to) === 0) ready.push(to);
    });
  }
  return leaves;
}

function accumulate(world, variable, { grad, right }, leaves) {
  if (!world.requiresGrad(variable)) return;
  if (world.gradFn(world, variable)) throw new Raised("RuntimeError", "leaf variable has been moved into the graph interior");
  const there = variable.grad;
  leaves.push(variable);
  variable.grad = there ? { ...there, values: added(there.values, grad), right: added(there.right, right) } : { values: grad, right, inference: world.inference };
  if (there?.inference && !world.inference) throw new Raised("RuntimeError", "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
}
