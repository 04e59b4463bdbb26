// What may be tried to reach, and whether a state reaches it. No DOM.

import { profileBy, slowest } from "./profile.js";

export const CHALLENGES = [
  {
    id: "own", goal: "Select a call of the operator that has the largest own time.", start: "trace=checkpoint&sort=total",
    reached({ trace, at }) {
      const profile = profileBy(trace);
      return profile.calls[at]?.name === slowest(profile).name;
    },
  },
  {
    id: "waits", goal: "Find a call that waits for more than a quarter of the time.", start: "trace=threads&sort=total",
    reached({ trace, at }) {
      const { calls, end } = profileBy(trace);
      return calls[at]?.kind === "wait" && calls[at].own > end / 4;
    },
  },
];
