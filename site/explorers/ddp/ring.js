// A ring all-reduce, step by step: who sends which piece to whom, and what each rank then has. No DOM.
//
// The vector is cut as torch.tensor_split cuts it. In step s rank r sends piece r − s, modulo the number
// of ranks. In the first half the next rank adds it, in the second it replaces what was there.

/** Where the pieces begin and end: the first ones are longer by one where it does not divide. */
export function pieces(size, ranks) {
  const [least, longer] = [Math.floor(size / ranks), size % ranks];
  return Array.from({ length: ranks }, (_, piece) => {
    const from = piece * least + Math.min(piece, longer);
    return { from, to: from + least + (piece < longer) };
  });
}

/** What rank r has at the start: a decimal digit of its own, so that a sum tells whom it is from. */
export const start = (rank, element) => (element % 9 + 1) * 10 ** rank;

/**
 * All states, the first before any step. `held[rank][piece]` is the numbers, `from[rank][piece]` the
 * ranks in them as bits, `sent[rank]` the elements sent so far, `moves` what this step moved.
 */
export function ring(ranks, size) {
  const cut = pieces(size, ranks);
  const each = Array.from({ length: ranks }, (_, rank) => rank);
  const states = [{
    moves: [], sent: each.map(() => 0), from: each.map((rank) => each.map(() => 1 << rank)),
    held: each.map((rank) => cut.map(({ from, to }) => Array.from({ length: to - from }, (_, i) => start(rank, from + i)))),
  }];
  for (let step = 0; step < 2 * (ranks - 1); step += 1) {
    const adds = step < ranks - 1;
    const before = states.at(-1);
    const moves = each.map((rank) => {
      const piece = (rank + 2 * ranks - step) % ranks;
      return { rank, to: (rank + 1) % ranks, piece, adds, elements: cut[piece].to - cut[piece].from };
    });
    const after = { moves, sent: [...before.sent], held: before.held.map((row) => [...row]), from: before.from.map((row) => [...row]) };
    for (const { rank, to, piece, elements } of moves) {
      const arriving = before.held[rank][piece];
      after.sent[rank] += elements;
      after.held[to][piece] = adds ? before.held[to][piece].map((own, i) => own + arriving[i]) : arriving;
      after.from[to][piece] = adds ? before.from[to][piece] | before.from[rank][piece] : before.from[rank][piece];
    }
    states.push(after);
  }
  return states;
}

/** Elements each rank sends and receives if all send to rank 0, which sends the sum back to each. */
export function naive(ranks, size) {
  return Array.from({ length: ranks }, (_, rank) => rank ? size : (ranks - 1) * size);
}
