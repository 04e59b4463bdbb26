"""What stands in an operator's table, by the rules of `table_entry`; tests compare this with PyTorch."""

NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"
EXPLICIT = "CompositeExplicitAutograd"
IMPLICIT = "CompositeImplicitAutograd"
AUTOGRAD = "Autograd"
ALIASES = (NON_FUNCTIONAL, EXPLICIT, IMPLICIT, AUTOGRAD)

OTHERS = ("QuantizedCPU", "SparseCPU", "SparseCsrCPU")
"""The backends that share `AutogradOther`."""

AUTOGRAD_OF = {
    "CPU": "AutogradCPU",
    "CUDA": "AutogradCUDA",
    "Meta": "AutogradMeta",
    "PrivateUse1": "AutogradPrivateUse1",
    "NestedTensorCPU": "AutogradNestedTensor",
    **dict.fromkeys(OTHERS, "AutogradOther"),
}
AUTOGRAD_KEYS = sorted(set(AUTOGRAD_OF.values()))
BACKENDS = tuple(AUTOGRAD_OF)
FALLTHROUGHS = ("BackendSelect", "ADInplaceOrView", "AutocastCPU")
FALLBACKS = (
    *(key for key in AUTOGRAD_KEYS if key != "AutogradNestedTensor"),
    *("Meta", "Python", "FuncTorchBatched", "Functionalize", "Conjugate"),
)
KEYS = sorted({"Undefined", *BACKENDS, *AUTOGRAD_KEYS, *FALLBACKS, *FALLTHROUGHS})

STANDS_FOR = {
    NON_FUNCTIONAL: {"Undefined", *BACKENDS} - {"SparseCPU", "NestedTensorCPU"},
    EXPLICIT: {"Undefined", *BACKENDS} - {"NestedTensorCPU"},
    IMPLICIT: {"Undefined", *BACKENDS, *AUTOGRAD_KEYS},
    AUTOGRAD: set(AUTOGRAD_KEYS),
}


def entry(registered: dict[str, str], key: str) -> str:
    """Return what the table has at `key`; see the exercise for the rules."""
    backends = [backend for backend, autograd in AUTOGRAD_OF.items() if autograd == key]
    gives_way = any(backend in registered for backend in backends)
    candidates = [key, *(alias for alias in ALIASES if key in STANDS_FOR[alias])]
    for candidate in candidates:
        if candidate not in registered:
            continue
        if candidate != IMPLICIT:
            return registered[candidate]
        if gives_way and key == "AutogradOther":
            return "ambiguous"
        if not gives_way and EXPLICIT not in registered:
            return registered[IMPLICIT]
    if key in FALLTHROUGHS:
        return "fallthrough"
    return "fallback" if key in FALLBACKS else "missing"


def named(*keys: str) -> dict[str, str]:
    """Return a registration for each key, with a kernel's name that tells nothing of the key."""
    return {key: f"kernel_{number}" for number, key in enumerate(keys)}
