// Which gradients share a bucket, and when each bucket is reduced. Pure functions, no DOM.
//
// Buckets and bytes are DDP's own. Time is a model: backward runs one layer after another, last layer
// first; all-reduces run one after another, too, beside it, and take latency + bytes / bandwidth each.

export const MIB = 2 ** 20;

/** The two caps of a DDP that is given no bucket_cap_mb; the first is dist._DEFAULT_FIRST_BUCKET_BYTES. */
export const DEFAULT = [MIB, 25 * MIB];

/** The limits of a plan: "default", "one", "each", or a bucket_cap_mb. The last one repeats. */
export function limitsOf(plan) {
  if (plan === "default") return DEFAULT;
  return [plan === "one" ? Infinity : plan === "each" ? 0 : Math.trunc(plan * MIB)];
}

/**
 * dist._compute_bucket_assignment_by_size, for tensors of one dtype: lists of indices. The caps are
 * soft: a bucket closes once it has reached its limit, whatever that last tensor added.
 */
export function assign(sizes, limits) {
  const buckets = [];
  let open = [];
  let bytes = 0;
  let at = 0;
  sizes.forEach((size, index) => {
    open.push(index);
    bytes += size;
    if (bytes < limits[at]) return;
    buckets.push(open);
    [open, bytes, at] = [[], 0, Math.min(at + 1, limits.length - 1)];
  });
  return open.length ? [...buckets, open] : buckets;
}

/** Gradients in the order in which backward makes them: the reverse of model.parameters(). */
export function gradients(layers) {
  let now = 0;
  return [...layers.keys()].reverse().flatMap((layer) => {
    now += layers[layer].time;
    return layers[layer].params.map(({ name, bytes }) => ({ layer, name, bytes, ready: now })).reverse();
  });
}

/**
 * One backward with its all-reduces. `layers` are { time, params: [{ name, bytes }] } from first to
 * last; bandwidth is in MiB per unit of time. With `after`, nothing is sent before backward has ended.
 */
export function timeline(layers, { plan, bandwidth, latency, after = false }) {
  const grads = gradients(layers);
  const limits = limitsOf(plan);
  const backward = grads.at(-1).ready;
  let free = 0;
  const buckets = assign(grads.map(({ bytes }) => bytes), limits).map((members, index) => {
    const bytes = members.reduce((sum, member) => sum + grads[member].bytes, 0);
    const ready = grads[members.at(-1)].ready;
    const from = Math.max(free, after ? backward : ready);
    free = from + latency + bytes / MIB / bandwidth;
    const limit = limits[Math.min(index, limits.length - 1)];
    return { members, bytes, limit, full: bytes >= limit, ready, from, to: free };
  });
  const busy = buckets.reduce((sum, { from, to }) => sum + to - from, 0);
  // The last bucket waits for the last gradient, and from there on no all-reduce pauses.
  return { grads, buckets, backward, busy, end: free, exposed: free - backward, hidden: busy - (free - backward) };
}

const MOST = { layers: 16, params: 8, numel: 2 ** 28 };

/** "3072x768+3072, 768x3072+768": layers from first to last, a shape per parameter. Or null. */
export function parseLayers(text) {
  const layers = text.replace(/\s*([x×*+,_-])\s*/g, "$1").trim().split(/[,_\s]+/).filter(Boolean).map((layer) => layer.split(/[+-]/));
  const shapes = layers.map((layer) => layer.map((shape) => shape.split(/[x×*]/).map((size) => /^[1-9]\d{0,8}$/.test(size) ? Number(size) : NaN)));
  const fits = (shape) => shape.reduce((a, b) => a * b) <= MOST.numel;
  const fine = shapes.length && shapes.length <= MOST.layers && shapes.every((layer) => layer.length <= MOST.params && layer.every(fits));
  return fine ? shapes : null;
}

/** "4, 4, 2": how long backward takes in each layer; the last one repeats. Or null. */
export function parseTimes(text, count) {
  const times = text.split(/[,_\s]+/).filter(Boolean).map((part) => /^\d{1,4}(\.\d{1,3})?$/.test(part) ? Number(part) : NaN);
  if (!times.length || times.length > count || times.some(Number.isNaN)) return null;
  return Array.from({ length: count }, (_, layer) => times[layer] ?? times.at(-1));
}

/** Layers as `timeline` takes them. A parameter of one dim is called a bias, any other a weight. */
export function build(shapes, times) {
  return shapes.map((params, layer) => {
    const seen = {};
    return {
      time: times[layer],
      params: params.map((shape) => {
        const kind = shape.length > 1 ? "weight" : "bias";
        seen[kind] = (seen[kind] ?? 0) + 1;
        return { name: `${layer + 1}.${kind}${seen[kind] > 1 ? seen[kind] : ""}`, bytes: 4 * shape.reduce((a, b) => a * b) };
      }),
    };
  });
}

const times = (count, what) => Array(count).fill(what).join(", ");

/** Models to try: [key, name, layers, times]. */
export const MODELS = [
  ["equal", "six equal layers", times(6, "1024x1024+1024"), "4"],
  ["conv", "convolutions, then a wide layer", "64x3x3x3+64, 128x64x3x3+128, 256x128x3x3+256, 512x256x3x3+512, 1024x4608+1024, 10x1024+10", "8, 8, 6, 5, 2, 1"],
  ["embedding", "a large embedding first", `20000x256, ${times(5, "1024x256+1024+256x1024+256")}`, "1, 4"],
  ["small", "twelve small layers", times(12, "256x256+256"), "1"],
];
