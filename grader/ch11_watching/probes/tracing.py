"""Probe of `Tracer`: programs of spans, instants, counters, arrows and threads, and what they leave."""

import json
import math
import os
import tempfile
import threading

from grader import probe

ODD = {
    "nan": lambda: math.nan,
    "minus infinity": lambda: -math.inf,
    "list": lambda: [1, 2],
    "path": lambda: ("a", None),
    "complex": lambda: 1 + 2j,
}
"""Arguments that JSON has no word for, made where the program runs."""


class Clock:
    """A clock that stands still until the program lets it go on."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


def run(tracer, program, clock, write):
    """Run a program: lists of steps, each a dict with what is `done`, and with the steps inside."""
    handles = {}

    def args_of(step):
        return {key: ODD[one]() if one in ODD else one for key, one in step.get("args", {}).items()}

    def steps(some):
        for step in some:
            clock.now += step["wait"]
            one(step)

    def one(step):
        match step["do"]:
            case "span":
                after = handles.get(step.get("after"))
                with tracer.span(step["name"], after=after, **args_of(step)) as handle:
                    handles[step["name"]] = handle
                    steps(step["inside"])
                    clock.now += step["last"]
                    if "raises" in step:
                        raise {"KeyError": KeyError, "KeyboardInterrupt": KeyboardInterrupt}[
                            step["raises"]
                        ]
            case "catch":
                try:
                    steps(step["inside"])
                except BaseException as error:
                    tracer.instant(f"caught {type(error).__name__}")
            case "instant":
                tracer.instant(step["name"], **args_of(step))
            case "counter":
                tracer.counter(step["name"], **args_of(step))
            case "changed":
                numbers = [1, 2]
                tracer.instant(step["name"], numbers=numbers)
                numbers.append(3)
            case "thread":
                other = threading.Thread(target=steps, args=(step["inside"],), name=step["name"])
                other.start()
                other.join()
            case "write":
                write()

    steps(program)


@probe
def traced(student, program, base, pid):
    """Return the text of each file that a program writes, and the main thread's name."""
    clock, texts = Clock(base), []
    tracer = student.Tracer(clock, pid) if pid else student.Tracer(clock)

    def write():
        path = os.path.join(folder, f"{len(texts)}.json")
        tracer.write(path)
        with open(path) as file:
            texts.append(file.read())

    with tempfile.TemporaryDirectory() as folder:
        run(tracer, program, clock, write)
        write()
    return {"texts": texts, "main": threading.current_thread().name}


def as_program(program, depth=0):
    """Return a program as one would write it."""
    lines, indent = [], "    " * depth

    def said(step):
        extra = [f"after={step['after']}"] if step.get("after") else []
        extra += [
            f"{key}={ODD[v]() if v in ODD else v!r}" for key, v in step.get("args", {}).items()
        ]
        return ", ".join([repr(step["name"]), *extra])

    for step in program:
        match step["do"]:
            case "span":
                lines.append(f"{indent}with tracer.span({said(step)}) as {step['name']}:")
                inside = as_program(step["inside"], depth + 1)
                end = f"raise {step['raises']}" if "raises" in step else "" if inside else "pass"
                lines += [inside] if inside else []
                lines += [f"{indent}    {end}"] if end else []
            case "catch":
                lines += [f"{indent}try:", as_program(step["inside"], depth + 1)]
                lines += [f"{indent}except BaseException as error:"]
                lines += [f"{indent}    tracer.instant(f'caught {{type(error).__name__}}')"]
            case "changed":
                lines.append(f"{indent}numbers = [1, 2]")
                lines.append(f"{indent}tracer.instant({step['name']!r}, numbers=numbers)")
                lines.append(f"{indent}numbers.append(3)")
            case "thread":
                lines += [f"{indent}# in a thread named {step['name']!r}, to its end:"]
                lines += [as_program(step["inside"], depth + 1)]
            case "write":
                lines.append(f"{indent}tracer.write(path)")
            case kind:
                lines.append(f"{indent}tracer.{kind}({said(step)})")
    return "\n".join(lines)


def _refuse(word):
    raise ValueError(f"{word} is no JSON")


def strict(text):
    """Return the JSON of a text, numbers with a point as text. Raises `ValueError`."""
    return json.loads(text, parse_float=str, parse_constant=_refuse)
