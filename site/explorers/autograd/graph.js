// The graph as a drawing: results above, leaves below, each node a box with what it saves.

import { h, svg } from "../explorer.js";
import { called, keeps } from "./words.js";

const WIDTH = 200;
const LINE = 15;
const GAP = 16;
const RISE = 30;

/** What stands in a node's box: [class, text] for each line. */
function content(node, shot) {
  const names = shot.tensors.filter(({ fn }) => fn?.is === node.one).map(({ name }) => name);
  const lines = [["name", node.name]];
  if (node.variable) lines.push(["of", `puts into ${called(node.variable, shot)}.grad`.replace("a result without a name", "a leaf")]);
  else if (names.length) lines.push(["of", `grad_fn of ${names.join(", ")}`]);
  for (const kept of node.saved) {
    const [state, said] = kept.freed ? ["freed", " · freed"] : kept.now !== kept.version ? ["moved", ` ✗ now ${kept.now}`] : kept.silent ? ["moved", " ≠ changed"] : ["kept", ""];
    const text = keeps(kept, shot).replace(", version ", " v").replace("a result without a name", kept.part === "result" ? "its result" : "a result").replace("the number ", "");
    lines.push([state, `saved ${text}${said}`]);
  }
  return lines;
}

/** Rows of boxes; an edge over several rows has a place of its own in each, so that it crosses no box. */
function rows(nodes) {
  const depth = new Map();
  const down = (one, level) => {
    if ((depth.get(one) ?? -1) >= level) return;
    depth.set(one, level);
    for (const to of one.next) if (to) down(to, level + 1);
  };
  const inner = new Set(nodes.flatMap(({ one }) => one.next));
  for (const { one } of nodes) if (!inner.has(one)) down(one, 0);
  const table = Array.from({ length: Math.max(-1, ...depth.values()) + 1 }, () => []);
  const slots = new Map(nodes.map((node) => [node.one, { node, width: WIDTH, up: [] }]));
  for (const [one, slot] of slots) table[depth.get(one)].push(slot);
  const edges = [];
  for (const [one, slot] of slots) {
    for (const to of new Set(one.next.filter(Boolean))) {
      const path = [slot];
      for (let level = depth.get(one) + 1; level < depth.get(to); level += 1) {
        const bend = { width: 14, up: [path.at(-1)] };
        table[level].push(bend);
        path.push(bend);
      }
      slots.get(to).up.push(path.at(-1));
      edges.push({ path: [...path, slots.get(to)], count: one.next.filter((other) => other === to).length });
    }
  }
  for (const row of table) {
    const place = ({ up }) => (up.length ? up.reduce((sum, { at }) => sum + at, 0) / up.length : 0);
    row.sort((a, b) => place(a) - place(b));
    row.forEach((slot, i) => { slot.at = i - (row.length - 1) / 2; });
  }
  return { table, edges };
}

/** An svg of the graph after a line. `width` is the room that there is. */
export function drawGraph(shot, width) {
  const { table, edges } = rows(shot.nodes);
  const widths = table.map((row) => row.reduce((sum, slot) => sum + slot.width + GAP, -GAP));
  const whole = Math.max(...widths) + 8;
  const room = Math.max(whole, Math.min(width, 420));
  let y = 6;
  const boxes = [];
  table.forEach((row, level) => {
    let x = (room - widths[level]) / 2;
    const lines = row.map(({ node }) => (node ? content(node, shot) : []));
    const height = Math.max(...lines.map((all) => all.length)) * LINE + 12;
    row.forEach((slot, i) => {
      const own = slot.node ? lines[i].length * LINE + 12 : height;
      Object.assign(slot, { x: x + slot.width / 2, top: y, bottom: y + own });
      x += slot.width + GAP;
      if (!slot.node) return;
      const fresh = shot.born.some(({ one }) => one === slot.node.one);
      boxes.push(svg("g", { class: `${slot.node.variable ? "leaf" : ""} ${fresh ? "fresh" : ""}`, transform: `translate(${slot.x - WIDTH / 2} ${y})` },
        svg("rect", { width: WIDTH, height: own, rx: 6 }),
        lines[i].map(([look, text], line) => svg("text", { class: look, x: 9, y: 17 + line * LINE, textLength: text.length > 25 ? WIDTH - 16 : null, lengthAdjust: "spacingAndGlyphs" }, text))));
    });
    y += height + RISE;
  });
  const lines = edges.map(({ path, count }) => {
    const d = path.slice(1).map((to, i) => {
      const from = path[i];
      const middle = (from.bottom + to.top) / 2;
      return `M${from.x} ${from.bottom}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.top}${to.node ? "" : `V${to.bottom}`}`;
    });
    return [svg("path", { d: d.join(""), class: "edge" }), svg("path", { class: "tip", d: `M${path.at(-1).x} ${path.at(-1).top}l-4 -7h8z` }),
      count > 1 ? svg("text", { class: "twice", x: path[0].x + 7, y: path[0].bottom + 13 }, `×${count}`) : null];
  });
  return svg("svg", { viewBox: `0 0 ${room} ${y - RISE + 6}`, width: room, height: y - RISE + 6, "aria-hidden": "true" }, lines, boxes);
}

/** The same in words, for who does not see the drawing. */
export const spoken = (shot) => h("ul", { class: "ut-unseen" }, shot.nodes.map((node) => h("li", {},
  `${content(node, shot).map(([, text]) => text).join(", ")}. ${node.variable ? "" : `Next: ${node.next.map((to) => to?.name ?? "None").join(", ")}.`}`)));
