"""What the grader takes from torch's insides, and the torch on which it was last verified.

Names that begin with an underscore move without notice. All of them are named here: a test demands
that the grader uses no other, and that the installed torch has each. To go to another torch, change
`VERIFIED` and the pins, run `make test`, and look at what this page says of that which fails.
"""

from __future__ import annotations

import torch

VERIFIED = "2.13.0"
"""The torch on which every check, instrument and statement of the course was run."""

NAMES = {
    "torch._C.DisableTorchFunction": "rounds a number to a dtype without being seen by a mode of ours",
    "torch._C.DispatchKey.Meta": "ch09 Abacus: a kernel for shapes beside those of a device",
    "torch._C.DispatchKeySet": "the same: the keys that are asked next",
    "torch._C._DisableTorchDispatch": "the same",
    "torch._C._TorchDispatchModeKey": "names torch's own modes, which trace",
    "torch._C._acc.create_empty_tensor": "a tensor on a device of Python's",
    "torch._C._autograd._pop_saved_tensors_default_hooks": "hooks that student code left behind",
    "torch._C._autograd._record_function_with_args_enter": "marks of ours in the second witness's trace",
    "torch._C._autograd._record_function_with_args_exit": "the same",
    "torch._C._autograd._top_saved_tensors_default_hooks": "the same",
    "torch._C._dispatch_dump": "an operator's registrations, before and after a patch",
    "torch._C._dispatch_dump_table": "the same of its table",
    "torch._C._dispatch_get_all_op_names": "a rule of what is off limits names an operator that is there",
    "torch._C._dispatch_has_kernel_for_dispatch_key": "an operator that is made of others",
    "torch._C._dispatch_keys": "a tensor's dispatch keys",
    "torch._C._distributed_c10d.FileStore": "ranks meet through a file: no port, no server",
    "torch._C._dynamo.eval_frame._FrameAction": "Dynamo leaves modes of ours alone, without being imported",
    "torch._C._dynamo.eval_frame._FrameExecStrategy": "the same",
    "torch._C._dynamo.eval_frame.set_code_exec_strategy": "the same",
    "torch._C._functorch.is_functorch_wrapped_tensor": "tensors under vmap or grad have no storage to look at",
    "torch._C._get_dispatch_mode": "whether torch traces: an operator of higher order stays what it is",
    "torch._C._get_privateuse1_backend_name": "whether this process has a device of its own already",
    "torch._C._jit_get_all_schemas": "schemas that an answer is to read",
    "torch._C._len_torch_dispatch_stack": "a dispatch mode that student code left behind",
    "torch._C._len_torch_function_stack": "a function mode that student code left behind",
    "torch._C._profiler._add_execution_trace_observer": "the second witness, which sees all threads",
    "torch._C._profiler._enable_execution_trace_observer": "the same",
    "torch._C._set_grad_enabled": "sets a mode where the public function is off limits",
    "torch._C.parse_schema": "the truth of them",
    "torch._amp_update_scale_": "the truth of a loss scale: GradScaler's own kernel",
    "torch._dynamo.backends.common.aot_autograd": "makes a backend of a partitioner",
    "torch._dynamo.exc.TorchDynamoException": "Dynamo says why it makes no graph",
    "torch._dynamo.guards": "its timing of guards is switched off: half the time of a small compilation",
    "torch._dynamo.list_backends": "imports every backend once, not in each fork",
    "torch._dynamo.reset": "each look at Dynamo begins with empty caches",
    "torch._dynamo.utils.counters": "counts of graphs and breaks, cleared with the caches",
    "torch._foreach_add_": "an operator that writes to its arguments and returns nothing",
    "torch._is_functional_tensor": "functional tensors have no storage to look at",
    "torch._neg_view": "rebuilds a tensor whose negative bit is set",
    "torch._ops.HigherOrderOperator": "operators that call functions, whose operators a mode sees",
    "torch._ops.OpOverload": "direct calls of an operator that is off limits are noted",
    "torch._ops.OpOverloadPacket": "the same",
    "torch._ops.OperatorBase": "an operator among the functions that another one calls",
    "torch._ops._OpNamespace": "the same for all operators of a namespace",
    "torch._subclasses.FakeTensor": "fake tensors have a layout and no bytes",
    "torch._subclasses.FakeTensorMode": "runs a custom op's fake kernel",
    "torch._tensor_classes": "old constructors, which cast beneath every mode",
    "torch.utils._python_dispatch.TorchDispatchMode": "every instrument that sees ops",
    "torch.utils._python_dispatch._disable_current_modes": "pictures are drawn out of a mode's sight",
    "torch.utils._pytree.tree_flatten_with_path": "an optimizer's state by names, for what a watch left",
    "torch.utils._pytree.tree_leaves": "the tensors in an op's arguments and results",
    "torch.utils._pytree.tree_map": "the functions among an operator's arguments",
    "torch.utils._pytree.tree_map_only": "the tensors of a checkpoint that is read, made by operators",
    "torch.utils.backend_registration._setup_privateuseone_for_python_backend": "a device of Python's",
}
"""Private names: what for."""

CONVENTIONS = {
    "torch.ops.higher_order.cond takes (predicate, arm, arm, operands)": "ch07 TakenArms",
    'Dynamo\'s placeholders keep a fake tensor in meta["example_value"]': "ch07 has_symbolic_size",
    'AOTAutograd\'s nodes keep a fake tensor in meta["val"]': "ch07 joint_record, show_graph",
    "AOTAutograd calls partition_fn(joint, (primals, tangents), *, num_fwd_outputs)": "ch07 capture_joint",
    "a joint graph's placeholders for gradients are called tangents…": "show_graph",
    "a dispatch mode is wrapped, and imports Dynamo, unless its _should_skip_dynamo says no": "dispatch.py",
    "an operator that is made of others runs as these by its _op_dk; prim::device is none of C++": "dispatch.py",
    "torch.utils.flop_counter.flop_registry has a formula for each operator that has a kernel": "flops.py",
    "an operator's Python object calls its `_op`, one frame below its `__call__`": "recorders",
    "torch.X is also torch._C._nn.X, torch._VF.X, torch._refs.X or torch.ops.aten.X": "relatives",
    "torch's own samples of operators need expecttest for their import alone": "firing",
    "torch._dynamo.config.recompile_limit is 8": "ch07 guard_rules",
    "the execution trace names a mode's call PythonDispatchMode, a subclass's PythonSubclass": "record.py",
    "the execution trace opens one file, whose buffer holds 8 KiB": "witness.py",
    "gloo's thread that polls its sockets is called gloo_tcp_loop": "ranks that hang are seen early",
}
"""What no name shows: a habit of torch that the grader counts on, and where it does."""


def other_torch() -> str | None:
    """Return what to say where another torch is installed than the one verified."""
    installed = torch.__version__.split("+")[0]
    if installed == VERIFIED:
        return None
    return (
        f"Here is torch {installed}; this course was verified on {VERIFIED}, and it teaches insides, "
        f"which change. Before you trust a verdict that puzzles you: pip install torch=={VERIFIED}."
    )
