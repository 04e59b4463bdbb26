// One epoch of a DataLoader in model time: who loads which batch when, and what the main process does
// with it. Times are whole units; every order and count is torch's. A settings object ("knobs") is
// { samples, batch_size, num_workers, prefetch_factor, in_order, drop_last, load, late, slow, work }.

/** Units that collate takes, wherever it runs. */
export const COLLATE = 1;

/** The samples of each batch, without shuffling. */
export function split({ samples, batch_size, drop_last }) {
  const list = [];
  for (let first = 0; first < samples; first += batch_size) {
    const size = Math.min(batch_size, samples - first);
    if (size === batch_size || !drop_last) list.push(Array.from({ length: size }, (_, i) => first + i));
  }
  return list;
}

/**
 * The whole epoch. `events` are { time, kind, batch, worker, outstanding, aside } in their order: give,
 * start, finish, take, deliver concern a batch; ask and stop do not (batch −1). outstanding: given out
 * and not yet taken from the result queue; aside: taken, and not their turn. of[batch] has the time of
 * each of its events and its worker. What happens at one moment: workers finish first, from worker 0 up.
 */
export function simulate(knobs) {
  const batches = split(knobs);
  const cost = batches.map((list) => list.reduce((sum, i) => sum + (knobs.slow.includes(i) ? knobs.late : knobs.load), COLLATE));
  const run = { knobs, batches, cost, events: [], of: batches.map(() => ({ worker: -1 })) };
  (knobs.num_workers ? withWorkers : alone)(run);
  run.total = run.events.at(-1).time;
  run.waited = waitedUntil(run.events);
  return run;
}

/** num_workers=0: nothing happens ahead; the main process loads what is asked for. */
function alone({ knobs, cost, events, of }) {
  let time = 0;
  const emit = (kind, batch = -1) => {
    events.push({ time, kind, batch, worker: -1, outstanding: 0, aside: 0 });
    if (batch >= 0) of[batch][kind] = time;
  };
  emit("ask");
  cost.forEach((units, batch) => {
    emit("start", batch);
    time += units;
    emit("finish", batch);
    emit("deliver", batch);
    time += knobs.work;
    emit("ask");
  });
  emit("stop");
}

function withWorkers({ knobs, cost, events, of }) {
  const { num_workers, prefetch_factor, in_order } = knobs;
  const workers = Array.from({ length: num_workers }, () => ({ queue: [], now: null, until: Infinity, tasks: 0 }));
  const results = []; // finished, in the order in which they came
  const aside = new Set(); // taken from there, and not their turn
  const gone = new Set(); // delivered
  let time = 0, given = 0, due = 0, turn = 0;

  function emit(kind, batch = -1, worker = -1) {
    const outstanding = given - gone.size - aside.size - (kind === "take" && !aside.has(batch));
    events.push({ time, kind, batch, worker, outstanding, aside: aside.size });
    if (batch >= 0) Object.assign(of[batch], { [kind]: time, worker });
  }

  function begin(at) {
    const worker = workers[at];
    if (worker.now !== null || !worker.queue.length) return;
    worker.now = worker.queue.shift();
    worker.until = time + cost[worker.now];
    emit("start", worker.now, at);
  }

  /** The next batch goes to the worker whose turn it is. Only out of order, the full ones are skipped. */
  function give() {
    if (given === cost.length) return;
    while (!in_order && workers[turn].tasks === prefetch_factor) turn = (turn + 1) % num_workers;
    const at = turn;
    turn = (turn + 1) % num_workers;
    workers[at].tasks += 1;
    workers[at].queue.push(given);
    given += 1;
    emit("give", given - 1, at);
    begin(at);
  }

  /** Let time pass up to `end`, and the workers finish on the way. */
  function pass(end) {
    for (;;) {
      const until = Math.min(...workers.map((worker) => worker.until));
      if (until > end) break;
      const at = workers.findIndex((worker) => worker.until === until);
      const batch = workers[at].now;
      time = until;
      results.push(batch);
      Object.assign(workers[at], { now: null, until: Infinity });
      emit("finish", batch, at);
      begin(at);
    }
    time = end;
  }

  /** What next(iterator) does; gives the batch, or null at the end. */
  function next() {
    while (gone.has(due)) due += 1;
    if (due === given) return null;
    let batch = due;
    while (!aside.has(due)) {
      if (!results.length) pass(Math.min(...workers.map((worker) => worker.until)));
      batch = results.shift();
      const passes = batch === due || !in_order;
      if (!passes) aside.add(batch);
      emit("take", batch, of[batch].worker);
      if (passes) break;
      batch = due;
    }
    aside.delete(batch);
    gone.add(batch);
    workers[of[batch].worker].tasks -= 1;
    give();
    return batch;
  }

  for (let i = 0; i < prefetch_factor * num_workers; i += 1) give();
  emit("ask");
  for (let batch = next(); batch !== null; batch = next()) {
    emit("deliver", batch, of[batch].worker);
    pass(time + knobs.work);
    emit("ask");
  }
  emit("stop");
}

/** How long the consumer has stood still by the last of these events, or until a later moment. */
function waitedUntil(events, until = events.at(-1)?.time ?? 0) {
  let asked = null;
  let waited = 0;
  for (const { time, kind } of events) {
    if (kind === "ask") asked = time;
    if (kind === "deliver") {
      waited += time - asked;
      asked = null;
    }
  }
  return waited + (asked === null ? 0 : until - asked);
}

/** How many events have happened by some moment. */
export const happened = ({ events }, time) => events.filter((event) => event.time <= time).length;

/** What goes on at a moment between two events: { batch, worker, done, of } for each that is loaded, and what the consumer does. */
export function between({ knobs, events, of, cost }, at, time) {
  const loading = of.flatMap(({ start, worker }, batch) => (start <= time && time < start + cost[batch] && start !== undefined ? [{ batch, worker, done: time - start, of: cost[batch] }] : []));
  const last = events.slice(0, at).findLast(({ kind }) => ["ask", "deliver", "stop"].includes(kind));
  if (last?.kind !== "deliver") return { loading, waits: last?.kind === "ask" ? time - last.time : null, works: null };
  return { loading, waits: null, works: { batch: last.batch, done: time - last.time, of: knobs.work } };
}

/** The counters after the first `at` events; `until` is a later moment, before the next. */
export function counters({ events }, at, until) {
  const seen = events.slice(0, at);
  const of = (kind) => seen.filter((event) => event.kind === kind).length;
  const [finished, delivered] = [of("finish"), of("deliver")];
  const { time: then = 0, outstanding = 0, aside = 0 } = seen.at(-1) ?? {};
  const time = until ?? then;
  return {
    time, aside, finished, delivered,
    given: of("give") || of("start"),
    flight: outstanding + aside,
    waited: waitedUntil(seen, time),
    // The loop's variable keeps its batch until the next one comes.
    memory: finished - delivered + Math.min(delivered, 1),
  };
}

/** Where each batch is after the first `at` events: later, queued, loading, ready, aside, hand or done. */
export function places({ events, batches }, at) {
  const names = { give: "queued", start: "loading", finish: "ready", take: "aside", deliver: "hand" };
  const list = batches.map(() => "later");
  for (const { kind, batch } of events.slice(0, at)) {
    if (kind === "deliver" && list.includes("hand")) list[list.indexOf("hand")] = "done";
    if (batch >= 0) list[batch] = names[kind];
  }
  return list;
}

/** The most batches that are ready in memory at once. */
export function mostMemory({ events }) {
  let [now, most, first] = [0, 0, true];
  for (const { kind } of events) {
    if (kind === "finish") now += 1;
    if (kind === "deliver" && !first) now -= 1;
    if (kind === "deliver") first = false;
    most = Math.max(most, now);
  }
  return most;
}
