# %% mistake: no_fake_kernel
# You register no fake kernel. While a graph is made there are no values, and nobody knows what
# your operator returns.
import torch  # noqa: E402


def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: promises_the_strides_of_x
# Your fake kernel promises the strides of `x`, as `torch.empty_like` does. The operator returns a
# contiguous tensor. For a transposed `x` these differ, and code that was compiled from the promise
# reads the wrong elements.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return torch.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: promises_float32
# Your fake kernel promises the default dtype. Take that of `x`, for instance by `x.new_empty`.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return torch.empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: keeps_the_strides_of_x
# Your operator returns a tensor with the strides of `x`: `clone` keeps them. The result should be
# contiguous.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone()
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return torch.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: no_backward
# You register no backward. The operator works, and a gradient stops at it with an error.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    return smooth


# %% mistake: backward_downwards
# Your backward filters from the first row to the last, as the forward does. Row t of the input has
# an effect on the rows after it, so its gradient comes from there: go from the last row to the
# first.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad, ctx.keep), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: saves_x
# You save `x` for the backward and never need it. It stays in memory until the backward has run.
# The filter is linear: `keep` is enough.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: hides_x_in_ctx
# You keep `x` as an attribute of `ctx`. That holds it in memory as `save_for_backward` does, and autograd
# does not even know of it: hooks on saved tensors, such as those that offload them, pass it by.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.x, ctx.keep = inputs

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: changes_x
# Your operator works in place, and declares that it changes nothing. The graph is made by that
# declaration: whoever reads `x` afterwards may get the old values or the new ones.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result.clone(memory_format=torch.contiguous_format)

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: returns_x
# You return `x` itself where there is nothing to do, for one row or none. An operator must never
# return its input or a view of it: return a copy.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        if len(x) < 2:
            return x
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0), None

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: one_gradient
# Your backward returns one value. There is one for each input of the operator: `None` for `keep`.
def make_smooth():
    @torch.library.custom_op("undertorch::smooth", mutates_args=())
    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        result = x.clone(memory_format=torch.contiguous_format)
        for at in range(1, len(result)):
            result[at] += keep * result[at - 1]
        return result

    @smooth.register_fake
    def promise(x, keep):
        return x.new_empty(x.shape)

    def setup(ctx, inputs, output):
        ctx.keep = inputs[1]

    def backward(ctx, grad):
        return smooth(grad.flip(0), ctx.keep).flip(0)

    smooth.register_autograd(backward, setup_context=setup)
    return smooth


# %% mistake: a_function_only
# You return an ordinary function. It computes the right thing, but Dynamo looks inside, and its
# loop becomes as many nodes as there are rows.
def make_smooth():
    def smooth(x, keep):
        rows = [x[0]] if len(x) else []
        for row in x[1:]:
            rows.append(row + keep * rows[-1])
        return torch.stack(rows) if rows else x.clone(memory_format=torch.contiguous_format)

    return smooth


# %% alternate: matrix_product
# The filter as a matrix of powers of `keep`: result = powers @ x, gradient = powers.T @ grad.
def make_smooth():
    def powers(x, keep):
        at = torch.arange(x.shape[0], dtype=x.dtype)
        distance = at[:, None] - at[None, :]
        return torch.where(distance >= 0, keep ** distance.clamp(min=0), 0.0).to(x.dtype)

    def smooth(x: torch.Tensor, keep: float) -> torch.Tensor:
        return (powers(x, keep) @ x).contiguous()

    op = torch.library.custom_op("undertorch::smooth", smooth, mutates_args=())
    op.register_fake(lambda x, keep: torch.empty(x.shape, dtype=x.dtype, device=x.device))

    def setup(ctx, inputs, output):
        _, ctx.keep = inputs

    op.register_autograd(
        lambda ctx, grad: (powers(grad, ctx.keep).t() @ grad, None), setup_context=setup
    )
    return op


# %% alternate: low_level
# Registered piece by piece, and the filter runs on lists of Python numbers.
def filtered_rows(x, keep):
    rows, last = [], [0.0] * x.shape[1]
    for row in x.tolist():
        last = [keep * before + now for before, now in zip(last, row, strict=True)]
        rows.append(last)
    return torch.tensor(rows, dtype=x.dtype).reshape(x.shape)


def make_smooth():
    name = "undertorch::smooth"
    torch.library.define(name, "(Tensor x, float keep) -> Tensor")
    torch.library.impl(name, "CPU", filtered_rows)
    torch.library.register_fake(
        name, lambda x, keep: torch.empty(x.shape, dtype=x.dtype, device=x.device)
    )

    def setup(ctx, inputs, output):
        _, ctx.keep = inputs

    def backward(ctx, grad):
        upside_down = torch.ops.undertorch.smooth(grad.flip([0]), ctx.keep)
        return upside_down.flip([0]), None

    torch.library.register_autograd(name, backward, setup_context=setup)
    return torch.ops.undertorch.smooth.default
