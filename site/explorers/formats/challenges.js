// What may be tried to reach, and whether a state reaches it. No DOM.

import { FORMATS, decode, round, widen } from "./numbers.js";

const value = (format, bits) => decode(FORMATS[format], bits).value;

export const CHALLENGES = [
  {
    id: "off", goal: "Find an FP32 that BF16 gets wrong by more than 1 %, and not by infinity.", start: "format=bf16&fp32=3dcccccd",
    reached({ format, mode, fp32, saturate }) {
      if (format !== "bf16" || mode !== "round") return false;
      const [given, kept] = [value("fp32", fp32), value("bf16", round(FORMATS.bf16, fp32, saturate).bits)];
      return Number.isFinite(kept) && Math.abs(kept - given) > Math.abs(given) / 100;
    },
  },
  {
    id: "zero", goal: "Find a number of BF16, not 0 itself, that becomes 0 in FP16.", start: "format=bf16&bits=3f80",
    reached({ format, mode, bits }) {
      if (format !== "bf16" || mode !== "bits" || !value("bf16", bits)) return false;
      return value("fp16", round(FORMATS.fp16, widen(FORMATS.bf16, bits)).bits) === 0;
    },
  },
];
