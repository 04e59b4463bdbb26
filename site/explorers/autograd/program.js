// A small part of Python, read line by line. No DOM. Statements and expressions become nested arrays:
//   ["number", 2, float], ["name", "x"], ["binary", "+", a, b], ["call", of, method, args, named], ["attribute", of, name],
//   ["slice", of, start, stop], ["index", of, at], ["make", numbers, shape, requires_grad], ["negative", e]
//   ["assign", name, e], ["inplace", name, "+", e], ["set", name, attribute, e], ["with", mode, on], ["mode", on], ["for", name, count],
//   ["del", names], ["pass"], ["do", e]

/** What a line may not say: Python's or torch's refusal (`type` is its class), or this page's ("Page"). */
export class Raised extends Error {
  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

const TOKEN = /\s*(?:([A-Za-z_]\w*)|(\d+\.?\d*|\.\d+)|(\*\*=|[-+*/@]=|\*\*|[-+*/@=().,:[\]]))/y;
const MODES = { no_grad: false, enable_grad: true, inference_mode: false };
const CONSTANTS = { True: true, False: false, None: null };
const UNARY = ["exp", "sin", "relu", "sum", "mean"];
export const METHODS = [...UNARY, "clone", "detach", "view", "item", "add_", "mul_", "requires_grad_", "backward"];

/** The most numbers in a tensor, and turns of a loop. */
const MOST = { numel: 6, turns: 5 };

const page = (message) => new Raised("Page", message);

function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim()) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw page(`This page does not know ${text.slice(from).trim()[0]}.`);
    found.push(match[1] ? ["name", match[1]] : match[2] ? ["number", match[2]] : ["sign", match[3]]);
  }
  return found;
}

/** One statement, without its indentation and comment. */
export function parse(text) {
  const list = tokens(text);
  let at = 0;
  const next = () => list[at]?.[1];
  const kind = (ahead = 0) => list[at + ahead]?.[0];
  const take = () => list[at++][1];
  const is = (sign) => next() === sign && (at += 1, true);
  function want(sign) {
    if (!is(sign)) throw new Raised("SyntaxError", next() === undefined ? `something is missing: ${sign}` : `invalid syntax at ${next()}`);
  }
  function name() {
    if (kind() !== "name" || Object.hasOwn(CONSTANTS, next())) throw new Raised("SyntaxError", `a name should stand here${next() === undefined ? "" : `, not ${next()}`}`);
    return take();
  }
  function number() {
    const minus = is("-") ? -1 : 1;
    if (kind() !== "number") throw page("A number should stand here.");
    const written = take();
    return ["number", minus * Number(written), written.includes(".")];
  }
  function whole() {
    const [, value, float] = number();
    if (float) throw page("A whole number should stand here.");
    return value;
  }
  function flag() {
    if (next() !== "True" && next() !== "False") throw page("True or False should stand here.");
    return CONSTANTS[take()];
  }
  /** What stands in a call of `torch.…`, up to its last bracket. */
  function made(what) {
    want("(");
    const shape = [];
    const all = [];
    function nested(depth) {
      if (!is("[")) return all.push(number());
      let length = 0;
      do {
        nested(depth + 1);
        length += 1;
      } while (is(",") && next() !== "]");
      want("]");
      if (length !== (shape[depth] ??= length)) throw page("All rows of a tensor are of one length.");
      return length;
    }
    if (what === "tensor") nested(0);
    else do shape.push(whole()); while (kind(1) === "number" && is(","));
    if (all.some(([, , float]) => !float)) throw page("Whole numbers would make an int64 tensor, which cannot require grad. Write 1. instead of 1.");
    const numel = shape.reduce((product, size) => product * size, 1);
    if (shape.length > 2 || numel > MOST.numel || shape.some((size) => size < 1) || (what === "tensor" && all.length !== numel)) throw page(`Tensors of one to ${MOST.numel} elements and at most two dims, please.`);
    let wanted = false;
    if (is(",")) {
      if (next() !== "requires_grad") throw page("The one option here is requires_grad.");
      at += 1;
      want("=");
      wanted = flag();
    }
    want(")");
    return ["make", what === "tensor" ? all.map(([, value]) => value) : Array(numel).fill(what === "ones" ? 1 : 0), shape, wanted];
  }
  function atom() {
    if (is("(")) {
      const inside = sum();
      want(")");
      return inside;
    }
    if (kind() === "number") return number();
    const called = name();
    if (called !== "torch") return ["name", called];
    want(".");
    const what = name();
    if (["tensor", "ones", "zeros"].includes(what)) return made(what);
    if (UNARY.includes(what)) {
      want("(");
      const inside = sum();
      want(")");
      return ["call", inside, what, [], {}];
    }
    throw page(Object.hasOwn(MODES, what) || what === "set_grad_enabled" ? `Write with torch.${what}(…): on a line of its own.` : `This page knows torch.tensor, ones and zeros, ${UNARY.join(", ")}, not torch.${what}.`);
  }
  /** x ** 2 binds closer than a minus before it. */
  function factor() {
    if (next() === "-") {
      if (kind(1) === "number" && list[at + 2]?.[1] !== "**" && list[at + 2]?.[1] !== ".") return number();
      at += 1;
      return ["negative", factor()];
    }
    const base = trailed();
    if (!is("**")) return base;
    const power = kind() === "number" ? whole() : 0;
    if (power !== 2 && power !== 3) throw page("This page knows ** 2 and ** 3.");
    return ["power", base, power];
  }
  function trailed() {
    let of = atom();
    for (;;) {
      if (is("[")) {
        const start = next() === ":" ? 0 : whole();
        if (is(":")) of = ["slice", of, start, next() === "]" ? Infinity : whole()];
        else of = ["index", of, start];
        want("]");
      } else if (is(".")) {
        const what = name();
        if (!is("(")) of = ["attribute", of, what];
        else {
          const args = [];
          const named = {};
          while (!is(")")) {
            if (list[at + 1]?.[1] === "=") {
              const option = take();
              at += 1;
              named[option] = flag();
            } else args.push(Object.hasOwn(CONSTANTS, next()) ? ["constant", CONSTANTS[take()]] : sum());
            if (next() !== ")") want(",");
          }
          if (!METHODS.includes(what)) throw page(`This page does not know .${what}(). It knows ${METHODS.join(", ")}.`);
          of = ["call", of, what, args, named];
        }
      } else return of;
    }
  }
  const chain = (part, signs) => () => {
    let left = part();
    while (signs.includes(next())) left = ["binary", take(), left, part()];
    return left;
  };
  const sum = chain(chain(factor, ["*", "/", "@"]), ["+", "-"]);
  function mode() {
    want("torch");
    want(".");
    const what = name();
    if (!Object.hasOwn(MODES, what) && what !== "set_grad_enabled") throw page(`This page knows no torch.${what} here.`);
    want("(");
    const on = Object.hasOwn(MODES, what) ? MODES[what] : flag();
    want(")");
    return [what, on];
  }
  function statement() {
    if (is("pass")) return ["pass"];
    if (is("del")) {
      const names = [name()];
      while (is(",")) names.push(name());
      return ["del", names];
    }
    if (is("with")) {
      const [what, on] = mode();
      want(":");
      return ["with", what, on];
    }
    if (next() === "torch" && list[2]?.[1] === "set_grad_enabled") return ["mode", mode()[1]];
    if (is("for")) {
      const [variable, means] = [name(), is("in")];
      if (!means || next() !== "range") throw page("This page knows loops over range(…), such as for i in range(3):");
      at += 1;
      want("(");
      const turns = whole();
      want(")");
      want(":");
      if (turns < 1 || turns > MOST.turns) throw page(`This page knows loops of one to ${MOST.turns} turns.`);
      return ["for", variable, turns];
    }
    if (["if", "while", "def", "import", "print", "class", "try"].includes(next())) throw page(`This page knows no ${next()}: one statement after the other, with blocks, and loops over range(…).`);
    const left = sum();
    const sign = next();
    if (sign === "@=" || sign === "**=") throw page(`This page knows no ${sign}: in place it knows +=, -=, *= and /=.`);
    if (!["=", "+=", "-=", "*=", "/="].includes(sign)) return ["do", left];
    at += 1;
    if (left[0] === "name") return sign === "=" ? ["assign", left[1], sum()] : ["inplace", left[1], sign[0], sum()];
    if (sign === "=" && left[0] === "attribute" && left[1][0] === "name") {
      if (left[2] === "requires_grad") return ["set", left[1][1], left[2], flag()];
      if (left[2] === "grad" && is("None")) return ["set", left[1][1], left[2], null];
    }
    throw page("This page assigns to names, to x.requires_grad, and None to x.grad.");
  }
  const done = statement();
  if (at < list.length) throw new Raised("SyntaxError", `invalid syntax at ${next()}`);
  return done;
}

/** Lines of a program: { at, text, depth, statement } or with `error`; empty lines and comments are left out. */
export function lines(code) {
  const rows = code.split("\n").map((whole, at) => ({ at, whole: whole.replace(/#.*/, "").trimEnd() })).filter(({ whole }) => whole.trim());
  const indents = [0];
  let opened;
  return rows.map(({ at, whole }, row) => {
    const indent = whole.length - whole.trimStart().length;
    const line = { at, text: whole.trim() };
    try {
      if (opened && indent <= indents.at(-1)) throw new Raised("IndentationError", `expected an indented block after '${opened}' statement`);
      if (!opened && indent > indents.at(-1)) throw new Raised("IndentationError", "unexpected indent");
      if (opened) indents.push(indent);
      while (indent < indents.at(-1)) indents.pop();
      if (indent !== indents.at(-1)) throw new Raised("IndentationError", "unindent does not match any outer indentation level");
      line.statement = parse(line.text);
      opened = ["with", "for"].find((word) => word === line.statement[0]);
      if (opened && row === rows.length - 1) throw new Raised("IndentationError", `expected an indented block after '${opened}' statement`);
    } catch (error) {
      if (!(error instanceof Raised)) throw error;
      opened = undefined;
      line.error = error;
    }
    line.depth = indents.length - 1;
    return line;
  });
}
