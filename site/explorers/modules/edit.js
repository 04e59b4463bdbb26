// What can be done to the chosen place: assign, add, rename, delete, and three switches.

import { h, put } from "../explorer.js";
import { at, contains, home, isIndexed, isOpen, join, last, parent, rows } from "./graph.js";
import { ref } from "./python.js";
import { what } from "./words.js";

const NEW = ["Linear-4-4", "ReLU", "BatchNorm1d-4", "Sequential", "ModuleList", "Module"];
const MORE = ["list", "Parameter-4", "Buffer-4"];

/** "Linear-4-4" as Python. */
const fresh = (text) => {
  const [kind, ...sizes] = text.split("-");
  return kind === "list" ? "[ ], a plain list" : kind === "Parameter" ? `nn.Parameter (${sizes.join(", ")})` : kind === "Buffer" ? `a buffer (${sizes.join(", ")})` : `nn.${kind}(${sizes.join(", ")})`;
};

/** A name that is free: linear, linear2 … */
function suggested(owner, text) {
  const stem = text.startsWith("is-") ? "again" : { list: "layers", Parameter: "scale", Buffer: "mask" }[text.split("-")[0]] ?? text.split("-")[0].toLowerCase();
  for (let n = 1; ; n += 1) {
    const name = n > 1 ? `${stem}${n}` : stem;
    if (at(owner, name) === undefined) return name;
  }
}

/** A name as it was typed; a dot would lead elsewhere, and a space is refused. */
const typedIn = (field) => field.value.trim().replaceAll(".", " ");

/** Fill a select with groups of [value, label], keeping what was chosen where it is still there. */
function fill(select, groups) {
  const was = select.value;
  put(select, groups.filter(([, list]) => list.length).map(([label, list]) =>
    h("optgroup", { label }, list.map(([value, text]) => h("option", { value }, text)))));
  if ([...select.options].some(({ value }) => value === was)) select.value = was;
}

/** `act(path, ...statements)` carries them out, and chooses that path then. */
export function editor(act) {
  let root, path, owner, object;
  const button = (text, onclick) => h("button", { type: onclick ? "button" : "submit", class: "ut-button", onclick }, text);
  const form = (onsubmit, ...inside) => h("form", { class: "mo-form", onsubmit: (event) => { event.preventDefault(); onsubmit(); } }, inside);
  const title = h("p", { class: "mo-title" });

  const place = h("code", {});
  const value = h("select", { "aria-label": "what this place points to" });
  const remove = button("Delete", () => act(parent(path), [path, "del"]));
  const assign = form(() => act(path, [path, ...value.value.split("-")]), place, value, button("Assign"), remove);

  const within = h("code", {});
  const equals = h("span", {});
  const name = h("input", { type: "text", size: 10, maxlength: 24, autocomplete: "off", autocapitalize: "none", spellcheck: "false", "aria-label": "name of the new part", "aria-describedby": "mo-help", oninput: () => { typed = true; } });
  let typed = false;
  const part = h("select", { "aria-label": "what to add", onchange: () => suggest() });
  const add = form(() => {
    const to = join(path, isIndexed(object) ? `${object.modules.size}` : typedIn(name));
    if (home(object, last(to))) return refuse(`There is ${last(to)} already. Choose it in the tree to point it elsewhere.`);
    typed = false;
    act(path, [to, ...part.value.split("-")]);
  }, h("span", { class: "mo-place" }, within, name, equals), part, button("Add"));
  const suggest = () => { if (!typed) name.value = suggested(object, part.value || "ReLU"); };

  const newName = h("input", { type: "text", size: 10, maxlength: 24, autocomplete: "off", autocapitalize: "none", spellcheck: "false", id: "mo-rename", "aria-describedby": "mo-help" });
  const rename = form(() => {
    const to = join(parent(path), typedIn(newName));
    if (home(owner, last(to))) return refuse(`There is ${last(to)} already.`);
    // Python has no other way: a second name, and away with the first. It goes to the end.
    act(to, [to, ...object ? ["is", path] : ["None", species()]], ...owner.unsaved.has(last(path)) ? [[to, "unsaved"]] : [], [path, "del"]);
  }, h("label", { for: "mo-rename" }, "new name"), newName, button("Rename"), h("span", { class: "ut-soft" }, "moves to the end"));
  const species = () => rows(root).find((row) => row.path === path).species;

  const check = (text, onchange) => {
    const box = h("input", { type: "checkbox", onchange: () => onchange(box.checked) });
    return { box, element: h("label", { class: "mo-check" }, box, text) };
  };
  const grad = check("requires_grad", (on) => act(path, [path, on ? "trainable" : "frozen"]));
  const saved = check("persistent", (on) => act(path, [path, on ? "saved" : "unsaved"]));
  const listed = check("registered, as an nn.ModuleList", (on) => act(path, [path, on ? "registered" : "plain"]));
  const help = h("p", { id: "mo-help", class: "mo-help", "aria-live": "polite" });
  const element = h("section", { class: "ut-panel mo-edit", "aria-label": "Edit" }, title, add, assign, rename,
    h("p", { class: "mo-checks" }, grad.element, saved.element, listed.element), help);

  function refuse(text) {
    help.className = "mo-help no";
    put(help, text);
  }

  /** `said` is what the last edit was, as Python. */
  function show(now, chosen, said) {
    [root, path] = [now, chosen];
    object = at(root, path);
    owner = path ? at(root, parent(path)) : null;
    const list = rows(root);
    const row = list.find((known) => known.path === path);
    const firsts = new Map();
    for (const other of list) if (other.object && !firsts.has(other.object)) firsts.set(other.object, other);
    // What a place in `into` may point to: objects that are there, under their first names.
    const known = (kinds, into, shape) => [...firsts.values()]
      .filter(({ path: from, species: kind, object: other }) => from && kinds.includes(kind) && !(other.modules && contains(other, into)) && (!shape || other.shape.join() === shape))
      .map(({ path: from, object: other }) => [`is-${from}`, `${ref(root, from)}, ${what(other)}`]);
    put(title, h("span", { class: "ut-soft" }, "Change "), h("b", {}, ref(root, path)), object ? ` ${what(object)}` : " None");

    assign.hidden = !owner;
    value.hidden = assign.children[2].hidden = row.species === "lists";
    if (owner) {
      put(place, ref(root, path), row.species === "lists" ? "" : " = ");
      const shape = object?.shape ?? null;
      const news = row.species === "modules" ? NEW : row.species === "lists" ? [] : [[row.species === "buffers" ? "Buffer" : "Parameter", ...shape ?? [4]].join("-")];
      fill(value, [
        ["a new", news.map((text) => [text, fresh(text)])],
        ["the very object at", known([row.species], owner, row.species === "modules" ? null : shape?.join()).filter(([text]) => at(root, text.slice(3)) !== object)],
        ["or", row.species === "lists" || owner.kind === "list" || !object ? [] : [[`None-${row.species}`, "None"]]],
      ]);
    }
    add.hidden = !object?.modules || !(isOpen(object) || isIndexed(object));
    if (!add.hidden) {
      const open = isOpen(object);
      put(within, open ? `${ref(root, path)}.` : `${ref(root, path)}.append(`);
      name.hidden = !open;
      equals.textContent = open ? " = " : "…)";
      fill(part, [
        ["a new", [...NEW, ...open ? MORE : []].map((text) => [text, fresh(text)])],
        ["the very object at", known(open ? ["modules", "parameters", "lists"] : ["modules"], object)],
      ]);
      suggest();
    }
    rename.hidden = !owner || !isOpen(owner);
    if (document.activeElement !== newName) newName.value = path ? last(path) : "";
    const below = list.filter(({ path: p, species: kind, object: o }) => o && kind === "parameters" && `${p}.`.startsWith(path && `${path}.`)).map(({ object: o }) => o);
    grad.element.hidden = !below.length || row.species === "lists";
    grad.box.checked = below.every(({ trainable }) => trainable);
    grad.box.indeterminate = !grad.box.checked && below.some(({ trainable }) => trainable);
    saved.element.hidden = row.species !== "buffers";
    saved.box.checked = !owner?.unsaved.has(last(path));
    listed.element.hidden = !object || !["list", "ModuleList"].includes(object.kind) || !isOpen(owner);
    listed.box.checked = object?.kind === "ModuleList";
    help.className = "mo-help";
    put(help, said ? h("code", {}, said) : null);
  }
  return { element, show, refuse };
}
