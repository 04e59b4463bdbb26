// The walks over a model, step by step: what each gives, what it passes over, and what its memo holds.

import { join, parent, rows } from "./graph.js";

export const CALLS = ["children", "modules", "parameters", "buffers", "state_dict"];
export const plain = (call) => call.replace("named_", "");
export const takesOnce = (call) => /^named_[mpb]/.test(call);
export const takesRecurse = (call) => /parameters|buffers/.test(call);

// Each generator gives [what, path, object], and what is "given", "seen", "none" or "unsaved".

function* children(root, memo) {
  for (const [name, child] of root.modules) {
    if (!child) yield ["none", name, null];
    else if (memo.modules.has(child)) yield ["seen", name, child];
    else {
      memo.modules.set(child, name);
      yield ["given", name, child];
    }
  }
}

function* modules(node, memo, once, path = "") {
  if (memo.modules.has(node)) return yield ["seen", path, node];
  if (once) memo.modules.set(node, path);
  yield ["given", path, node];
  for (const [name, child] of node.modules) {
    if (child) yield* modules(child, memo, once, join(path, name));
    else yield ["none", join(path, name), null];
  }
}

const tensors = (species) => function* (root, memo, once, recurse) {
  for (const step of recurse ? modules(root, memo, once) : [["given", "", root]]) {
    const [what, path, owner] = step;
    if (what !== "given") {
      yield step;
      continue;
    }
    for (const [name, tensor] of owner[species]) {
      const at = join(path, name);
      if (!tensor) yield ["none", at, null];
      else if (memo.tensors.has(tensor)) yield ["seen", at, tensor];
      else {
        if (once) memo.tensors.set(tensor, at);
        yield ["given", at, tensor];
      }
    }
  }
};

function* saved(node, path = "") {
  for (const species of ["parameters", "buffers"]) {
    for (const [name, tensor] of node[species]) {
      const what = !tensor ? "none" : species === "buffers" && node.unsaved.has(name) ? "unsaved" : "given";
      yield [what, join(path, name), tensor];
    }
  }
  for (const [name, child] of node.modules) {
    if (child) yield* saved(child, join(path, name));
    else yield ["none", join(path, name), null];
  }
}

const WALKS = {
  children, modules: (root, memo, once) => modules(root, memo, once),
  parameters: tensors("parameters"), buffers: tensors("buffers"), state_dict: (root) => saved(root),
};

/**
 * All steps of one call: { what, path, object, first, memo }. `first` is the path under which the same
 * object came before; `memo` holds the paths of what is remembered then, or is null where none is kept.
 */
export function walk(root, { call, once, recurse }) {
  const memo = { modules: new Map(), tensors: new Map() };
  const came = new Map();
  const kept = call !== "state_dict" && (once || !takesOnce(call));
  const events = [];
  for (const [what, path, object] of WALKS[plain(call)](root, memo, kept, recurse)) {
    const first = what === "seen" ? memo.modules.get(object) ?? memo.tensors.get(object) : came.get(object);
    events.push({ what, path, object, first, memo: kept ? { modules: [...memo.modules.values()], tensors: [...memo.tensors.values()] } : null });
    if (what === "given" && !came.has(object)) came.set(object, path);
  }
  return events;
}

export const given = (events) => events.filter(({ what }) => what === "given");

const size = (tensors) => [...tensors].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);

/** Numbers in parameters: each object once, trainable ones, under every name, in plain lists only; and keys. */
export function counts(root) {
  const list = (call, once) => given(walk(root, { call, once, recurse: true })).map(({ object }) => object);
  const found = new Set(list("parameters", true));
  const hidden = new Set(rows(root).filter(({ species, object }) => species === "parameters" && object && !found.has(object)).map(({ object }) => object));
  const keys = list("state_dict", true);
  return {
    objects: found.size, numbers: size(found), trainable: size([...found].filter((tensor) => tensor.trainable)),
    named: size(list("named_parameters", false)), hidden: size(hidden), keys: keys.length, tensors: new Set(keys).size,
  };
}

/** Is there a step at this path, or below it? */
export function reached(events) {
  const paths = new Set();
  for (let { path } of events) {
    paths.add(path);
    while (path) paths.add(path = parent(path));
  }
  return paths;
}
