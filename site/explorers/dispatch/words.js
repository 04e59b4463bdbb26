// What a stop of the road does, in a sentence. No DOM.

/** How the page calls a tensor and a mode. */
export const TENSOR_NAMES = {
  plain: "float32", grad: "requires_grad=True", int: "int64", conj: "a conjugate view", inference: "made in inference mode",
  meta: 'on "meta"', sparse: "sparse", subclass: "a wrapper subclass",
};
export const MODE_NAMES = { no_grad: "no_grad", inference_mode: "inference_mode", autocast: "autocast", mode: "a TorchDispatchMode", vmap: "vmap" };

const COMPOSITE = "A composite kernel: it is written in other operators, and each of its calls goes a whole road of its own.";

/** `asks`: are there calls inside it? */
export function explain({ op, key, kind, mode }, state, asks) {
  const backend = { CPU: "The kernel for the CPU. Here the numbers are made.", Meta: "The kernel for meta tensors: sizes and strides, no numbers.", SparseCPU: "The kernel for sparse tensors on the CPU." };
  if (key.startsWith("Autograd")) {
    if (kind === "math kernel") return `${COMPOSITE} Autograd sees those, and not this one.`;
    return "Autograd's kernel. It looks whether a gradient is wanted, records a node if so, and hands the call on.";
  }
  switch (key) {
    case "FuncTorchDynamicLayerFrontMode": return kind === "kernel" ? "Here stands the composite kernel, so that vmap meets what it calls." : "vmap begins. It hides what is not its business and calls the operator again.";
    case "FuncTorchBatched":
      if (kind === "batched kernel") return "A composite kernel, and vmap takes the calls in it one by one.";
      return kind === "kernel" ? "The rule for batches: the batch is one more dim, and operators are called for all of it." : "No rule for this operator: a loop with one call per row, and a warning. Then stack.";
    case "FuncTorchDynamicLayerBackMode": return "The layer of vmap ends. The thread is as before it, and the call goes on without the wrapper.";
    case "PythonTLSSnapshot": return "Keeps the state of the thread for Python further down, and hands the call on.";
    case "AutocastCPU": return op === "stack" || ["int", "conj"].includes(state.tensor) ? "Autocast finds nothing to cast, and calls the operator again with itself switched off." : "Casts to bfloat16 what is float32, and calls the operator again with itself switched off.";
    case "ADInplaceOrView": return op.split(".")[0].endsWith("_") ? "Counts up the version of what is changed in place, and hands the call on." : "Ties the view to its base, and hands the call on.";
    case "Conjugate": return op === "to.dtype" ? "The result may be a view, so nothing is written out yet. It hands the call on." : "Writes the conjugated numbers out, and hands the call on with those.";
    case "Python": return mode ? "__torch_dispatch__ of the mode. It calls the operator again, with itself switched off." : "__torch_dispatch__ of the subclass. It calls the operator on the tensor inside.";
    case "BackendSelect": return "Where the result will be is not in the tensors: the device that was asked for says it.";
    default: break;
  }
  if (kind === "math kernel") return COMPOSITE;
  return kind === "kernel" ? backend[key] : `One kernel for every backend, below autograd.${asks ? " It calls other operators." : ""}`;
}
