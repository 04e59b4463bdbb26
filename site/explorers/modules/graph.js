// Modules as PyTorch keeps them: dicts of parameters, buffers and modules, and what lies beside them.
// A model is told as statements, [path, verb, ...words]: what an address holds, and what edits are.
// A Map keeps order exactly as a dict does: a new name goes to the end, a known one keeps its place.

export const SPECIES = ["parameters", "buffers", "modules", "lists"];
export const MOST_ROWS = 60;
const MOST_DEPTH = 5;

const norm = (n) => ({ weight: [n], bias: [n] });
// What a kind registers, and how many sizes it takes.
const KINDS = {
  Linear: [2, (i, o) => ({ weight: [o, i], bias: [o] })],
  Embedding: [2, (n, d) => ({ weight: [n, d] })],
  Conv2d: [3, (i, o, k) => ({ weight: [o, i, k, k], bias: [o] })],
  BatchNorm1d: [1, norm], BatchNorm2d: [1, norm], LayerNorm: [1, norm],
  ReLU: [0], Tanh: [0], Sequential: [0], ModuleList: [0], Module: [0], list: [0],
};

// What is at most 20 long of dir(nn.Module()) and Python's own words; a test asks both.
const TAKEN = new Set(("T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers named_children named_modules named_parameters parameters register_buffer register_module register_parameter requires_grad_ set_extra_state set_submodule share_memory state_dict to to_empty train training type xpu zero_grad "
  + "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield").split(" "));

export const join = (path, name) => path ? `${path}.${name}` : name;
export const parent = (path) => path.slice(0, Math.max(0, path.lastIndexOf(".")));
export const last = (path) => path.slice(path.lastIndexOf(".") + 1);

/** Does it take new parts under names, or in order? */
export const isOpen = ({ kind }) => kind === "Model" || kind === "Module";
export const isIndexed = ({ kind }) => kind === "Sequential" || kind === "ModuleList" || kind === "list";

const tensor = (species, shape) => ({ species, shape, trainable: species === "parameters" });

export function module(kind, sizes = []) {
  const filled = (species, shapes) => new Map(Object.entries(shapes).map(([name, shape]) => [name, tensor(species, shape)]));
  return {
    kind, sizes, species: kind === "list" ? "lists" : "modules", unsaved: new Set(), modules: new Map(), lists: new Map(),
    parameters: filled("parameters", KINDS[kind]?.[1]?.(...sizes) ?? {}),
    buffers: filled("buffers", kind.startsWith("BatchNorm") ? { running_mean: sizes, running_var: sizes, num_batches_tracked: [] } : {}),
  };
}

/** Which of its dicts has the name, if one has. */
export const home = (owner, name) => SPECIES.find((species) => owner[species]?.has(name));

/** What is at a path; null for an entry that is None, undefined if there is no entry. */
export function at(root, path) {
  const step = (node, name) => node?.[node && home(node, name)]?.get(name);
  return path ? path.split(".").reduce(step, root) : root;
}

/** Is `wanted` this module, or somewhere below it? */
export const contains = (node, wanted) => node === wanted
  || [...node.modules.values(), ...node.lists.values()].some((child) => child && contains(child, wanted));

function assign(root, path, object, species = object.species) {
  const owner = at(root, parent(path));
  const name = last(path);
  if (!owner?.modules) throw new Error(`There is no module ${parent(path)}.`);
  const was = home(owner, name);
  if (was ? was !== species : isIndexed(owner) ? species !== "modules" || name !== `${owner.modules.size}` : !isOpen(owner)) {
    throw new Error(`${name} cannot become one of its ${species}.`);
  }
  if (object === null && owner.kind === "list") throw new Error("A plain list holds modules here.");
  if (!was && !isIndexed(owner)) {
    if (!/^[a-z]\w{0,19}$/i.test(name)) throw new Error("A name has letters, digits and _, begins with a letter, and is at most 20 long.");
    if (TAKEN.has(name)) throw new Error(`${name} is taken: Python or nn.Module needs it.`);
  }
  if (object?.modules && contains(object, owner)) {
    throw new Error("Then it would contain itself. named_modules() would end, thanks to its memo; state_dict() would not.");
  }
  owner[species].set(name, object);
  // As register_buffer does, which is how a buffer comes to its name here.
  if (species === "buffers" && object) owner.unsaved.delete(name);
}

function remove(root, path) {
  const owner = at(root, parent(path));
  const name = last(path);
  owner[home(owner, name)].delete(name);
  owner.unsaved.delete(name);
  if (isIndexed(owner)) owner.modules = new Map([...owner.modules.values()].map((child, i) => [`${i}`, child]));
}

/** requires_grad_(…) of a parameter, or of a module: then of all that parameters() gives. */
function train(object, trainable) {
  if (object?.shape) object.trainable = trainable;
  for (const tensor of object?.parameters?.values() ?? []) train(tensor, trainable);
  for (const child of object?.modules?.values() ?? []) train(child, trainable);
}

/** Carry out one statement, in place. */
export function act(root, [path, verb, ...words]) {
  const sizes = words.map(Number);
  const sized = sizes.every((n) => Number.isInteger(n) && n > 0 && n < 10_000);
  const there = at(root, path);
  if (Object.hasOwn(KINDS, verb)) {
    if (!sized || sizes.length !== KINDS[verb][0]) throw new Error(`${verb} takes ${KINDS[verb][0]} sizes.`);
    return assign(root, path, module(verb, sizes));
  }
  if (verb === "Parameter" || verb === "Buffer") {
    if (!sized || sizes.length > 4) throw new Error("At most four sizes, please.");
    return assign(root, path, tensor(`${verb.toLowerCase()}s`, sizes));
  }
  if (verb === "None" && SPECIES.slice(0, 3).includes(words[0])) return assign(root, path, null, words[0]);
  if (verb === "is" && path && at(root, words[0])) return assign(root, path, at(root, words[0]));
  const owner = there === undefined || !path ? null : at(root, parent(path));
  if (owner && (verb === "registered" && there?.kind === "list" || verb === "plain" && there?.kind === "ModuleList")) {
    const made = { ...module(verb === "plain" ? "list" : "ModuleList"), modules: new Map(there.modules) };
    if (!isOpen(owner) || verb === "plain" && [...made.modules.values()].includes(null)) throw new Error("A plain list holds modules here.");
    owner[there.species].delete(last(path));
    return owner[made.species].set(last(path), made);
  }
  if (verb === "del" && owner) return remove(root, path);
  if (verb === "unsaved" && owner?.buffers.has(last(path))) return owner.unsaved.add(last(path));
  if (verb === "saved" && owner?.buffers.has(last(path))) return owner.unsaved.delete(last(path));
  if ((verb === "frozen" || verb === "trainable") && there) return train(there, verb === "trainable");
  throw new Error(`There is no ${path || "model"} for ${verb}.`);
}

/** The model that the statements make. Throws a sentence where one of them cannot be. */
export function build(statements) {
  const root = module("Model");
  for (const statement of statements) act(root, statement);
  rows(root);
  return root;
}

/** Every path, depth first: { path, depth, species, object, owner, listed }. */
export function rows(root) {
  const list = [{ path: "", depth: 0, species: "modules", object: root, owner: null, listed: false }];
  const visit = (owner, path, depth, listed) => {
    for (const species of SPECIES) {
      for (const [name, object] of owner[species]) {
        const hidden = listed || species === "lists";
        const below = join(path, name);
        list.push({ path: below, depth, species, object, owner, listed: hidden });
        if (list.length > MOST_ROWS) throw new Error(`That is more than the ${MOST_ROWS} places that this page shows.`);
        if (depth > MOST_DEPTH) throw new Error("That is deeper than this page shows.");
        if (object?.modules) visit(object, below, depth + 1, hidden);
      }
    }
  };
  visit(root, "", 1, false);
  return list;
}

/** The fewest statements that make this model. */
export function statements(root) {
  const first = new Map();
  const list = [];
  for (const { path, species, object, owner } of rows(root)) {
    if (!owner) continue;
    // Below the second name of a module nothing is new.
    if (first.has(owner) && first.get(owner) !== parent(path)) continue;
    const name = last(path);
    const usual = owner.usual?.[species].get(name);
    if (object === null) list.push([path, "None", species]);
    else if (first.has(object)) list.push([path, "is", first.get(object)]);
    else {
      first.set(object, path);
      if (!object.shape) {
        list.push([path, object.kind, ...object.sizes]);
        // What it would register by itself, to compare; what is gone has no row.
        object.usual = module(object.kind, object.sizes);
        for (const own of ["parameters", "buffers"]) {
          for (const gone of object.usual[own].keys()) if (!object[own].has(gone)) list.push([join(path, gone), "del"]);
        }
      } else if (usual?.shape.join() !== object.shape.join()) {
        list.push([path, species === "buffers" ? "Buffer" : "Parameter", ...object.shape]);
      }
      if (species === "parameters" && !object.trainable) list.push([path, "frozen"]);
    }
    if (owner.unsaved.has(name)) list.push([path, "unsaved"]);
  }
  return list;
}

// As an address has it; no character that would have to be escaped.
export const pack = (list) => list.map((words) => words.join("-")).join("*");
export const unpack = (text) => text ? text.split("*").map((words) => words.split("-")) : [];
