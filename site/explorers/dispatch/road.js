// The road of a call: which keys it has, what stands in the operator's table for each, and which kernels run. No DOM.
//
// A set of keys is a number: bit i stands for LANES[i], so the lowest bit is the highest key.

import { KEYS, LANES, TABLES, THREAD } from "./tables.js";

/** The letters of a table, in torch's own words. */
export const KINDS = { k: "kernel", d: "default backend kernel", m: "math kernel", a: "autograd kernel", b: "batched kernel", f: "backend fallback", "-": "fallthrough", ".": "" };

export const MODES = ["no_grad", "inference_mode", "autocast", "mode", "vmap"];
export const TENSORS = Object.keys(KEYS);

/** Which modes the page has for a tensor: what vmap and inference mode make of the stranger ones is left out. */
export const allowed = (tensor) => MODES.filter((mode) =>
  (mode !== "vmap" || ["plain", "grad", "int"].includes(tensor)) && (mode !== "inference_mode" || !["sparse", "subclass"].includes(tensor)));

const bit = (name) => 1 << LANES.indexOf(name);
const bits = (names) => names.reduce((sum, name) => sum | bit(name), 0);
const [FRONT, SNAPSHOT, BATCHED, AUTOCAST, AUTOGRAD_META, AUTOGRAD_CPU, INPLACE, CONJ, BACK, PYTHON, SELECT, SPARSE, META, CPU] = LANES.map((_, i) => 1 << i);
const AUTOGRAD = AUTOGRAD_CPU | AUTOGRAD_META;
const BACKENDS = SPARSE | META | CPU;
const ALL = (1 << LANES.length) - 1;
/** What a handler in Python is called without: all above it. */
const ABOVE_PYTHON = PYTHON - 1;

/** What can be called: how it is written, its operator, and its tensors. Factories are called with autograd switched off. */
export const CALLS = {
  add: ["x + 1", "add.Tensor", "x1"],
  mul: ["x * w", "mul.Tensor", "xw"],
  rsub: ["1 - x", "rsub.Scalar"],
  pow: ["x ** 2", "pow.Tensor_Scalar"],
  eq: ["x == 1", "eq.Scalar"],
  exp: ["x.exp()", "exp"],
  relu: ["x.relu()", "relu"],
  gelu: ["F.gelu(x)", "gelu"],
  add_: ["x.add_(w)", "add_.Tensor", "xw"],
  zero_: ["x.zero_()", "zero_"],
  copy_: ["x.copy_(w)", "copy_", "xw"],
  sum: ["x.sum()", "sum"],
  mean: ["x.mean()", "mean"],
  cumsum: ["x.cumsum(0)", "cumsum"],
  softmax: ["torch.softmax(x, 0)", "softmax.int"],
  layer_norm: ["F.layer_norm(x, (2,))", "layer_norm"],
  histc: ["torch.histc(x)", "histc"],
  view: ["x.view(4)", "view"],
  t: ["x.t()", "t"],
  T: ["x.T", "numpy_T"],
  permute: ["x.permute(1, 0)", "permute"],
  select: ["x[0]", "select.int"],
  expand: ["x.expand(3, 2, 2)", "expand"],
  chunk: ["x.chunk(2)", "chunk"],
  detach: ["x.detach()", "detach"],
  reshape: ["x.reshape(4)", "reshape"],
  flatten: ["x.flatten()", "flatten.using_ints"],
  contiguous: ["x.contiguous()", "contiguous"],
  to: ["x.to(torch.float64)", "to.dtype"],
  mm: ["torch.mm(x, w)", "mm", "xw"],
  matmul: ["x @ w", "matmul", "xw"],
  linear: ["F.linear(x, w)", "linear", "xw"],
  clone: ["x.clone()", "clone"],
  ones_like: ["torch.ones_like(x)", "ones_like", "x", true],
  zeros: ["torch.zeros(2)", "zeros", "", true],
  empty: ["torch.empty(2)", "empty.memory_format", "", true],
};

/** The calls in groups, as one chooses among them. */
export const GROUPS = {
  "Elementwise": "add mul rsub pow eq exp relu gelu",
  "In place": "add_ zero_ copy_",
  "Along dims": "sum mean cumsum softmax layer_norm histc",
  "Views": "view t T permute select expand chunk detach",
  "Views or copies": "reshape flatten contiguous to",
  "Products": "mm matmul linear",
  "New tensors": "clone ones_like zeros empty",
};

/** What a composite kernel calls, and with what: x and w are its own tensors, n one that it made, 1 a number as a tensor. */
const INSIDE = {
  sum: "sum.dim_IntList", t: "transpose.int", "transpose.int": "as_strided", "select.int": "as_strided", permute: "as_strided",
  reshape: "view", contiguous: "clone", "to.dtype": "_to_copy", clone: "empty_strided: copy_:nx", _to_copy: "empty_strided: copy_:nx",
  matmul: "mm:xw", "matmul/3d": "reshape mm:xw _unsafe_view:n", linear: "t:w matmul:xw", "softmax.int": "_softmax", layer_norm: "native_layer_norm",
  zeros: "empty.memory_format: zero_:n", ones_like: "empty_like fill_.Scalar:n", empty_like: "empty_strided:", "rsub.Scalar": "sub.Tensor:1x",
  "movedim.int": "movedim.intlist", "movedim.intlist": "permute", stack: "cat view:n",
  mean: "mean.dim", expand: "as_strided", "flatten.using_ints": "view", numpy_T: "permute", chunk: "split.Tensor", "split.Tensor": "narrow narrow", narrow: "slice.Tensor", "slice.Tensor": "as_strided",
};
/** Rules for batches that call something else than their own operator on the whole batch. Without a rule: once per row, then stack. */
const BATCHES = { mm: "matmul/3d:xw", expand: "view expand", histc: "movedim.int select.int histc select.int histc stack:n view:n" };
/** Rules that are written for batched tensors, as composites are. */
const STILL_BATCHED = ["sum", "mean", "t"];
/** Where the result may be a view, a conjugate view is not written out: the call goes on with it. */
const MAY_VIEW = ["to.dtype", "flatten.using_ints", "numpy_T", "slice.Tensor"];
const writes = (op) => op.split(".")[0].endsWith("_");
/** What these call inside, for a sparse tensor, is left out: its indices and values, one by one. */
const SPARSE_ALONE = ["t", "transpose.int", "select.int", "_to_copy"];

/** Kernels that refuse, and how torch's own words begin: operator, key or kind, when, words. */
const unnamed = (kernel, type) => `"${kernel}" not implemented for '${type}'`;
const REFUSALS = [
  ["", "AutogradCPU", ({ op, asked, tensor, has }) => op === asked && writes(op) && tensor === "grad" && !has("no_grad") && !has("inference_mode") && !has("vmap"), "a leaf Variable that requires grad is being used in an in-place operation."],
  ["", "CPU", ({ op, asked, tensor, has }) => op === asked && writes(op) && tensor === "inference" && !has("inference_mode"), "Inplace update to inference tensor outside InferenceMode is not allowed."],
  ["relu", "CPU", ({ tensor }) => tensor === "conj", "clamp is not supported for complex types"],
  ["_softmax", "CPU", ({ tensor }) => tensor === "int", unnamed("softmax_kernel_impl", "Long")],
  ["_softmax", "CPU", ({ tensor }) => tensor === "conj", unnamed("softmax_kernel_impl", "ComplexFloat")],
  ["native_layer_norm", "CPU", ({ tensor }) => tensor === "int", unnamed("LayerNormKernelImpl", "Long")],
  ["native_layer_norm", "CPU", ({ tensor }) => tensor === "conj", unnamed("LayerNormKernelImpl", "ComplexFloat")],
  ["histc", "CPU", ({ tensor }) => tensor === "int", unnamed("histogram_cpu", "Long")],
  ["histc", "CPU", ({ tensor }) => tensor === "conj", unnamed("aminmax_cpu", "ComplexFloat")],
  ["add.Tensor", "SparseCPU", () => true, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."],
  ["sub.Tensor", "SparseCPU", () => true, "add: expected 'self' and 'other' to have same size"],
  ["mm", "SparseCPU", ({ has }) => has("autocast"), unnamed("sparse_matmul", "BFloat16")],
  ["gelu", "CPU", ({ tensor }) => tensor === "int", unnamed("GeluKernelImpl", "Long")],
  ["gelu", "CPU", ({ tensor }) => tensor === "conj", unnamed("GeluKernelImpl", "ComplexFloat")],
  ["mean.dim", "CPU", ({ tensor }) => tensor === "int", "mean(): could not infer output dtype."],
  ["expand", "SparseCPU", () => true, "expand is unsupported for Sparse tensors"],
  ["flatten.using_ints", "m", ({ tensor }) => tensor === "sparse", "reshape is not implemented for sparse tensors"],
  ["reshape", "m", ({ tensor }) => tensor === "sparse", "reshape is not implemented for sparse tensors"],
  ["clone", "SparseCPU", ({ asked }) => asked === "contiguous", "unsupported memory format option Contiguous"],
  ["native_layer_norm", "SparseCPU", () => true, "unsupported memory format option Contiguous"],
];

const listed = (text) => text.split(" ").filter(Boolean).map((one) => {
  const [op, takes = "x"] = one.split(":");
  return { op, takes };
});

export const names = (set) => LANES.filter((_, i) => set & (1 << i));

/** What a tensor brings, what the thread adds to every set, and what it takes out of it. */
export function keySet({ tensor, modes }) {
  let [include, exclude] = THREAD[""].map(bits);
  for (const mode of modes) {
    const { adds, drops, hides, shows } = THREAD[mode];
    include = (include | bits(adds)) & ~bits(drops);
    exclude = (exclude | bits(hides)) & ~bits(shows);
  }
  return { brings: bits(KEYS[tensor]) | (modes.includes("vmap") ? BATCHED : 0), include, exclude };
}

const letterOf = (op, key) => TABLES[op.split("/")[0]][LANES.indexOf(key)];

/** What an operator's table holds for a key, in torch's words. */
export const table = (op, key) => KINDS[letterOf(op, key)];

/** The keys at which an operator's table says: not here, go on. */
export const falls = (op) => LANES.reduce((sum, key, i) => sum | (letterOf(op, key) === "-" ? 1 << i : 0), 0);

/**
 * The whole road. `stops` are { depth, op, key, kind, keys, call } in order, those of calls inside kernels among them;
 * `calls[call]` is what one call began with: { op, brings, include, exclude, keys }, fallthroughs not yet taken out.
 * `error` is what torch says at the end of a road that leads nowhere, and `missing` the key and the call for which there is no kernel.
 *
 * A tensor is a number, too: the keys that it brings, and above them those of the tensor inside it, for vmap.
 */
export function route({ call: asked, tensor, modes }) {
  const has = (mode) => modes.includes(mode);
  const [, first, takes = "x", factory] = CALLS[asked];
  const { include, exclude } = keySet({ tensor, modes });
  const own = bits(KEYS[tensor]);
  const floats = !["int", "conj"].includes(tensor);
  const stops = [];
  const calls = [];
  let [error, missing, cast] = [null, null, false];

  const fresh = (keys) => {
    const kept = keys & (BACKENDS | PYTHON | SNAPSHOT);
    const more = kept & (CPU | SPARSE) ? AUTOCAST | AUTOGRAD_CPU | INPLACE : AUTOGRAD_META | INPLACE;
    const plain = kept | (has("inference_mode") ? more & AUTOCAST : more);
    return keys & BATCHED ? batched(plain) : plain;
  };
  const batched = (inner) => (has("inference_mode") ? inner & ~(AUTOGRAD | INPLACE) : inner) | BATCHED | (inner << LANES.length);
  const unbatched = (one) => (one & BATCHED ? one >> LANES.length : one);

  function enter(op, tensors, thread, depth) {
    if (error) return;
    const brings = tensors.reduce((sum, keys) => sum | keys, 0) & ALL;
    const keys = (brings | thread.include) & ~thread.exclude;
    calls.push({ op: op.split("/")[0], brings, include: thread.include, exclude: thread.exclude, keys });
    walk(op, keys & ~falls(op), tensors, { ...thread, home: brings & BACKENDS || thread.home }, depth, calls.length - 1);
  }

  /** The calls inside a kernel. */
  function inside(text, tensors, thread, depth) {
    const [x = 0, w = 0] = tensors;
    const among = { x, w, n: fresh(x || thread.home), 1: fresh(CPU) };
    for (const { op, takes: which } of listed(text)) enter(op, [...which].map((name) => among[name]), thread, depth);
  }

  function walk(op, keys, tensors, thread, depth, call) {
    const key = keys & -keys;
    const name = LANES[Math.log2(key)];
    const letter = key ? letterOf(op, name) : ".";
    if (letter === ".") {
      error = `Could not run 'aten::${op}' with arguments from the '${name}' backend.`;
      missing = { key: name, call };
      return;
    }
    stops.push({ depth, op: op.split("/")[0], key: name, kind: KINDS[letter], keys, call, mode: key === PYTHON && thread.listens });
    error = REFUSALS.find(([which, where, when]) => (!which || which === op) && (where === name || where === letter) && when({ op, asked: first, tensor, has }))?.[3] ?? null;
    if (error) return;
    const below = keys & ~(key | (key - 1));
    const on = (rest, hidden = 0, now = tensors) => walk(op, rest, now, { ...thread, exclude: thread.exclude | hidden }, depth + 1, call);
    const within = (text, now = tensors) => inside(text, now, thread, depth + 1);
    if (letter === "m" || letter === "b" || (letter === "d" && !(key === SPARSE && SPARSE_ALONE.includes(op)))) {
      if (INSIDE[op]) within(INSIDE[op]);
    } else if (key & AUTOGRAD) on(below & ~AUTOGRAD, letterOf(op, "ADInplaceOrView") === "k" ? AUTOGRAD : AUTOGRAD | INPLACE);
    else if (key === INPLACE) on(below, AUTOGRAD | INPLACE);
    else if (key === SNAPSHOT) on(below);
    else if (key === SELECT) on(op === "_to_copy" ? below | CPU : thread.home);
    else if (key === CONJ) conjugated(op, below, tensors, thread, depth, on);
    else if (key === PYTHON) handled(op, tensors, thread, depth);
    else if (key === AUTOCAST) autocast(op, tensors, { ...thread, exclude: thread.exclude | AUTOCAST }, depth);
    else if (key === FRONT && letter === "k") within(INSIDE[op]);
    else if (key === FRONT) {
      // One layer of vmap alone: what is not of its own business is hidden until it is done.
      const layer = BATCHED | BACK | PYTHON | SELECT | BACKENDS | AUTOCAST;
      enter(op, tensors, { ...thread, include: thread.include & (BACK | SELECT | PYTHON), exclude: (ALL & ~layer) | (thread.exclude & AUTOCAST), before: thread }, depth + 1);
    } else if (key === BATCHED) {
      if (STILL_BATCHED.includes(op)) within(INSIDE[op]);
      else within(BATCHES[op] ?? `${op}:${tensors.length > 1 ? "xw" : "x"}`, tensors.map(unbatched));
    } else if (key === BACK) enter(op, tensors.map(unbatched), { ...thread.before, include: thread.before.include & ~(FRONT | BACK) }, depth + 1);
  }

  /** Each conjugate view is written out first, and what was changed in place is copied back. */
  function conjugated(op, below, tensors, thread, depth, on) {
    const views = MAY_VIEW.includes(op) ? [] : tensors.filter((one) => one & CONJ);
    for (const view of views) enter("clone", [view], thread, depth + 1);
    on(below, 0, tensors.map((one) => (views.includes(one) ? fresh(one) : one)));
    if (writes(op)) enter("copy_", tensors, thread, depth + 1);
  }

  /** In Python: a mode first, which is off while it handles; then the subclass, which takes its wrapper away. */
  function handled(op, tensors, thread, depth) {
    const now = { ...thread, include: thread.include & ~(PYTHON | SNAPSHOT), exclude: thread.exclude | ABOVE_PYTHON, listens: false };
    enter(op, thread.listens ? tensors : tensors.map((keys) => keys & ~(PYTHON | SNAPSHOT)), now, depth + 1);
  }

  function autocast(op, tensors, thread, depth) {
    // Within vmap it comes twice, and the second time there is nothing left to cast.
    if (!floats || cast || op === "stack") return enter(op, tensors, thread, depth + 1);
    cast = true;
    for (const keys of tensors) enter("to.dtype", [keys], thread, depth + 1);
    return enter(op, tensors.map(fresh), thread, depth + 1);
  }

  // Python asks first whether there is anything to do, and calls nothing.
  if (asked !== "contiguous" || tensor === "sparse") {
    const tensors = [...takes].map((name) => (name === "1" ? fresh(CPU) : name === "x" && has("vmap") ? batched(own) : own));
    enter(first, tensors, { include, exclude: exclude | (factory ? AUTOGRAD | INPLACE : 0), listens: has("mode"), home: CPU }, 0);
  }
  return { stops, calls, error, missing };
}
