// What was before a change, and what was taken back. No DOM.

const MOST = 300;

/** States that can be come back to. `leave` a state when it changes; `back` and `on` give one in exchange for another. */
export class Past {
  before = [];
  after = [];

  /** With `together`, this change belongs to the one before, as the steps of a slider do: both are undone at once. */
  leave(state, together = false) {
    if (!together || !this.before.length) this.before = [...this.before, state].slice(-MOST);
    this.after = [];
  }

  back(now) {
    if (!this.before.length) return null;
    this.after.push(now);
    return this.before.pop();
  }

  on(now) {
    if (!this.after.length) return null;
    this.before.push(now);
    return this.after.pop();
  }
}

/** What a visit has reached, by the names of challenges; where nothing can be kept, this page has it alone. */
export function reachedBefore(key) {
  const found = new Set();
  try {
    for (const id of JSON.parse(sessionStorage.getItem(key) ?? "[]")) found.add(id);
  } catch { /* no storage, or something else in it */ }
  return {
    has: (id) => found.has(id),
    add(id) {
      found.add(id);
      try {
        sessionStorage.setItem(key, JSON.stringify([...found]));
      } catch { /* no storage */ }
    },
  };
}
