// What is worth trying: whole tensors, and methods that do something with the one on show.

import { isChannelsLast, isContiguous } from "./layout.js";

export const TRIES = [
  ["3 × 4", "shape=3x4"],
  ["transpose", "shape=3x4&ops=transpose.0.1&at=2x1&target=12"],
  ["one column", "shape=3x4&ops=index.to.1&at=2"],
  ["every second", "shape=4x6&ops=index.1toto2.toto2&at=1x2"],
  ["broadcast", "shape=4&ops=unsqueeze.0_expand.3.4&at=2x1"],
  ["sliding window", "shape=10&ops=unfold.0.4.2&at=1x2"],
  ["diagonal", "shape=4x4&ops=diagonal&at=2"],
  ["a chain", "shape=2x3x4&ops=transpose.0.2_contiguous_view.4.6_index.1to&at=1x2"],
  ["merge heads", "shape=1x2x3x4&ops=transpose.1.2&at=0x2x1x1&target=1x3x8"],
  ["channels_last", "shape=1x3x2x4&ops=channels-last&at=0x1x1x2"],
  ["flip copies", "shape=3x4&ops=flip.1&at=0x1"],
  ["your own", "shape=3x3&stride=3x2&offset=1&cells=14&at=1x2"],
];

/** A few methods that do something with this tensor. */
export function suggestions(layout) {
  const { size } = layout;
  const dims = size.length;
  const list = [];
  const add = (when, text) => { if (when) list.push(text); };
  const last = dims - 1;
  add(dims > 1, "transpose(0, 1)");
  add(dims > 2, `transpose(${last - 1}, ${last})`);
  add(dims > 2, `permute(${[...Array(dims).keys()].slice(1)}, 0)`.replaceAll(",", ", ").replaceAll("  ", " "));
  add(dims > 0 && size[0] > 1, "[1:]");
  add(dims > 1 && size[1] > 2, "[:, ::2]");
  add(dims > 0 && size[last] > 1, dims > 1 ? "[..., 1]" : "[1]");
  add(dims > 1 && size[0] > 1, "diagonal()");
  add(dims > 0 && size[last] > 2, `unfold(${last}, 2, 1)`);
  const single = size.indexOf(1);
  add(single >= 0, `expand(${size.map((n, d) => d === single ? 3 : n).join(", ")})`);
  add(single >= 0, `squeeze(${single})`);
  add(single < 0 && dims < 5, "unsqueeze(0)");
  add(dims !== 1, "view(-1)");
  add(dims !== 1, "reshape(-1)");
  add(dims > 0, `flip(${last})`);
  add(!isContiguous(layout), "contiguous()");
  add(dims === 4 && !isChannelsLast(layout), "contiguous(memory_format=torch.channels_last)");
  return list;
}

