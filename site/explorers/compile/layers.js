// Where the nodes of a graph stand: layers from top to bottom, few crossings, nothing over anything.
// The same steps as grader/feedback/graph_placement.py, which explains them; a test compares the two.

const SWEEPS = 12;
const TURNS = 24;
const LANE = 8;
const GAP = 18;

const sum = (list) => list.reduce((a, b) => a + b, 0);

/** reads[i] are the nodes that node i reads, all before it; `last` stand at the bottom. */
export function layout(reads, widths, last) {
  const level = levels(reads, last);
  const places = reads.map((_, i) => ({ node: i, width: widths[i], level: level[i], up: [], down: [] }));
  const routes = [];
  reads.forEach((read, to) => {
    for (const from of new Set(read)) {
      const path = [places[from]];
      for (let at = level[from] + 1; at < level[to]; at += 1) {
        path.push({ node: null, width: LANE, level: at, up: [], down: [] });
        places.push(path.at(-1));
      }
      path.push(places[to]);
      path.slice(1).forEach((below, i) => {
        path[i].down.push(below);
        below.up.push(path[i]);
      });
      routes.push({ from, to, path });
    }
  });
  let rows = Array.from({ length: Math.max(-1, ...level) + 1 }, () => []);
  for (const place of places) rows[place.level].push(place);
  rows = ordered(rows);
  settleAll(rows);
  const left = Math.min(...places.map(({ x, width }) => x - width / 2));
  const right = Math.max(...places.map(({ x, width }) => x + width / 2));
  return {
    rows: rows.map((row) => row.filter(({ node }) => node !== null).map(({ node }) => node)),
    middle: reads.map((_, i) => places[i].x - left),
    routes: routes.map(({ from, to, path }) => ({ from, to, xs: path.map(({ x }) => x - left) })),
    width: right - left,
  };
}

function levels(reads, last) {
  const level = [];
  reads.forEach((read, i) => { level[i] = 1 + Math.max(-1, ...read.map((from) => level[from])); });
  const deepest = Math.max(0, ...level);
  for (const i of last) level[i] = Math.max(deepest, reads.length > last.length ? 1 : 0);
  const first = [];
  reads.forEach((read, i) => { for (const from of read) first[from] = Math.min(first[from] ?? Infinity, level[i]); });
  reads.forEach((read, i) => { if (!read.length && !last.includes(i) && first[i] !== undefined) level[i] = first[i] - 1; });
  return level;
}

function ordered(rows) {
  let best = rows;
  let fewest = crossings(rows);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep += 1) {
    const down = sweep % 2 === 0;
    rows = rows.map((row) => [...row]);
    for (let step = 1; step < rows.length; step += 1) {
      const at = down ? step : rows.length - 1 - step;
      const beside = rows[down ? at - 1 : at + 1];
      const index = new Map(beside.map((place, i) => [place, i]));
      const scale = beside.length / Math.max(1, rows[at].length);
      const centre = new Map(rows[at].map((place, i) => {
        const near = down ? place.up : place.down;
        return [place, near.length ? sum(near.map((other) => index.get(other))) / near.length : i * scale];
      }));
      rows[at].sort((a, b) => centre.get(a) - centre.get(b));
    }
    const now = crossings(rows);
    if (now < fewest) [best, fewest] = [rows, now];
  }
  return best;
}

function crossings(rows) {
  let total = 0;
  rows.slice(1).forEach((below, i) => {
    const index = new Map(below.map((place, k) => [place, k]));
    const seen = [];
    for (const place of rows[i]) {
      const ends = place.down.map((other) => index.get(other));
      for (const end of ends) total += seen.filter((before) => before > end).length;
      seen.push(...ends);
    }
  });
  return total;
}

function settleAll(rows) {
  for (const row of rows) settle(row, row.map(() => 0), row.map(() => 1));
  for (let turn = 0; turn < TURNS; turn += 1) {
    const down = turn % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const wanted = [];
      const weights = [];
      for (const place of row) {
        const { up, down: under } = place;
        const near = turn >= TURNS / 2 ? [...up, ...under] : down ? (up.length ? up : under) : under.length ? under : up;
        const pulls = near.map((other) => (place.node !== null ? 1 : other.node !== null ? 2 : 40));
        const weight = sum(pulls);
        wanted.push(near.length ? sum(near.map((other, i) => other.x * pulls[i])) / weight : place.x);
        weights.push(Math.max(weight, 0.1));
      }
      settle(row, wanted, weights);
    }
  }
}

function settle(row, wanted, weights) {
  let at = 0;
  const offsets = row.map((place, i) => (at += i ? (row[i - 1].width + place.width) / 2 + GAP : 0));
  const pools = [];
  wanted.forEach((want, i) => {
    let [mean, total, count] = [want - offsets[i], weights[i], 1];
    while (pools.length && pools.at(-1)[0] > mean) {
      const [before, heavy, many] = pools.pop();
      mean = (before * heavy + mean * total) / (heavy + total);
      total += heavy;
      count += many;
    }
    pools.push([mean, total, count]);
  });
  const shifts = pools.flatMap(([mean, , count]) => Array(count).fill(mean));
  row.forEach((place, i) => { place.x = Math.round((shifts[i] + offsets[i]) * 100) / 100; });
}
