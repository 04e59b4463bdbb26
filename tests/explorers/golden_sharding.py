"""What real ranks hold at each moment of a training step, and say to each other, with torch's own sharding.

The program that runs is the one that the sharding explorer shows for a state, so that it is tested too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch._dynamo  # here and not in every fork: FSDP asks for it
from torch import nn
from torch.distributed.fsdp import FSDPModule

from grader.inside.instruments.collectives import Listener
from grader.inside.instruments.memory import watch_memory
from grader.inside.instruments.ranks import on_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch.distributed.tensor.parallel
    from torch.distributed.tensor import DTensor

SECONDS = 60
BATCH = 4
STEPS = 3
"""The last is looked at: DDP arranges its buckets anew in the second, and Adam begins in the first."""

Row = dict[str, Any]
Told = dict[str, Any]
"""Of a rank: `places`, which part of each weight it has, as first row, first column, rows, columns; `mesh`, the
ranks as they stand in it, and `rows`, what it held whenever something happened."""


class Case(NamedTuple):
    """A program, and what it is run with; as many ranks as `together` have the same batch."""

    ranks: int
    width: int
    together: int
    program: str


def steps(cases: list[Case]) -> list[list[Told]]:
    """Per case and rank: what it held in a step. Cases of as many ranks share them."""
    found: list[list[Told]] = [[] for _ in cases]
    for ranks in sorted({case.ranks for case in cases}):
        own = [i for i, case in enumerate(cases) if case.ranks == ranks]

        def body(rank: int, own: list[int] = own) -> list[Told]:
            torch.set_num_threads(1)
            return [_run(rank, cases[i]) for i in own]

        by_rank = on_ranks(ranks, body, seconds=SECONDS)
        for place, i in enumerate(own):
            found[i] = [told[place] for told in by_rank]
    return found


def _run(rank: int, case: Case) -> Told:
    torch.manual_seed(0)
    begin, loop, rest = case.program.partition("\nfor x in batches:")
    names: dict[str, Any] = {}
    with warnings.catch_warnings(), watch_memory() as memory:
        warnings.simplefilter("ignore")
        exec(begin, names)
        told = _Told(names["model"], names["optimizer"], lambda: memory.live_bytes)
        places = _places(told.layers)
        names["batches"] = told.batches(
            torch.full((BATCH, case.width), 1.0 + rank // case.together)
        )
        with Listener(told.note):
            exec(loop + rest, names)
        told.note("end")
    mesh = names["mesh"].mesh.tolist() if "mesh" in names else None
    return {"places": places, "mesh": mesh, "rows": told.rows}


def _places(layers: list[nn.Linear]) -> list[list[int]]:
    """Find this rank's part of each weight by its numbers."""
    torch.manual_seed(0)
    found = []
    for layer in layers:
        whole = nn.Linear(layer.in_features, layer.out_features, bias=False).weight.detach()
        own = _local(layer.weight)
        at = (whole == own[0, 0]).nonzero()[0].tolist() if own.numel() else [0, 0]
        assert torch.equal(whole[at[0] :, at[1] :][: own.shape[0], : own.shape[1]], own)
        found.append([*at, *own.shape])
    return found


class _Told:
    """Looks at a model whenever something happens; `rows` is what it saw in the present step."""

    def __init__(self, model: nn.Module, optimizer: Any, live: Callable[[], int]) -> None:
        self.rows: list[Row] = []
        self.live = live
        root: Any = getattr(model, "module", model)
        self.layers = list(root)
        self.weights = [layer.weight for layer in self.layers]
        self.optimizer = getattr(optimizer, "optim", optimizer)
        self.wrapped = [m for m in (root, *self.layers) if isinstance(m, FSDPModule)]
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            layer.register_forward_pre_hook(lambda *_, i=i: self.note("forward", 0, i))
            layer.register_forward_hook(lambda *_, i=i: self.note("forwarded", 0, i))
            if i < last:
                layer.register_forward_hook(lambda _m, _x, out, i=i: self.on_gradient(out, i))
        # Of the last only now: the hook of the root on the same tensor comes first.
        model.register_forward_hook(lambda _m, _x, out: self.on_gradient(out, last))
        optimizer.register_step_pre_hook(lambda *_: self.note("step"))

    def on_gradient(self, out: torch.Tensor, layer: int) -> None:
        out.register_hook(lambda _: self.note("backward", 0, layer))

    def batches(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        """Give a batch per step, and begin to look anew."""
        for _ in range(STEPS):
            self.rows.clear()
            self.note("rest")
            yield x

    def note(self, kind: str, size: int = 0, layer: int = -1) -> None:
        """Put down what there is before this happens: bytes, per layer where a list."""
        torch.empty(0)  # the scales weigh at an operator
        live = self.live()
        groups = [group for m in self.wrapped if (group := m._get_fsdp_state()._fsdp_param_group)]
        gathered, own = [0] * len(self.layers), [0] * len(self.layers)
        for i, sharded in enumerate(one for group in groups for one in group.fsdp_params):
            gathered[i] = _bytes(getattr(sharded, "all_gather_outputs", ()))
            whole = getattr(sharded, "_unsharded_param", None)
            own[i] = 0 if whole is None or whole.grad is None else _bytes([whole.grad])
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        averages = [
            state[name]
            for state in self.optimizer.state.values()
            for name in ("exp_avg", "exp_avg_sq")
            if name in state
        ]
        self.rows.append(
            {
                "kind": kind,
                "bytes": size,
                "layer": layer,
                "live": live,
                "weights": _bytes(self.weights),
                "gathered": gathered,
                "own": own,
                "gradients": _bytes(gradients),
                "graded": [i for i, w in enumerate(self.weights) if w.grad is not None],
                "sums": [_local(gradient).double().sum().item() for gradient in gradients],
                "adam": sum(_local(average).nbytes for average in averages),
                "buffers": _bytes(_buffers(groups)),
                "values": [_local(weight).double().sum().item() for weight in self.weights],
            }
        )


def _buffers(groups: list[Any]) -> Iterator[torch.Tensor]:
    """What collectives of `fully_shard` left in memory: what arrived, and what was sent off."""
    for group in groups:
        if group._all_gather_result:
            yield group._all_gather_result.all_gather_output
        if state := getattr(group.comm_ctx, "all_gather_state", None):
            yield state.all_gather_result.all_gather_output
        for sent in getattr(group.comm_ctx, "reduce_scatter_states", ()):
            yield sent.reduce_scatter_input


def _local(tensor: Any) -> torch.Tensor:
    own: torch.Tensor = tensor.detach()
    return own.to_local() if isinstance(own, DTensor) else own


def _bytes(tensors: Iterable[Any]) -> int:
    """The bytes of the storages of these, each counted once."""
    storages = [_local(tensor).untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
