// What to write in PyTorch for a state; a test runs it on real ranks. No DOM.

import { gathers, meshOf } from "./moments.js";

const IMPORTS = {
  ddp: ["torch.nn.parallel import DistributedDataParallel"],
  zero1: ["torch.nn.parallel import DistributedDataParallel", "torch.distributed.optim import ZeroRedundancyOptimizer"],
  mesh: ["torch.distributed.device_mesh import init_device_mesh"],
  shard: ["torch.distributed.fsdp import fully_shard"],
  tensor: ["torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module"],
};

export function codeOf(state) {
  const { strategy, width, hidden, blocks, wrap } = state;
  const { replicas, shards, tensor } = meshOf(state);
  const [sharded, split] = [gathers(strategy), tensor > 1];
  const two = (replicas > 1 && shards > 1) || (shards > 1 && split);
  const imports = [
    ...(IMPORTS[strategy] ?? []), ...(sharded || split ? IMPORTS.mesh : []), ...(sharded ? IMPORTS.shard : []), ...(split ? IMPORTS.tensor : []),
  ];
  const lines = ["import torch", "from torch import nn", ...imports.map((one) => `from ${one}`), "", "model = nn.Sequential()",
    blocks > 1 ? `for _ in range(${blocks}):` : null,
    ...[`nn.Linear(${width}, ${hidden}, bias=False)`, `nn.Linear(${hidden}, ${width}, bias=False)`].map((one) => `${blocks > 1 ? "    " : ""}model.append(${one})`),
    ""].filter((line) => line !== null);

  if (sharded || split) {
    const names = two ? `, mesh_dim_names=("${replicas > 1 ? "replicate" : "shard"}", "${split ? "tensor" : "shard"}")` : "";
    const shape = [replicas, shards, tensor].filter((n, i) => n > 1 || (!two && n > 1 && i));
    lines.push(`mesh = init_device_mesh("cpu", (${shape.join(", ")}${shape.length < 2 ? "," : ""})${names})`);
  }
  if (split) {
    lines.push("plan = {}", `for i in range(0, ${2 * blocks}, 2):`,
      '    plan[f"{i}"] = ColwiseParallel(use_local_output=False)', '    plan[f"{i + 1}"] = RowwiseParallel()',
      `parallelize_module(model, mesh${two ? '["tensor"]' : ""}, plan)`);
  }
  if (sharded) {
    const given = `mesh=mesh${split ? '["shard"]' : ""}, reshard_after_forward=${strategy === "zero2" ? "False" : "True"}`;
    if (wrap === "layer") lines.push("for layer in model:", `    fully_shard(layer, ${given})`);
    lines.push(`fully_shard(model, ${given})`);
  }
  if (strategy === "ddp" || strategy === "zero1") lines.push("model = DistributedDataParallel(model, gradient_as_bucket_view=True)");
  lines.push(strategy === "zero1" ? "optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)" : "optimizer = torch.optim.Adam(model.parameters())",
    "", `for x in batches:  # ${split && !sharded ? "the same 4 rows on every rank" : split ? "4 rows, the same along the mesh's \"tensor\"" : "4 rows, others on each rank"}`,
    "    model(x).sum().backward()", "    optimizer.step()", "    optimizer.zero_grad()");
  return lines.join("\n");
}
