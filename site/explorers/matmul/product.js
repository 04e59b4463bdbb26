// The drawing of one element: the row of A and the column of B that meet in it.

import { svg } from "../explorer.js";

const CELL = 25;
const SKIP = 15;
const SHEET = 5;

/** Which indices to draw of `size`: all, or the ends and those around `at`; null stands for what is left out. */
export function tracks(size, at, most) {
  if (size <= most + 1) return Array.from({ length: size }, (_, index) => index);
  const near = Math.min(Math.max(at, 1), size - 2);
  const chosen = new Set([0, size - 1]);
  for (let reach = 0; chosen.size < most - 1; reach += 1) {
    for (const index of [near - reach, near + reach]) {
      if (chosen.size < most - 1 && index >= 0 && index < size) chosen.add(index);
    }
  }
  const sorted = [...chosen].sort((a, b) => a - b);
  return sorted.flatMap((index, i) => (i && index !== sorted[i - 1] + 1 ? [null, index] : [index]));
}

const lengthOf = (list) => list.reduce((sum, index) => sum + (index === null ? SKIP : CELL), 0);

function places(list, from) {
  let at = from;
  return list.map((index) => {
    const size = index === null ? SKIP : CELL;
    at += size;
    return { index, at: at - size, size };
  });
}

/** A matrix: sheets behind it, cells, and in each cell what `fill` gives: [class, text] or null. */
function matrix(x, y, rows, columns, sheets, name, fill) {
  const [width, height] = [lengthOf(columns), lengthOf(rows)];
  const behind = Array.from({ length: Math.min(sheets, 3) - 1 }, (_, i) => (Math.min(sheets, 3) - 1 - i) * SHEET)
    .map((off) => svg("rect", { class: "sheet", x: x + off, y: y - off, width, height }));
  const cells = places(rows, y).flatMap((row) => places(columns, x).map((column) => {
    const [look = "", text = ""] = fill(row.index, column.index) ?? [];
    const box = { x: column.at, y: row.at, width: column.size, height: row.size };
    const skip = row.index === null || column.index === null;
    return svg("g", { class: `cell ${look} ${skip ? "skip" : ""}`, ...(name === "C" && !skip ? { "data-row": row.index, "data-column": column.index } : {}) },
      svg("rect", box),
      text !== "" || skip ? svg("text", { x: box.x + box.width / 2, y: box.y + box.height / 2 + 3.5 }, skip ? (look ? "…" : "") : text) : []);
  }));
  return svg("g", { class: "matrix", "data-name": name }, behind, cells, svg("rect", { class: "rim", x, y, width, height }));
}

/**
 * sizes: { m, k, n }; sheets: how many matrices A, B and the result are; pinned: the chosen [row, column], around
 * which is drawn; here: the one to show, chosen or hovered. A cell of the result says in its data which it is.
 */
export function drawProduct({ sizes: { m, k, n }, sheets, pinned, here, names, width }) {
  const most = Math.max(4, Math.min(8, Math.floor((width - 60) / (2 * CELL))));
  const [rows, columns, inner] = [tracks(m, pinned[0], most), tracks(n, pinned[1], most), tracks(k, 0, most)];
  const [left, top] = [30, 40];
  const over = 2 * SHEET;
  const right = left + lengthOf(inner) + 26;
  const low = top + lengthOf(inner) + 26;
  const [row, column] = here;
  const a = matrix(left, low, rows, inner, sheets[0], "A", (i, p) => (i === row ? ["s", p] : null));
  const b = matrix(right, top, inner, columns, sheets[1], "B", (p, j) => (j === column ? ["s", p] : null));
  const c = matrix(right, low, rows, columns, sheets[2], "C", (i, j) => (i === row && j === column ? ["here"] : i === row || j === column ? ["near"] : null));
  const spot = (list, from, index) => { const found = places(list, from).find((place) => place.index === index); return found ? found.at + found.size / 2 : null; };
  const [atRow, atColumn] = [spot(rows, low, row), spot(columns, right, column)];
  const text = (x, y, shown, kind = "", anchor = "middle") => svg("text", { x, y, class: kind, "text-anchor": anchor }, shown);
  const [wide, high] = [right + lengthOf(columns) + over + 4, low + lengthOf(rows) + 22];
  const lines = atRow === null || atColumn === null ? [] : [
    svg("path", { class: "lead", d: `M${left + lengthOf(inner)} ${atRow}H${atColumn - CELL / 2}M${atColumn} ${top + lengthOf(inner)}V${atRow - CELL / 2}` }),
  ];
  return svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, "aria-hidden": "true" },
    a, b, c, lines,
    text(left + lengthOf(inner) / 2, low + lengthOf(rows) + 16, names[0], "name"),
    text(right + lengthOf(columns) + 4, top + lengthOf(inner) / 2 + 4, "", "name", "start"),
    text(right - 10 - 4, top + lengthOf(inner) / 2 + 4, names[1], "name", "end"),
    text(right + lengthOf(columns) / 2, low + lengthOf(rows) + 16, names[2], "name"),
    atRow === null ? [] : text(left - 7, atRow + 4, row, "m", "end"),
    atColumn === null ? [] : text(atColumn, top - 6 - (sheets[1] > 1 ? over : 0), column, "m"));
}
