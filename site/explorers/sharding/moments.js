// One training step of a small model on several ranks, moment by moment: which collective runs, and what each rank
// holds meanwhile. Bytes are those of storages, padding included; activations are not among them. No DOM.

export const STRATEGIES = ["ddp", "zero1", "zero2", "fsdp", "hsdp", "tp", "fsdp_tp"];
export const RANKS = [2, 3, 4, 6, 8];
export const SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 24, 32, 48, 64];
export const BLOCKS = [1, 2, 3];
/** Rows of a rank's batch. */
export const BATCH = 4;
/** Bytes of a parameter with its gradient and Adam's two averages. */
export const PER_PARAMETER = 16;
const FLOAT = 4;

export const gathers = (strategy) => ["zero2", "fsdp", "hsdp", "fsdp_tp"].includes(strategy);
/** Whether gradients lie in a bucket of DDP, which stays. */
export const hasBucket = ({ strategy }) => strategy === "ddp" || strategy === "zero1";
/** Two dims of ranks want an even number of them, and more than one along each. Tensor parallel wants a unit for each rank:
 * where fewer are hidden, DTensor leaves gradients whole and Adam refuses them. */
export const fits = ({ strategy, ranks, hidden }) =>
  (!["hsdp", "fsdp_tp"].includes(strategy) || (ranks >= 4 && ranks % 2 === 0)) && (strategy !== "tp" || hidden >= ranks);

/** Whose rows are whose: as many for each, rounded up, while there are any. */
export function cut(length, parts) {
  const rows = Math.ceil(length / parts);
  return Array.from({ length: parts }, (_, i) => [Math.min(i * rows, length), Math.min((i + 1) * rows, length)]);
}

/** How many ranks along each dim of the mesh; the last changes fastest. */
export function meshOf({ strategy, ranks }) {
  if (strategy === "hsdp") return { replicas: 2, shards: ranks / 2, tensor: 1 };
  if (strategy === "fsdp_tp") return { replicas: 1, shards: ranks / 2, tensor: 2 };
  if (strategy === "tp") return { replicas: 1, shards: 1, tensor: ranks };
  return gathers(strategy) ? { replicas: 1, shards: ranks, tensor: 1 } : { replicas: ranks, shards: 1, tensor: 1 };
}

export function placeOf(rank, { shards, tensor }) {
  return { replica: Math.floor(rank / (shards * tensor)), shard: Math.floor(rank / tensor) % shards, tensor: rank % tensor };
}

/** The ranks that talk to each other along one dim of the mesh: "replica", "shard" or "tensor". */
export function groupsOf(state, dim) {
  const mesh = meshOf(state);
  const groups = new Map();
  for (let rank = 0; rank < state.ranks; rank += 1) {
    const key = JSON.stringify({ ...placeOf(rank, mesh), [dim]: 0 });
    groups.set(key, [...(groups.get(key) ?? []), rank]);
  }
  return [...groups.values()];
}

export const layersOf = ({ width, hidden, blocks }) => Array.from({ length: 2 * blocks }, (_, i) => {
  const up = i % 2 === 0;
  return { name: `${up ? "up" : "down"} ${Math.floor(i / 2) + 1}`, up, rows: up ? hidden : width, cols: up ? width : hidden };
});

const area = ({ rows: [a, b], cols: [c, d] }) => (b - a) * (d - c) * FLOAT;

/** DTensor cuts the padding off what it was sent as a view, so that it stays in memory; where that view is no run of
 * numbers, which is so for columns, it is copied. */
function kept({ up, rows, cols }, [from, to], ranks) {
  const [each, long] = up ? [cols, rows] : [rows, cols];
  return (up || rows === 1 || from === to ? Math.ceil(long / ranks) : to - from) * each * FLOAT;
}

/**
 * What of a layer is a rank's: `whole` is what it computes with, `own` is what it keeps, each as ranges of rows and
 * columns; `padded` are the bytes of its shard as collectives want them, `full` those of all shards of its group.
 */
export function pieceOf(state, layer, rank) {
  const mesh = meshOf(state);
  const at = placeOf(rank, mesh);
  const part = cut(layer.up ? layer.rows : layer.cols, mesh.tensor)[at.tensor];
  const whole = layer.up ? { rows: part, cols: [0, layer.cols] } : { rows: [0, layer.rows], cols: part };
  const [from, to] = whole.rows;
  const [a, b] = cut(to - from, mesh.shards)[at.shard];
  const own = { rows: [from + a, from + b], cols: whole.cols };
  if (state.strategy === "tp") return { whole, own, padded: kept(layer, part, state.ranks), full: area(whole) };
  const padded = Math.ceil((to - from) / mesh.shards) * (whole.cols[1] - whole.cols[0]) * FLOAT;
  return { whole, own, padded, full: padded * mesh.shards };
}

/** ZeroRedundancyOptimizer gives each weight to the rank that has least. Here all are of one size, so that it goes round. */
export const ownerOf = (i, ranks) => i % ranks;

/** Whether a rank keeps Adam's averages of its part of a layer. */
export const hasAdam = ({ strategy, ranks }, i, rank) => strategy !== "zero1" || ownerOf(i, ranks) === rank;

/**
 * The moments of a step. Each has
 *   kind      rest, all_gather, forward, free, loss, backward, reduce_scatter, all_reduce, broadcast, step, zero
 *   layers    which layers it is about
 *   what      of a collective: weights, gradients, shards, outputs or inputs
 *   dim       along which dim of the mesh ranks talk; `from`, who sends a broadcast
 *   made      what is there only from now on: gathered, own, reduced (layers), buffers
 *   gathered, own, partial, reduced, fresh   layers: whole weights; gradients of a rank's own batch, reduced within its
 *             group, and ready; weights that the optimizer has changed
 *   stepped   whether owners have changed theirs already, under ZeRO-1
 *   buffers   memory of collectives, each { layers, for: "gather" | "reduce" }
 */
export function timeline(state) {
  const { strategy, ranks, wrap } = state;
  const all = [...layersOf(state).keys()];
  const mesh = meshOf(state);
  const units = wrap === "model" ? [all] : all.map((i) => [i]);
  const [flat, reshard] = [!gathers(strategy), strategy !== "zero2"];
  const moments = [];
  let now = { gathered: [], buffers: [], own: [], partial: [], reduced: [], fresh: [], stepped: false };
  const set = (part) => { now = { ...now, ...part }; };
  const plus = (name, layers) => set({ [name]: [...new Set([...now[name], ...layers])].sort((a, b) => a - b) });
  const minus = (name, layers) => set({ [name]: now[name].filter((i) => !layers.includes(i)) });
  const add = (kind, layers, extra = {}) => moments.push({ kind, layers, made: {}, ...extra, ...now });
  const buffer = (layers, use) => ({ layers, for: use });
  const gather = (unit, rest, early = false) => {
    const made = buffer(unit, "gather");
    set({ buffers: [...rest, made] });
    add("all_gather", unit, { what: "weights", dim: "shard", early, made: { buffers: [made] } });
  };

  add("rest", []);
  for (const unit of units) {
    if (!flat) {
      // What came for the unit before was copied, and is let go when this has come.
      gather(unit, now.buffers);
      plus("gathered", unit);
      set({ buffers: now.buffers.slice(-1) });
    }
    for (const i of unit) {
      add("forward", [i]);
      if (mesh.tensor > 1 && i % 2) add("all_reduce", [i], { what: "outputs", dim: "tensor" });
    }
    if (!flat && reshard) {
      minus("gathered", unit);
      if (wrap === "model") set({ buffers: [] });
      add("free", unit);
    }
  }
  set({ buffers: [] });
  add("loss", []);
  for (let u = units.length - 1; u >= 0; u -= 1) {
    const unit = units[u];
    if (!flat && reshard) {
      if (u === units.length - 1) gather(unit, now.buffers);
      plus("gathered", unit);
      set({ buffers: now.buffers.filter((one) => one.for === "reduce") });
      if (u) gather(units[u - 1], now.buffers, true);
    }
    for (const i of [...unit].reverse()) {
      const name = strategy === "tp" ? "reduced" : "own";
      plus(name, [i]);
      add("backward", [i], { made: { [name]: [i] } });
      if (mesh.tensor > 1 && i && i % 2 === 0) add("all_reduce", [i], { what: "inputs", dim: "tensor" });
    }
    if (flat) continue;
    const made = { buffers: [buffer(unit, "reduce")], reduced: unit };
    minus("gathered", unit);
    minus("own", unit);
    set({ buffers: [...now.buffers.filter((one) => one.for === "gather"), made.buffers[0]] });
    plus(mesh.replicas > 1 ? "partial" : "reduced", unit);
    add("reduce_scatter", unit, { what: "gradients", dim: "shard", made });
    if (mesh.replicas > 1) {
      minus("partial", unit);
      plus("reduced", unit);
      add("all_reduce", unit, { what: "shards", dim: "replica", made });
    }
  }
  set({ buffers: [] });
  if (mesh.replicas === ranks) {
    set({ own: [], reduced: all });
    add("all_reduce", all, { what: "gradients", dim: "replica" });
  }
  if (strategy === "zero1") {
    set({ stepped: true });
    add("step", all);
    for (let rank = 0; rank < ranks; rank += 1) {
      for (const i of all.filter((one) => ownerOf(one, ranks) === rank)) {
        plus("fresh", [i]);
        add("broadcast", [i], { what: "weights", dim: "replica", from: rank });
      }
    }
  } else {
    set({ fresh: all });
    add("step", all);
  }
  set({ reduced: [] });
  add("zero", all);
  return moments;
}

/** What this rank brings to a collective, in bytes; of a broadcast, what goes round. */
export function broughtBy(state, { kind, layers, what }, rank) {
  const sum = (name) => layers.reduce((total, i) => total + pieceOf(state, layersOf(state)[i], rank)[name], 0);
  if (what === "outputs" || what === "inputs") return BATCH * state.width * FLOAT;
  if (kind === "all_gather" || what === "shards") return sum("padded");
  return what ? sum("full") : 0;
}

/** Whether a rank has a layer's weights as the optimizer left them. */
export function isFresh(state, moment, i, rank) {
  return moment.fresh.includes(i) || (moment.stepped && ownerOf(i, state.ranks) === rank);
}

export const PARTS = ["weights", "gathered", "gradients", "adam", "buffers"];

/** The bytes of a rank's weights that hold no number of theirs. */
export function paddingOf(state, rank, which = [...layersOf(state).keys()]) {
  const pieces = which.map((i) => pieceOf(state, layersOf(state)[i], rank));
  return pieces.reduce((sum, { own, padded }) => sum + padded - area(own), 0);
}

/** The bytes of a rank at a moment, by part. */
export function bytesOf(state, moment, rank) {
  const layers = layersOf(state);
  const bucket = hasBucket(state);
  const found = Object.fromEntries(PARTS.map((part) => [part, 0]));
  layers.forEach((layer, i) => {
    const { own, whole, padded, full } = pieceOf(state, layer, rank);
    found.weights += padded;
    if (moment.gathered.includes(i)) found.gathered += full;
    if (moment.own.includes(i) && !bucket) found.gradients += area(whole);
    if (bucket || moment.reduced.includes(i) || moment.partial.includes(i)) found.gradients += shardBytes(state, { own, padded });
    if (hasAdam(state, i, rank)) found.adam += 2 * area(own);
    for (const { layers: held } of moment.buffers) if (held.includes(i)) found.buffers += full;
  });
  return found;
}

/** A gradient that is ready: as a collective left it, padding included; under tensor parallel as it was computed. */
const shardBytes = ({ strategy }, { own, padded }) => (strategy === "tp" ? area(own) : padded);

export const total = (bytes) => PARTS.reduce((sum, part) => sum + bytes[part], 0);

/** What one rank would hold that trains all of it by itself. */
export const alone = (state) => layersOf(state).reduce((sum, { rows, cols }) => sum + rows * cols, 0) * PER_PARAMETER;

/** The most that a rank holds at a moment, and who and when: { rank, at, bytes }, the first of equals. */
export function peakOf(state, moments = timeline(state)) {
  let best = { rank: 0, at: 0, bytes: -1 };
  for (let rank = 0; rank < state.ranks; rank += 1) {
    moments.forEach((moment, at) => {
      const bytes = total(bytesOf(state, moment, rank));
      if (bytes > best.bytes) best = { rank, at, bytes };
    });
  }
  return best;
}

/** The bytes of what a moment makes, by part: they are not there before it. */
export function madeOf(state, { made }, rank) {
  const pieces = layersOf(state).map((layer) => pieceOf(state, layer, rank));
  const sum = (layers, size) => (layers ?? []).reduce((all, i) => all + size(pieces[i]), 0);
  return {
    gradients: hasBucket(state) ? 0 : sum(made.own, ({ whole }) => area(whole)) + sum(made.reduced, (piece) => shardBytes(state, piece)),
    buffers: (made.buffers ?? []).reduce((all, one) => all + sum(one.layers, ({ full }) => full), 0),
  };
}
