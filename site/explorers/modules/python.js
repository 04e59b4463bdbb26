// A model, and what edits it, as lines of Python that torch understands.

import { act, at, isIndexed, isOpen, join, last, module, parent, rows, statements } from "./graph.js";

/** self.block[0].weight: how a path is written where `root` is self. */
export function ref(root, path) {
  if (!path) return "self";
  const owner = at(root, parent(path));
  return ref(root, parent(path)) + (owner && isIndexed(owner) ? `[${last(path)}]` : `.${last(path)}`);
}

export const tuple = (list) => `(${list.join(", ")}${list.length === 1 ? "," : ""})`;
const plainShape = (list) => list.length === 1 ? list[0] : tuple(list);
const call = (kind, sizes) => kind === "list" ? "[]" : `nn.${kind}(${sizes.join(", ")})`;

/** One statement, as it would be written in __init__ before it is carried out on `root`. */
export function line(root, [path, verb, ...words]) {
  const owner = at(root, parent(path)) ?? root;
  const name = last(path);
  const place = ref(root, path);
  const fresh = at(root, path) === undefined;
  const set = (value) => fresh && isIndexed(owner) ? `${ref(root, parent(path))}.append(${value})` : `${place} = ${value}`;
  const register = (noun, ...values) => `${ref(root, parent(path))}.register_${noun}("${name}", ${values.join(", ")})`;
  switch (verb) {
    case "Parameter": return set(`nn.Parameter(torch.ones(${plainShape(words)}))`);
    case "Buffer": return register("buffer", `torch.zeros(${plainShape(words)})`);
    case "is": return at(root, words[0])?.species === "buffers" ? register("buffer", ref(root, words[0])) : set(ref(root, words[0]));
    case "None": return fresh && isOpen(owner) ? register(words[0].slice(0, -1), "None") : set("None");
    case "del": return `del ${place}`;
    case "frozen": case "trainable": return `${place}.requires_grad_(${verb === "frozen" ? "False" : "True"})`;
    case "unsaved": return register("buffer", place, "persistent=False");
    case "registered": return `${place} = nn.ModuleList(${place})`;
    case "plain": return `${name} = list(${place}); del ${place}; ${place} = ${name}`;
    case "saved": return register("buffer", place);
    default: return set(call(verb, words));
  }
}

/** The whole model as a class. */
export function python(root) {
  const first = new Map();
  for (const { path, object } of rows(root)) if (object && !first.has(object)) first.set(object, path);
  const done = new Set();
  // A container with its parts inside the brackets; null if a part needs a name that is not there yet.
  function inline(node, path, top) {
    const parts = [];
    const inside = [];
    for (const [name, child] of node.modules) {
      const below = join(path, name);
      const from = child && first.get(child);
      if (!child || from !== below && `${from}.`.startsWith(`${top}.`)) return null;
      const nested = from === below && isIndexed(child) ? inline(child, below, top) : null;
      if (from === below && isIndexed(child) && !nested) return null;
      parts.push(from !== below ? ref(root, from) : nested?.text ?? call(child.kind, child.sizes));
      inside.push(below, ...nested?.inside ?? []);
    }
    return { text: node.kind === "list" ? `[${parts.join(", ")}]` : `nn.${node.kind}(${node.kind === "ModuleList" ? `[${parts.join(", ")}]` : parts.join(", ")})`, inside };
  }
  const lines = [];
  const so = module("Model");
  for (const statement of statements(root)) {
    const [path, verb] = statement;
    const owner = ref(root, parent(path));
    const node = at(root, path);
    const whole = node && isIndexed(node) && verb === node.kind && !isIndexed(at(root, parent(path))) ? inline(node, path, path) : null;
    whole?.inside.forEach((below) => done.add(below));
    if (whole) lines.push(`${ref(root, path)} = ${whole.text}`);
    else if (verb === "unsaved" && lines.at(-1)?.startsWith(`${owner}.register_buffer("${last(path)}",`)) {
      lines.push(lines.pop().replace(/\)$/, ", persistent=False)"));
    } else if (!done.has(path) || node.kind !== verb && verb !== "is") lines.push(line(so, statement));
    act(so, statement);
  }
  return ["class Model(nn.Module):", "    def __init__(self):", ...["super().__init__()", ...lines].map((text) => `        ${text}`)].join("\n");
}
