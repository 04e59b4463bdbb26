// The tree: one row per place, with the order in which the walk came there. Arrow keys move in it.

import { h, put } from "../explorer.js";
import { last, parent } from "./graph.js";
import { reached } from "./walks.js";
import { what } from "./words.js";

const MARKS = { modules: "■", parameters: "●", buffers: "◆", lists: "□" };
const NOUNS = { modules: "module", parameters: "parameter", buffers: "buffer", lists: "" };

/** `pick(path)` is called when somebody chooses a row. */
export function tree(pick) {
  const items = [];
  let paths = [];
  const element = h("div", { class: "mo-tree", role: "tree", "aria-label": "The model", onkeydown: key });

  function key(event) {
    const from = items.indexOf(event.target);
    const up = paths.indexOf(parent(paths[from] ?? ""));
    const inside = paths[from + 1] && parent(paths[from + 1]) === paths[from] ? from + 1 : from;
    const to = { ArrowUp: from - 1, ArrowDown: from + 1, ArrowLeft: up, ArrowRight: inside, Home: 0, End: paths.length - 1 }[event.key];
    if (from < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (paths[to] === undefined) return;
    pick(paths[to]);
    items[to].focus();
  }

  function item(n) {
    const made = h("div", { role: "treeitem", class: "mo-row", onclick: () => { pick(paths[n]); made.focus(); } });
    items[n] = made;
    return made;
  }

  /** `list` are the rows, `events` the walk, of which `step` are done; `chosen` is a path. */
  function show(list, events, step, chosen) {
    paths = list.map(({ path }) => path);
    while (items.length > list.length) items.pop().remove();
    while (items.length < list.length) element.append(item(items.length));
    const ways = reached(events);
    const order = new Map();
    let given = 0;
    events.slice(0, step).forEach((event) => order.set(event.path, event.what === "given" ? `${given += 1}` : "–"));
    const here = events[step - 1]?.path;
    const times = new Map();
    const first = new Map();
    // Places of an object; the same place seen through a module's second name is no second one.
    for (const { path, object, owner } of list) {
      if (!object) continue;
      if (!first.has(object)) first.set(object, path);
      if (!owner || first.get(owner) === parent(path)) times.set(object, (times.get(object) ?? 0) + 1);
    }
    list.forEach(({ path, depth, species, object, owner, listed }, n) => {
      const again = object && first.get(object) !== path && first.get(owner) === parent(path);
      const tags = [
        again ? `is ${first.get(object) || "model"}` : times.get(object) > 1 && first.get(object) === path ? `${times.get(object)} names` : null,
        object === null ? "None" : null,
        species === "parameters" && object && !object.trainable ? "frozen" : null,
        owner?.unsaved.has(last(path)) ? "not saved" : null,
        species === "lists" ? "not registered" : null,
      ].filter(Boolean);
      const row = items[n];
      const number = order.get(path) ?? "";
      put(row,
        h("span", { class: "mo-order" }, path === here && step <= events.length ? h("i", { "aria-hidden": "true" }, "▸") : null, number === "–" ? h("span", { "aria-hidden": "true" }, number) : number),
        h("span", { class: "mo-name", style: `--depth:${depth}` }, h("i", { "aria-hidden": "true" }, MARKS[species]), h("b", {}, path ? last(path) : "model"), " ",
          h("span", {}, object ? what(object) : ""), tags.map((tag) => [" ", h("em", { class: tag.startsWith("is ") ? "is" : "" }, tag)])));
      row.className = `mo-row ${species} ${listed ? "listed" : ""} ${ways.has(path) ? "" : "off"} ${number === "–" ? "passed" : ""} ${path === here ? "here" : ""}`;
      row.tabIndex = path === chosen ? 0 : -1;
      // As it is read: a name that is spoken must begin with what is seen.
      for (const [name, value] of Object.entries({
        "aria-level": depth + 1, "aria-selected": path === chosen,
        "aria-label": [number === "–" ? "" : number, path ? last(path) : "model", object ? what(object) : "", ...tags, NOUNS[species], number === "–" ? "passed over" : ""].filter(Boolean).join(", "),
      })) row.setAttribute(name, value);
    });
  }
  const focus = () => items.find((row) => row.tabIndex === 0)?.focus();
  return { element, show, focus };
}
