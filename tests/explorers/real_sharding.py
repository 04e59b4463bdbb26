"""Real ranks over gloo, with `fully_shard`, DTensor, DDP and ZeRO: what each holds at each moment of a step.

The program that runs is the one the sharding explorer shows for a state, so that is tested with it.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo  # here and not in every fork: FSDP asks for it
import torch.distributed as dist
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
"""DDP's buckets are rebuilt in the second, and Adam's averages are there from the first on."""

Row = dict[str, Any]
Told = dict[str, Any]
"""Of a rank: `places`, where its part of each weight begins and how large it is, and `rows`, what it held."""


def steps(cases: list[tuple[int, int, str]]) -> list[list[Told]]:
    """Per case (ranks, width, program) and rank: what it held in the last step, moment by moment.

    Cases of the same number of ranks share these.
    """
    found: list[list[Told]] = [[] for _ in cases]
    for ranks in sorted({case[0] for case in cases}):
        own = [i for i, case in enumerate(cases) if case[0] == ranks]

        def body(rank: int, own: list[int] = own) -> list[Told]:
            return [_run(rank, cases[i][1], cases[i][2]) for i in own]

        by_rank = on_ranks(ranks, body, seconds=SECONDS)
        for place, i in enumerate(own):
            found[i] = [rows[place] for rows in by_rank]
    return found


def _run(rank: int, width: int, program: str) -> Told:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    begun = program.index("\nfor x in batches:")
    names: dict[str, Any] = {}
    with warnings.catch_warnings(), watch_memory() as memory:
        warnings.simplefilter("ignore")
        exec(program[:begun], names)
        told = _Told(names["model"], names["optimizer"], lambda: memory.live_bytes)
        places = _places(told.layers)
        names["batches"] = told.batches(rank, width)
        with Listener(told.note):
            exec(program[begun:], names)
        told.note("end")
    return {"places": places, "rows": told.rows}


def _places(layers: list[nn.Linear]) -> list[list[int]]:
    """Per layer: first row, first column and size of this rank's part, found by its numbers."""
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
    """Looks at the model whenever something happens: `rows` is what it saw in the present step."""

    def __init__(self, model: nn.Module, optimizer: Any, live: Callable[[], int]) -> None:
        self.rows: list[Row] = []
        self.live = live
        root = getattr(model, "module", model)
        self.layers = list(root)
        self.parameters = [layer.weight for layer in self.layers]
        self.optimizer = getattr(optimizer, "optim", optimizer)
        self.wrapped = [m for m in (root, *self.layers) if isinstance(m, FSDPModule)]
        self.gradients: list[Any] = []
        for place, layer in enumerate(self.layers):
            layer.register_forward_pre_hook(lambda *_, i=place: self.note("forward", 0, i))
            layer.register_forward_hook(lambda *_, i=place: self.note("forwarded", 0, i))
            if place < len(self.layers) - 1:
                layer.register_forward_hook(
                    lambda _m, _x, out, i=place: _on_gradient(out, self.backward(i))
                )
        # Of the last layer only now: the root's own hook on the same tensor comes first.
        model.register_forward_hook(
            lambda _m, _x, out: _on_gradient(out, self.backward(len(self.layers) - 1))
        )
        optimizer.register_step_pre_hook(lambda *_: self.note("step"))
        optimizer.register_step_post_hook(lambda *_: self.note("stepped"))

    def batches(self, rank: int, width: int) -> Iterator[torch.Tensor]:
        """Give a batch per step; between two, forget what was seen."""
        for _ in range(STEPS):
            self.rows.clear()
            self.note("rest")
            yield torch.full((BATCH, width), 1.0 + rank)

    def backward(self, layer: int) -> Callable[[object], None]:
        return lambda _: self.note("backward", 0, layer)

    def note(self, kind: str, size: int = 0, layer: int = -1) -> None:
        torch.empty(0)  # makes the scales weigh
        live = self.live()
        groups = [group for m in self.wrapped if (group := m._get_fsdp_state()._fsdp_param_group)]
        sharded = [parameter for group in groups for parameter in group.fsdp_params]
        whole = [
            sum(out.untyped_storage().nbytes() for out in getattr(one, "all_gather_outputs", ()))
            for one in sharded
        ]
        own = [
            _local(unsharded.grad)
            for one in sharded
            if (unsharded := getattr(one, "_unsharded_param", None)) is not None
            and unsharded.grad is not None
        ]
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        self.rows.append(
            {
                "kind": kind,
                "bytes": size,
                "layer": layer,
                "live": live,
                "weights": _storages(map(_local, self.parameters)),
                "gathered": sum(whole),
                "own": _storages(own),
                "gradients": _storages(map(_local, gradients)),
                "graded": [i for i, p in enumerate(self.parameters) if p.grad is not None],
                "sums": [float(_local(g).sum()) for g in gradients],
                "adam": sum(
                    _local(state[name]).nbytes
                    for state in self.optimizer.state.values()
                    for name in ("exp_avg", "exp_avg_sq")
                    if name in state
                ),
                "values": [float(_local(p).sum()) for p in self.parameters],
                "buffers": _buffers(groups),
            }
        )


def _on_gradient(out: torch.Tensor, then: Callable[[object], None]) -> None:
    out.register_hook(then)


def _local(tensor: Any) -> torch.Tensor:
    return tensor.detach().to_local() if isinstance(tensor, DTensor) else tensor.detach()


def _storages(tensors: Any) -> int:
    """Bytes of all different storages of these."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    storages.pop(0, None)
    return sum(storages.values())


def _buffers(groups: list[Any]) -> int:
    """Bytes that collectives of `fully_shard` left: what arrived and was not copied or let go, and what was sent off."""
    held = [
        group._all_gather_result.all_gather_output for group in groups if group._all_gather_result
    ]
    for context in {id(group.comm_ctx): group.comm_ctx for group in groups}.values():
        if state := getattr(context, "all_gather_state", None):
            held.append(state.all_gather_result.all_gather_output)
        held += [one.reduce_scatter_input for one in getattr(context, "reduce_scatter_states", ())]
    return _storages(held)
