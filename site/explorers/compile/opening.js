// A file of `undertorch capture`, as somebody opens it: the program in it, or what is wrong. No DOM.

export const KIND = "capture";
export const VERSION = 1;

const AGAIN = "Write it anew with undertorch capture.";
const KINDS = ["i", "c", "o"];
const SETTINGS = 12;

const isText = (value) => typeof value === "string";
const upTo = (most) => (value) => Number.isInteger(value) && value >= 0 && value <= most;
const each = (test) => (value) => Array.isArray(value) && value.every((one, i) => test(one, i));
const isTexts = each(isText);

/** { program } or { fault }, a sentence. */
export function opened(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return { fault: "This is no capture: it is not JSON. undertorch capture f.py writes one." };
  }
  if (found?.undertorch !== KIND) return { fault: "This is no capture. undertorch capture f.py writes one." };
  if (found.version !== VERSION) return { fault: `This capture is of version ${String(found.version).slice(0, 20)}, and the page reads version ${VERSION}. ${AGAIN}` };
  const wrong = faultOf(found.program);
  return wrong ? { fault: `This capture is damaged, at its ${wrong}. ${AGAIN}` } : { program: found.program };
}

/** The first part of a program that is not what the page reads, or null. */
function faultOf(program) {
  if (!isText(program?.title)) return "title";
  if (!isText(program.source)) return "source";
  const isLine = upTo(program.source.split("\n").length);
  const { frames } = program;
  if (!Array.isArray(frames) || !frames.length) return "frames";
  const isCall = (one) => isText(one?.call) && each(upTo(frames.length - 1))(one.frames);
  if (!each(isCall)(program.calls)) return "calls";
  const isBreak = (one) => isLine(one?.line) && isText(one.title) && isText(one.why);
  if (!each(isBreak)(program.breaks)) return "breaks";
  for (const [i, frame] of frames.entries()) {
    const wrong = partOf(frame, isLine);
    if (wrong) return `${wrong} of graph ${i + 1}`;
  }
  return null;
}

function partOf(frame, isLine) {
  for (const name of ["name", "why"]) if (!isText(frame?.[name])) return name;
  if (typeof frame.own !== "boolean") return "own";
  for (const name of ["old", "new", "guards"]) if (!isTexts(frame[name])) return name;
  for (const name of ["dynamo", "joint"]) if (!isGraph(frame[name], isLine)) return name;
  const { joint, cuts, which } = frame;
  const isSetting = (at, i) => upTo((cuts?.length ?? 0) - 1)(at) || (at === null && i > 0 && i < SETTINGS - 1);
  if (!Array.isArray(cuts) || !each(isSetting)(which) || which.length !== (joint.length ? SETTINGS : 0)) return "cuts";
  const isCut = (cut) => isText(cut?.where) && cut.where.length === joint.length && /^[-fbro]*$/.test(cut.where) && each(upTo(joint.length - 1))(cut.saved);
  return cuts.every(isCut) ? null : "cuts";
}

/** A node reads nodes before it alone. */
function isGraph(rows, isLine) {
  const isRow = (row, i) => Array.isArray(row) && row.length === 7 && isText(row[0]) && KINDS.includes(row[1]) && isText(row[2])
    && each(upTo(i - 1))(row[3]) && isText(row[4]) && (row[5] === null || upTo(Number.MAX_SAFE_INTEGER)(row[5])) && isLine(row[6]);
  return Array.isArray(rows) && rows.every(isRow);
}
