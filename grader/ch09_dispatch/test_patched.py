"""Checks of `patched`: short programs, each in a process of its own, and what they note."""

from textwrap import dedent

from grader import Mismatch, compared, gate, points

HELPERS = """\
x is torch.tensor([0.0, 1.0]); noting(name) is a kernel that notes its name and returns what the
original returns; halved is an operator of the namespace road."""


def compare(patching, programs):
    """Compare what programs note with what they must; `programs` has pairs of text and notes."""
    texts = [dedent(text).strip() for text, _ in programs]
    found = patching.ask(texts).value
    for text, (_, expected), got in zip(texts, programs, found, strict=True):
        compared(got)
        if got != expected:
            rows = ("on", text), ("expected notes", repr(expected)), ("got", repr(got))
            raise Mismatch("Something else was noted.", (*rows, ("where", HELPERS)))


@gate
def test_replaces(patching):
    """A call of the operator becomes a call of the kernel."""
    program = """
        with patched(aten.sin.default, "CPU", lambda original, x: x + 1):
            note(x.sin().tolist())
    """
    compare(patching, [(program, [[1.0, 2.0]])])


@points(4)
def test_original(patching):
    """`original` runs the kernel that was there, with the arguments that it is given."""
    same = """
        expected = x.sin()
        with patched(aten.sin.default, "CPU", noting("sin")):
            note(torch.equal(x.sin(), expected))
    """
    other = """
        expected = (x * 2).sin().sin()
        with patched(aten.sin.default, "CPU", lambda original, x: original(original(x * 2))):
            note(torch.equal(x.sin(), expected))
    """
    named = """
        with patched(aten.add.Tensor, "CPU", noting("add")):
            note(torch.add(x, x, alpha=2).tolist())
    """
    out = """
        y = torch.empty(2)
        with patched(aten.add.out, "CPU", noting("out")):
            note(torch.add(x, x, out=y) is y)
        note(y.tolist())
    """
    in_place = """
        with patched(aten.add_.Tensor, "CPU", noting("add_")):
            note(x.add_(x) is x)
        note(x.tolist())
    """
    several = """
        with patched(aten.max.dim, "CPU", noting("max")):
            values, places = torch.max(x, 0)
        note([values.item(), places.item()])
    """
    listed = """
        with patched(aten.cat.default, "CPU", noting("cat")):
            note(torch.cat([x, x]).tolist())
    """
    own = """
        with patched(halved.default, "CPU", noting("halved")):
            note(halved(x).tolist())
    """
    compare(
        patching,
        [
            (same, ["sin", True]),
            (other, [True]),
            (named, ["add", [0.0, 3.0]]),
            (out, ["out", True, [0.0, 2.0]]),
            (in_place, ["add_", True, [0.0, 2.0]]),
            (several, ["max", [1.0, 1]]),
            (listed, ["cat", [0.0, 1.0, 0.0, 1.0]]),
            (own, ["halved", [0.0, 0.5]]),
        ],
    )


@points(2)
def test_key(patching):
    """Only calls that come to the key: other keys and other overloads are as they were."""
    meta = """
        with patched(aten.sin.default, "CPU", noting("sin")):
            torch.empty(2, device="meta").sin()
            note("meta")
    """
    overload = """
        with patched(aten.sin.default, "CPU", noting("sin")):
            torch.sin(x, out=torch.empty(2))
            note("out")
    """
    autograd = """
        with patched(aten.sin.default, "AutogradCPU", noting("sin")):
            with torch.inference_mode():
                x.sin()
            note("inference mode")
            with torch.no_grad():
                x.sin()
    """
    gradient = """
        x.requires_grad_()
        with patched(aten.sin.default, "AutogradCPU", noting("autograd")):
            with patched(aten.sin.default, "CPU", noting("cpu")):
                y = x.sin()
        y.sum().backward()
        note(torch.equal(x.grad, x.cos()))
    """
    compare(
        patching,
        [
            (meta, ["meta"]),
            (overload, ["out"]),
            (autograd, ["inference mode", "sin"]),
            (gradient, ["autograd", "cpu", True]),
        ],
    )


def test_keys_in_progress(patching):
    """`original` goes on from where the call is, with its keys: those of this call, not of another."""
    two_layouts = """
        with patched(aten.sin.default, "AutogradCPU", noting("sin")):
            dense, sparse = x.sin(), x.to_sparse().sin()
        note(torch.equal(dense, sparse.to_dense()))
    """
    from_below = """
        cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        with patched(aten.sin.default, "AutogradCPU", noting("autograd")):
            with patched(aten.sin.default, "CPU", noting("cpu")):
                aten.sin.default.redispatch(cpu, x)
    """
    compare(patching, [(two_layouts, ["sin", "sin", True]), (from_below, ["cpu"])])


@points(2)
def test_nested(patching):
    """A second `patched` at the same place stands in front of the first, until it ends."""
    two = """
        with patched(aten.sin.default, "CPU", noting("outer")):
            with patched(aten.sin.default, "CPU", noting("inner")):
                x.sin()
            note("one has ended")
            x.sin()
    """
    same = """
        first = patched(aten.sin.default, "CPU", noting("outer"))
        second = patched(aten.sin.default, "CPU", noting("inner"))
        with first, second:
            x.sin()
    """
    different = """
        with patched(aten.sin.default, "CPU", noting("sin")):
            with patched(aten.cos.default, "CPU", lambda original, x: original(x.sin())):
                note(x.cos().tolist()[0])
            x.sin()
            note(torch.equal(x.cos(), torch.cos(x)))
    """
    compare(
        patching,
        [
            (two, ["inner", "outer", "one has ended", "outer"]),
            (same, ["inner", "outer"]),
            (different, ["sin", 1.0, "sin", True]),
        ],
    )


@points(2)
def test_gone(patching):
    """After the `with` the table is what it was, and an exception goes on."""
    ended = """
        with patched(aten.sin.default, "CPU", noting("sin")):
            pass
        note(unchanged())
        x.sin()
    """
    raised = """
        try:
            with patched(aten.sin.default, "CPU", noting("sin")):
                raise OSError
        except OSError:
            note("went on")
            note(unchanged())
    """
    by_kernel = """
        def kernel(original, x):
            raise OSError

        try:
            with patched(aten.sin.default, "CPU", kernel):
                x.sin()
        except OSError:
            note("went on")
            note(unchanged())
    """
    nested = """
        with patched(aten.sin.default, "CPU", noting("outer")):
            with suppress(OSError), patched(aten.sin.default, "CPU", noting("inner")):
                raise OSError
            x.sin()
        note(unchanged())
    """
    again = """
        for _ in range(2):
            with patched(halved.default, "CPU", noting("halved")):
                halved(x)
            note(unchanged())
    """
    compare(
        patching,
        [
            (ended, [True]),
            (raised, ["went on", True]),
            (by_kernel, ["went on", True]),
            (nested, ["outer", True]),
            (again, ["halved", True, "halved", True]),
        ],
    )


def test_everywhere(patching):
    """Calls from other threads and from inside PyTorch come to the kernel too."""
    thread = """
        with patched(aten.sin.default, "CPU", noting("sin")):
            in_thread(lambda: x.sin())
    """
    backward = """
        x.requires_grad_()
        with patched(aten.cos.default, "CPU", noting("cos")):
            x.sin().sum().backward()
    """
    composite = """
        with patched(aten.addmm.default, "CPU", noting("addmm")):
            nn.Linear(2, 3)(x[None])
    """
    compare(patching, [(thread, ["sin"]), (backward, ["cos"]), (composite, ["addmm"])])


def test_not_before(patching):
    """Nothing changes before the `with` begins."""
    program = """
        patch = patched(aten.sin.default, "CPU", noting("sin"))
        x.sin()
        note(unchanged())
        with patch:
            x.sin()
    """
    compare(patching, [(program, [True, "sin"])])
