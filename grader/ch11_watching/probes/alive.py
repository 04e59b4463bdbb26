"""What is still alive: the graph of a tensor, and the tensor itself."""

import gc
import weakref


class Token:
    """Something to hang on a node of a graph; it lives as long as the node."""


class Graphs:
    """Graphs that were noted, of which some may have gone."""

    def __init__(self):
        self._tokens = []

    def note(self, tensor):
        """Note the node of a tensor, if it has one."""
        if tensor.grad_fn is not None:
            token = tensor.grad_fn.metadata["token"] = Token()
            self._tokens.append(weakref.ref(token))

    @property
    def alive(self):
        """How many of them are alive, after what is garbage has been collected."""
        gc.collect()
        return sum(token() is not None for token in self._tokens)
