// What the page says: numbers as torch writes them, a sentence or two for each line, programs to try.

/** Four digits, with torch's point. */
export const number = (value) => {
  const text = String(Number(value.toPrecision(4)));
  return /[.eIN]/.test(text) ? text.replace("Infinity", "inf") : `${text}.`;
};

export function list(values, shape = [values.length]) {
  if (!shape.length) return number(values[0]);
  const [rows, ...rest] = shape;
  const size = values.length / rows;
  return `[${Array.from({ length: rows }, (_, row) => list(values.slice(row * size, (row + 1) * size), rest)).join(", ")}]`;
}

const and = (parts) => [parts.slice(0, -1).join(", "), parts.at(-1)].filter(Boolean).join(" and ");

const times = (names) => and([...new Set(names)].map((name) => {
  const count = names.filter((other) => other === name).length;
  return count > 1 ? `${count} × ${name}` : name;
}));

/** The name of a tensor after a line, or what it is. */
export function called(tensor, { tensors }) {
  if (tensor.number) return `the number ${number(tensor.storage.data[0]).replace(/\.$/, "")}`;
  return tensors.find(({ t }) => t === tensor)?.name ?? "a result without a name";
}

/** "y, version 0": what a node saved. */
export const keeps = ({ tensor, copy, version }, shot) =>
  `${copy ? "a copy of " : ""}${called(tensor, shot)}${tensor.number ? "" : `, version ${version}`}`;

/** Why torch refuses, in other words. */
const WHY = [
  [/modified by an inplace/, (shot) => {
    const owner = shot.nodes.find(({ saved }) => saved.some(({ raises }) => raises === shot.error.message));
    const kept = owner?.saved.find(({ raises }) => raises === shot.error.message);
    return kept ? `${owner.name} saved ${keeps(kept, shot)}. Now it is at version ${kept.now}: its numbers are no longer those that the derivative needs.` : "A tensor that a node saved was changed since.";
  }],
  [/second time/, () => "An earlier backward freed what these nodes had saved. Mostly the mend is to compute the loss anew; retain_graph=True in the earlier call keeps it."],
  [/view of a leaf/, () => "The view lives in a leaf that requires grad. To update it, do it under torch.no_grad()."],
  [/^a leaf Variable/, () => "A recorded change would make this leaf a result. An update is not meant to be recorded: do it under torch.no_grad()."],
  [/cannot be saved/, () => "The new node would have to save a tensor without a version counter. A clone() made outside is an ordinary tensor."],
  [/update to inference/, () => "An inference tensor may be changed in inference mode only. A clone() made outside is an ordinary tensor."],
  [/requires_grad=True on/, () => "A clone() made outside inference mode is an ordinary tensor, and may require grad."],
  [/does not require grad/, () => "Nothing that led to this tensor was recorded: there is no graph to walk."],
  [/scalar outputs/, () => "backward starts from one number. Take .sum() first."],
  [/only change requires_grad/, () => "This is a result: its graph decides. y.detach() is the way out of the graph."],
  [/cannot be multiplied|size mismatch|same number of elements/, () => "The last dim of what stands on the left of @ meets the first of what stands on the right: they must be equal."],
  [/must match the size/, () => "Two sizes that meet are equal, or one of them is 1. They are compared from the last dim on."],
  [/^(A view was|Output 0)/, () => "Should the change be recorded or not? The view was made unrecorded, the change is not. Do both inside the block, or both outside."],
];

const FLAG = "The flag is set. A graph that was recorded stays as it is; a leaf takes a gradient from it only while its flag is True.";

const verb = (on) => (on ? "on" : "off");

function modes(shot, [kind, what, on]) {
  if (kind === "mode") return `Grad mode is ${verb(what)} from here on. This is no block: it stays so until something changes it.`;
  if (what === "inference_mode") return "Inside, nothing is recorded, and results are inference tensors: they have no version counter, and cannot be saved for backward later.";
  if (shot.inference) return `Grad mode is ${verb(on)}${on ? ", and still" : ":"} nothing is recorded. Inference mode has the last word.`;
  return on ? "Inside, grad mode is on: what uses a tensor that requires grad is recorded." : "Inside, grad mode is off: no result is recorded.";
}

const ALIAS = {
  detach: (a, b) => `${a} shares memory with ${b}, and the version counter. The graph is cut: no gradient goes through ${a}.`,
  data: (a, b) => `${a} shares memory with ${b}, with a version counter of its own: nobody will notice a change made through ${a}.`,
  view: (a, b) => `${a} is a view: its memory is ${b}'s, and so is the version counter.`,
  clone: (a, b) => `${a} has memory of its own. A copy is not cut off:`,
};

function result(shot, name, e) {
  const row = shot.tensors.find((tensor) => tensor.name === name);
  if (!row?.t) return `${name} is a Python number. It holds no graph.`;
  if (e[0] === "make") return `${name} is a leaf. ${row.requires ? `It requires grad: backward will put its gradient into ${name}.grad.` : "It does not require grad: what uses nothing else is not recorded."}${row.inference ? " It is an inference tensor." : ""}`;
  if (e[0] === "name") return `${name} and ${e[1]} are two names of one tensor. Nothing ran.`;
  const what = e[0] === "call" || e[0] === "attribute" ? e[2] : e[0] === "slice" || e[0] === "index" ? "view" : null;
  const of = e[1][0] === "name" ? e[1][1] : "what stands before it";
  if (what === "view" && row.requires && !row.fn.is) return `${ALIAS.view(name, of)} It was made unrecorded, so it has no grad_fn; it requires grad because the memory's owner does.`;
  if (what === "clone" && !shot.born.length) return `${name} has memory of its own.`;
  return ALIAS[what]?.(name, of) ?? "";
}

function recorded(shot, e) {
  const nodes = shot.born.filter(({ variable }) => !variable);
  if (nodes.length) {
    const saved = nodes.flatMap((node) => node.saved.map((kept) => keeps(kept, shot)));
    return `Recorded: ${times(nodes.map(({ name }) => name))}. ${saved.length ? `Saved for backward: ${times(saved)}.` : "Nothing had to be saved."}`;
  }
  const silent = !e || ["make", "name", "number", "attribute"].includes(e[0]) || (e[0] === "call" && ["detach", "item", "requires_grad_"].includes(e[2]));
  if (silent) return "";
  if (shot.inference) return "Not recorded: this is inference mode.";
  return shot.grad ? "Not recorded: no operand requires grad." : "Not recorded: grad mode is off.";
}

/** What became of saved tensors because of this line. */
function damage(shot, before) {
  const was = (node, part) => before?.nodes.find(({ one }) => one === node.one)?.saved.find((kept) => kept.part === part);
  const found = shot.nodes.flatMap((node) => node.saved.filter(({ freed }) => !freed).map((kept) => {
    const old = was(node, kept.part);
    if (kept.now !== kept.version && !(old?.now !== old?.version)) return `${node.name} saved ${keeps(kept, shot)}; it is at ${kept.now} now. If backward needs it, it will raise.`;
    if (kept.silent && !old?.silent) return `${node.name} saved this memory, and the counter that it looks at did not move: backward will use the changed numbers, and raise nothing.`;
    return null;
  }));
  return [...new Set(found)].filter(Boolean);
}

function changes(shot, before) {
  return shot.tensors.flatMap((row) => {
    const old = before?.tensors.find(({ t, name }) => t && t === row.t && name === row.name);
    if (!old || !row.values || String(old.values) === String(row.values)) return [];
    return [`${row.name}${row.version === null ? "" : row.version === old.version ? ` (version still ${row.version})` : ` (version ${old.version} → ${row.version})`}`];
  });
}

function walked(shot, keep) {
  const names = [...new Set(shot.leaves)].map((leaf) => `${called(leaf, shot)}.grad`);
  const wrong = shot.tensors.filter(({ grad }) => grad && isWrong(grad) && shot.leaves.length);
  return [
    names.length ? `Gradients were added to ${and(names)}.` : "No leaf was waiting for a gradient.",
    keep ? "The nodes keep what they saved." : "What the nodes had saved is freed.",
    ...wrong.map(({ name, grad, shape }) => `No error, and ${name}.grad is wrong. The numbers at recording time would have given ${list(grad.right, shape)}.`),
  ].join(" ");
}

/** A gradient that is not what the recorded numbers would have given. */
export const isWrong = ({ values, right }) => values.some((value, i) => Math.abs(value - right[i]) > 1e-5 * Math.max(1, Math.abs(right[i])));

/** { said, torch, bad }: sentences for a line, the error's own words, and what to call it if it is none of the good. */
export function explain(shot, before) {
  const { statement, error } = shot;
  if (error) {
    const why = WHY.find(([pattern]) => pattern.test(error.message))?.[1](shot);
    if (error.type === "Page") return { bad: "✗ Not here. ", said: error.message };
    return { bad: "✗ It raises. ", said: why ?? (/Syntax|Indent/.test(error.type) ? "This is not Python yet." : ""), torch: `${error.type}: ${error.message}` };
  }
  const [kind, name, ...rest] = statement;
  const e = kind === "assign" ? rest[0] : kind === "do" ? name : kind === "inplace" ? ["inplace"] : null;
  const parts = [];
  if (kind === "with" || kind === "mode") parts.push(modes(shot, statement));
  if (kind === "for") parts.push(`Turn ${shot.tensors.find((row) => row.name === name).number + 1} of ${rest[0]}. The indented lines run once more; in the graph nothing says that there was a loop.`);
  if (kind === "pass") parts.push("Nothing happens.");
  if (kind === "del") {
    const gone = before.tensors.filter((row) => name.includes(row.name) && row.t);
    const held = gone.some(({ t }) => shot.tensors.some((row) => row.t?.storage === t.storage) || shot.nodes.some(({ saved, variable }) => variable === t || saved.some(({ memory, freed }) => !freed && memory === t.storage)));
    const fewer = before.nodes.length - shot.nodes.length;
    parts.push(`The name is gone.${held ? " The memory is not: something else still holds it." : ""}${fewer > 0 ? ` ${fewer} nodes of the graph went with it.` : ""}`);
  }
  if (kind === "set") parts.push(rest[0] === "grad" ? `${name}.grad is empty again: the next backward starts from nothing.` : FLAG);
  if (e?.[0] === "call" && e[2] === "backward") parts.push(walked(shot, e[4].retain_graph), ...damage(shot, before));
  else if (e) {
    const changed = changes(shot, before);
    if (changed.length) parts.push(`Changed in place: ${and(changed)}.`);
    if (kind === "assign") parts.push(result(shot, name, e));
    if (e[0] === "call" && e[2] === "requires_grad_") parts.push(FLAG);
    parts.push(recorded(shot, e), ...damage(shot, before));
  }
  const bad = damage(shot, before).length || (shot.leaves.length && shot.tensors.some(({ grad }) => grad && isWrong(grad)));
  return { said: parts.filter(Boolean).join(" ") || "Nothing that is shown here changed.", bad: bad ? "≠ Look out. " : null };
}

const X = "x = torch.tensor([1., 2.], requires_grad=True)";
const W = "w = torch.tensor([1., 2.], requires_grad=True)";

/** Programs to try: name, lines, and the line to begin with where it is not the last. */
export const TRIES = [
  ["a graph, and backward", [X, "y = x * 2", "z = y.exp()", "loss = z.sum()", "loss.backward()"], 4],
  ["detach shares memory", [X, "y = x * 2", "d = y.detach()", "d.mul_(10)"]],
  ["clone is no leaf", [X, "c = x.clone()", "c.sum().backward()", "leaf = x.detach().clone().requires_grad_()"], 2],
  [".data: wrong, and silent", [X, "y = (x * 2).exp()", "y.data.mul_(10)", "y.sum().backward()"]],
  ["detach: caught", [X, "y = (x * 2).exp()", "y.detach().mul_(10)", "y.sum().backward()"]],
  ["who saved what", [X, "y = x * 2", "s = y.sin()", "e = y.exp()", "s.mul_(3)", "s.sum().backward(retain_graph=True)", "e.mul_(3)", "e.sum().backward()"], 7],
  ["no_grad in the middle", [X, "h = x * 2", "with torch.no_grad():", "    n = h.exp()", "    v = h.view(2)", "loss = (h * n).sum()", "loss.backward()"], 5],
  ["inference tensor in training", [W, "with torch.inference_mode():", "    f = torch.ones(2)", "    g = w * f", "c = f.clone()", "y = c * w", "y = f * w"]],
  ["a layer and a loss", ["x = torch.tensor([[1., 2.], [3., -4.]])", "w = torch.tensor([0.5, -1.], requires_grad=True)", "b = torch.zeros(1, requires_grad=True)", "h = (x @ w + b).relu()", "loss = ((h - 1) ** 2).mean()", "loss.backward()"], 5],
  ["a loop unrolled", ["w = torch.tensor([0.5], requires_grad=True)", "h = torch.ones(1)", "for i in range(3):", "    h = (w * h).sin()", "h.backward()"], 4],
  ["training steps", ["w = torch.tensor([1., 2.], requires_grad=True)", "for i in range(3):", "    loss = (w * w).mean()", "    w.grad = None", "    loss.backward()", "    with torch.no_grad():", "        w -= 0.5 * w.grad"]],
  ["backward twice", [X, "y = x * x", "loss = y.sum()", "loss.backward(retain_graph=True)", "loss.backward()", "loss.backward()"]],
  ["total += loss", [W, "total = 0", "loss = (w * w).sum()", "total += loss", "loss = (w * w).sum()", "total += loss", "loss = (w * w).sum()", "total += loss.item()"], 6],
  ["update a leaf", [W, "loss = (w * w).sum()", "loss.backward()", "with torch.no_grad():", "    w -= 0.1 * w.grad", "w.grad = None", "w -= 0.1"]],
  ["write through a view", [X, "y = x * 2", "v = y[0:1]", "v.mul_(10)", "y.sum().backward()"], 4],
  ["the mode that leaks", [X, "torch.set_grad_enabled(False)", "y = x * 2", "y.sum().backward()"]],
];

/** Lines that could stand after this one. */
export function suggestions(shot) {
  const rows = (shot?.tensors ?? []).filter(({ t }) => t);
  const taken = new Set(shot?.tensors.map(({ name }) => name));
  const free = [..."xyzabcdefghijklmn"].find((name) => !taken.has(name)) ?? "o";
  const made = [`${free} = torch.tensor([1., 2.], requires_grad=True)`, `${free} = torch.ones(2)`];
  if (!rows.length) return made;
  const last = rows.at(-1).name;
  const other = rows.at(-2)?.name ?? last;
  const block = (mode) => `with torch.${mode}():\n    ${free} = ${last} * 2`;
  return [
    ...[`${last} * 2`, `${last} * ${other}`, `${last} + ${other}`, `${last} / 2`, `${last} @ ${other}`, `${last} ** 2`, `${last}.exp()`, `${last}.sin()`, `${last}.relu()`, `${last}.sum()`, `${last}.mean()`, `${last}.detach()`, `${last}.clone()`, `${last}.data`, `${last}[0:1]`, `${last}.view(-1)`].map((e) => `${free} = ${e}`),
    `${last}.mul_(3)`, `${last}.add_(1)`, `${last}.data.mul_(3)`, `${last}.requires_grad_()`, `${last}.sum().backward()`, `${last}.sum().backward(retain_graph=True)`,
    `for i in range(3):\n    ${last} = ${last}.sin()`, block("no_grad"), block("enable_grad"), block("inference_mode"), "torch.set_grad_enabled(False)", `del ${last}`, ...made,
  ];
}
