// Bytes that one rank keeps from step to step, and sends in a step, under ZeRO 0 to 3. No DOM.

/** fp32 numbers that the optimizer keeps per parameter. */
export const OPTIMIZERS = { sgd: 0, momentum: 1, adam: 2 };

/** Bytes per parameter of the weights, of their gradients, and of fp32 master weights. */
export const PRECISIONS = { fp32: { bytes: 4, master: 0 }, mixed: { bytes: 2, master: 4 } };

export const PARTS = ["weights", "gradients", "master", "state"];

/**
 * Stages 0 to 3, each { weights, gradients, master, state, total, calls }. What is sharded is cut into
 * equal shards, the last one padded. `calls` are the collectives of a step with what this rank sends
 * in them around a ring.
 */
export function ledger({ params, ranks, optimizer, precision }) {
  const shard = Math.ceil(params / ranks);
  const { bytes, master } = PRECISIONS[precision];
  const once = (ranks - 1) * shard * bytes;
  return [0, 1, 2, 3].map((stage) => {
    const held = (from) => (stage >= from ? shard : params);
    const row = {
      weights: held(3) * bytes, gradients: held(2) * bytes,
      master: held(1) * master, state: held(1) * 4 * OPTIMIZERS[optimizer],
    };
    const calls = [
      [["all-reduce of gradients", 2 * once]],
      [["reduce-scatter of gradients", once], ["all-gather of weights", once]],
      [["reduce-scatter of gradients", once], ["all-gather of weights", once]],
      [["all-gather of weights for forward", once], ["all-gather of weights for backward", once], ["reduce-scatter of gradients", once]],
    ][stage];
    return {
      ...row, calls, total: PARTS.reduce((sum, part) => sum + row[part], 0),
      sent: calls.reduce((sum, [, size]) => sum + size, 0),
    };
  });
}

/** "7B", "124 M", "1.5e9" or "1000": how many parameters. Or null. */
export function parseCount(text) {
  const found = /^(\d[\d,]*(?:\.\d+)?(?:e\d{1,2})?)\s*([kmbt]?)$/i.exec(text.trim());
  if (!found) return null;
  const unit = { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[found[2].toLowerCase()];
  const count = Math.round(Number(found[1].replaceAll(",", "")) * unit);
  return count >= 1 && count <= 1e13 ? count : null;
}
