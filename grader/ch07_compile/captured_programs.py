"""Random straight programs for `count_ops`, with the operations that each line stands for."""

from collections import Counter
from random import Random

BREAKS = ("torch._dynamo.graph_break()", "print('half way')")

LINES = {
    "x = torch.sin(x)": ["sin"],
    "x = x.cos()": ["cos"],
    "x = x + 1": ["add"],
    "x = torch.add(x, w[0, 0])": ["getitem", "add"],
    "x = x.add(1)": ["add"],
    "x = 2 * x": ["mul"],
    "x = -x": ["neg"],
    "x = x @ w": ["matmul"],
    "x = x.matmul(w)": ["matmul"],
    "x = F.gelu(x)": ["gelu"],
    "x = x.abs().sqrt()": ["abs", "sqrt"],
    "for i in range(3): x = x * i": ["mul"] * 3,
    "x = x.relu() if x.shape[0] > 1 else x.exp()": ["relu"],
    "x = x.mean(0, keepdim=True) - x": ["mean", "sub"],
}


def random_lines(random: Random, length: int, breaks: bool) -> list[str]:
    """Return that many lines, with some breaks between them if wanted."""
    lines = []
    for _ in range(length):
        if breaks and random.random() < 0.3:
            lines.append(random.choice(BREAKS))
        lines.append(random.choice(list(LINES)))
    return lines


def counted(lines: list[str]) -> list[dict[str, int]]:
    """Return the counts of each graph: one for each stretch of lines between breaks."""
    graphs: list[Counter[str]] = [Counter()]
    for line in lines:
        if line in BREAKS:
            graphs.append(Counter())
        else:
            graphs[-1].update(LINES[line])
    return [dict(graph) for graph in graphs if graph]
