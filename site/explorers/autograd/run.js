// Runs a program line by line and notes, after each, what torch would say of every tensor and node. No DOM.

import { METHODS, Raised, lines } from "./program.js";
import { backward, reachable, unpack } from "./nodes.js";
import { METHOD, binary, edge, gradFn, inPlace, fresh, product, requiresGrad, setRequiresGrad, valuesOf, wrapped } from "./tensors.js";

const TAKES = { add_: 1, mul_: 1, view: 1 };
const MAY_TAKE = ["requires_grad_", "sum", "mean"];
const ARITHMETIC = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b };
const OPTIONS = { backward: "retain_graph", requires_grad_: "requires_grad" };
// What may be asked of x.grad; more would need its own history.
const OF_GRAD = ["exp", "sin", "relu", "sum", "mean", "clone", "item"];
/** The most lines that run, loops counted. */
const MOST = 80;

const typeOf = (value) => (value === null ? "NoneType" : value.storage ? "Tensor" : value.float ? "float" : "int");
const page = (message) => new Raised("Page", message);

function calculate(world, sign, a, b, how = sign) {
  if (a === null || b === null) throw new Raised("TypeError", `unsupported operand type(s) for ${how}: '${typeOf(a)}' and '${typeOf(b)}'`);
  if (sign === "@" && a.storage && b.storage) return product(world, a, b);
  if (sign === "@" && (a.storage || b.storage)) throw new Raised("TypeError", `unsupported operand type(s) for @: '${typeOf(a)}' and '${typeOf(b)}'`);
  if (a.storage && how !== sign) return inPlace(world, sign, a, b.storage ? b : wrapped(b));
  if (a.storage || b.storage) return binary(world, sign, a.storage ? a : wrapped(a), b.storage ? b : wrapped(b));
  if (sign === "@") throw new Raised("TypeError", `unsupported operand type(s) for ${how}: '${typeOf(a)}' and '${typeOf(b)}'`);
  if (sign === "/" && b.number === 0) throw new Raised("ZeroDivisionError", a.float || b.float ? "float division by zero" : "division by zero");
  return { number: ARITHMETIC[sign](a.number, b.number), float: a.float || b.float || sign === "/" };
}

function evaluate(world, names, e) {
  const of = (part) => evaluate(world, names, part);
  switch (e[0]) {
    case "number": return { number: e[1], float: e[2] };
    case "constant": return e[1] === null ? null : { number: Number(e[1]), float: false };
    case "name":
      if (!names.has(e[1])) throw new Raised("NameError", `name '${e[1]}' is not defined`);
      return names.get(e[1]);
    case "binary": return calculate(world, e[1], of(e[2]), of(e[3]));
    case "negative":
    case "power": {
      const value = of(e[1]);
      if (value?.storage) return METHOD[e[0]](world, value, e[2]);
      if (value === null) throw new Raised("TypeError", e[0] === "power" ? "unsupported operand type(s) for ** or pow(): 'NoneType' and 'int'" : "bad operand type for unary -: 'NoneType'");
      return { ...value, number: e[0] === "power" ? value.number ** e[2] : -value.number };
    }
    case "make": {
      const made = fresh(world, e[1], e[2]);
      return e[3] ? setRequiresGrad(world, made, true) : made;
    }
  }
  const t = of(e[1]);
  const isGrad = e[1][0] === "attribute" && e[1][2] === "grad";
  if (!t?.storage) throw e[0] === "call" || e[0] === "attribute" ? new Raised("AttributeError", `'${typeOf(t)}' object has no attribute '${e[2]}'`) : new Raised("TypeError", `'${typeOf(t)}' object is not subscriptable`);
  if (isGrad && !(e[0] === "call" && OF_GRAD.includes(e[2]))) throw page("Of x.grad this page knows arithmetic, clone, sum and item.");
  if (e[0] === "slice" || e[0] === "index") return METHOD[e[0]](world, t, e[2], e[3]);
  if (e[0] === "attribute") {
    if (e[2] === "data") return METHOD.data(world, t);
    if (e[2] !== "grad") throw page(METHODS.includes(e[2]) ? `A call needs brackets: .${e[2]}()` : "This page reads .data and .grad; the table shows the rest.");
    if (world.grad && !world.inference) throw page("This page reads x.grad only where nothing is recorded: put with torch.no_grad(): around it, as an optimizer does.");
    return t.grad && { ...fresh({ inference: t.grad.inference }, t.grad.values, t.shape) };
  }
  const [, , method, args, named] = e;
  const values = args.map(of);
  const option = OPTIONS[method];
  if (Object.keys(named).some((name) => name !== option)) throw page(`This page knows no such option of .${method}().`);
  if (values.length !== (TAKES[method] ?? (MAY_TAKE.includes(method) ? values.length && 1 : 0))) throw page(`.${method}() takes ${TAKES[method] ? "one value" : "nothing"} here.`);
  switch (method) {
    case "add_":
    case "mul_":
      if (values[0] === null) throw new Raised("TypeError", `${method}(): argument 'other' (position 1) must be Tensor, not NoneType`);
      return calculate(world, method === "add_" ? "+" : "*", t, values[0], method);
    case "view":
      if (values[0]?.number === undefined || values[0].float) throw page("view takes one whole number here.");
      return METHOD.view(world, t, values[0].number);
    case "requires_grad_": return setRequiresGrad(world, t, values.length ? Boolean(values[0]?.number) : named.requires_grad ?? true);
    case "backward":
      world.leaves = backward(world, t, named.retain_graph ?? false);
      return null;
    default:
      if (!values.length) return METHOD[method](world, t);
      if (values[0]?.number === undefined || values[0].float) throw page(`.${method}() takes one dim, or nothing.`);
      return METHOD[method](world, t, values[0].number);
  }
}

function execute(world, names, statement) {
  const [kind, name, ...rest] = statement;
  const value = (e) => evaluate(world, names, e);
  const held = () => value(["name", name]);
  switch (kind) {
    case "assign":
      if (rest[0][0] === "attribute" && rest[0][2] === "grad") throw page("This page gives x.grad no second name. Write x.grad.clone(), or use it in a sum or a product.");
      names.set(name, value(rest[0]));
      break;
    case "inplace": names.set(name, calculate(world, rest[0], held(), value(rest[1]), `${rest[0]}=`)); break;
    case "set": {
      const t = held();
      if (!t?.storage) throw new Raised("AttributeError", `'${typeOf(t)}' object has no attribute '${rest[0]}'`);
      if (rest[0] === "grad") t.grad = null;
      else setRequiresGrad(world, t, rest[1], true);
      break;
    }
    case "del":
      for (const one of name) {
        if (!names.has(one)) throw new Raised("NameError", `name '${one}' is not defined`);
        names.delete(one);
      }
      break;
    case "mode": world.grad = name; break;
    case "do": value(name);
  }
}

const attempt = (ask) => {
  try { return { is: ask() }; } catch (error) {
    if (error instanceof Raised) return { raises: error.message };
    throw error;
  }
};

/**
 * What can be asked of every tensor and node. In torch, asking a view for its grad_fn can give it a new one;
 * this is undone, for the next line is to find what it would have found had nobody asked.
 */
function photograph(world, names) {
  world.looked = [];
  const storages = [];
  const memory = ({ storage }) => storages.includes(storage) ? storages.indexOf(storage) : storages.push(storage) - 1;
  const tensors = [...names].map(([name, t]) => (!t?.storage ? { name, number: t?.number ?? null, float: t?.float } : {
    name, t, values: valuesOf(t), shape: t.shape, requires: requiresGrad(t), fn: attempt(() => gradFn(world, t)), version: t.inference ? null : t.counter.n,
    inference: t.inference, memory: memory(t), grad: t.grad, twin: [...names].find(([, other]) => other === t)[0], view: Boolean(t.view), offset: t.offset,
  }));
  const nodes = reachable(tensors.map(({ fn }) => fn?.is)).map((one) => ({
    one, name: one.name, next: one.next, freed: one.freed, variable: one.variable,
    saved: [one, one.inner].flatMap((owner) => Object.entries(owner?.saved ?? {}).filter(([, kept]) => kept).map(([part, kept]) => ({
      part, hidden: owner === one.inner, tensor: kept.tensor.named ?? kept.tensor, copy: Boolean(kept.tensor.named), version: kept.version,
      now: kept.counter.n, freed: owner.freed, memory: kept.tensor.storage, values: valuesOf(kept.tensor),
      raises: attempt(() => unpack(world, owner, part)).raises ?? null,
      silent: kept.counter.n === kept.version && valuesOf(kept.tensor).some((value, i) => !Object.is(value, kept.then[i])),
    }))),
  }));
  const kept = new Set(nodes.flatMap(({ saved }) => saved.filter(({ freed }) => !freed).map(({ memory: storage }) => storage)));
  const bytes = [...kept].reduce((total, { data, size }) => total + data.length * size, 0);
  for (const [t, fn, version] of world.looked.reverse()) Object.assign(t, { fn, view: Object.assign(t.view, { version }) });
  world.looked = null;
  return { grad: world.grad, inference: world.inference, tensors, nodes, bytes };
}

/**
 * After each line { line, turn, grad, inference, tensors, nodes, bytes, error, born, leaves, statement }; the first that raises
 * is the last. `turn` is how often the line has run: in a loop it runs more than once.
 */
export function run(code) {
  const world = { grad: true, inference: false, made: 0, values: valuesOf, gradFn, edge, requiresGrad };
  const names = new Map();
  const rows = lines(code);
  const open = []; // per block what was before, or the loop that it is
  const shots = [];
  const turns = new Map();
  for (let at = 0; ; at += 1) {
    while (open.length > (rows[at]?.depth ?? 0)) {
      const block = open.at(-1);
      if (block.turn + 1 < block.turns) {
        ({ at } = block);
        break;
      }
      Object.assign(world, open.pop().before);
    }
    const line = rows[at];
    if (!line) return shots;
    const { made } = world;
    world.leaves = [];
    const { statement } = line;
    let error = line.error ?? (shots.length === MOST ? page(`This page runs at most ${MOST} lines.`) : null);
    try {
      if (!error && statement[0] === "with") {
        open.push({ before: { grad: world.grad, inference: world.inference } });
        world.grad = statement[2];
        world.inference ||= statement[1] === "inference_mode";
      } else if (!error && statement[0] === "for") {
        if (open.at(-1)?.at !== at) open.push({ at, turn: -1, turns: statement[2], before: {} });
        names.set(statement[1], { number: open.at(-1).turn += 1, float: false });
      } else if (!error) execute(world, names, statement);
    } catch (raised) {
      if (!(raised instanceof Raised)) throw raised;
      error = raised;
    }
    turns.set(line.at, (turns.get(line.at) ?? 0) + 1);
    const until = world.made;
    const shot = photograph(world, names);
    shots.push({ ...shot, line, turn: turns.get(line.at), statement, error, leaves: world.leaves, born: shot.nodes.filter(({ one }) => one.id > made && one.id <= until) });
    if (error) return shots;
  }
}
