# %% blocked: torchs_own
# This is the module that you are asked to build.
class BatchNorm(nn.BatchNorm2d):
    def _check_input_dim(self, x):
        pass


# %% blocked: the_function
# `F.batch_norm` does all of it: the statistics, the normalising and the running values.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training
        )


# %% mistake: unbiased_everywhere
# You normalise with the unbiased variance. It is kept for later; the batch itself is divided by
# the root of its biased variance, so that it comes out with a variance of one.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0) * count / (count - 1 or 1)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach())
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: biased_everywhere
# You keep the biased variance. It is too small for numbers not yet seen, by a factor of n / (n -
# 1): the running variance wants the unbiased one.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach())
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: momentum_of_the_old
# You take `momentum` for the weight of the old value, as optimisers do. Here it is the weight of
# the new one.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        momentum = 1 - momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: average_counts_late
# With `momentum=None` you divide by the count before this batch. Count it first: the first batch
# has the weight 1, the second one half.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / max(self.num_batches_tracked.item() - 1, 1)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: momentum_none_is_default
# With `momentum=None` you go on with 0.1. It asks for the average of all batches.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 0.1
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: zero_is_none
# You ask whether `momentum` is true. A momentum of 0.0 is false, and means that nothing moves;
# only `None` asks for the average.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if not momentum:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: batch_in_evaluation
# In evaluation you still look at the batch. What a model says of one input then depends on the
# others beside it.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if False:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: keeps_in_evaluation
# In evaluation you still move the running statistics. Validation data leaks into the model that
# way.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean.clone(), self.running_var.clone()
            count, dims = x.numel() // x.shape[1], [dim for dim in range(x.dim()) if dim != 1]
            self._keep(
                x.mean(dims).detach(),
                x.var(dims, correction=0).detach() * count / max(count - 1, 1),
            )
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: eps_outside
# You add eps to the standard deviation. It belongs to the variance, under the root.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * 1 / (variance.reshape(shape).sqrt() + self.eps)
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: constants_for_gradients
# You detach mean and variance. They depend on the input, and a part of its gradient goes through
# them: without it each input can push its own channel's mean.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.detach().mean(dims), x.detach().var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: refuses_only_where_it_keeps
# You refuse single numbers only where there are running statistics. In training the batch alone is
# used in any case, and a single number minus itself is zero, whatever it was.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and self.running_mean is not None and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: arguments_in_another_order
# Your constructor takes its arguments in another order. By name all is well; who writes
# `BatchNorm(8, 1e-5, 0.1, False)` gets another norm.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True, affine=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: keeps_the_graph
# Your running statistics are computed with gradients. Each holds the graph of its batch and of all
# before: memory grows with every step. Keep them under `torch.no_grad()`, or detach.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean, variance * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean = (1 - momentum) * self.running_mean + momentum * mean
        self.running_var = (1 - momentum) * self.running_var + momentum * variance


# %% mistake: each_image_by_itself
# You take the mean over the space of each image. That is instance norm. Batch norm takes the
# batch's dimension too.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim > 1] or [0]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if x.dim() > 2:
                y = (x - x.mean(dims, keepdim=True)) / (
                    x.var(dims, correction=0, keepdim=True) + self.eps
                ).sqrt()
                mean, variance = mean.mean(0), variance.mean(0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        if x.dim() == 2 or (not self.training and self.running_mean is not None):
            y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% mistake: plain_attributes
# You keep the running statistics as ordinary tensors. They are in no checkpoint, and `double()`
# leaves them behind. Register buffers.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            setattr(self, name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            if self.training and count <= 1:
                raise ValueError(f"one number per channel has no variance: {tuple(x.shape)}")
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / (count - 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean = self.running_mean.to(mean).lerp(mean, momentum)
        self.running_var = self.running_var.to(variance).lerp(variance, momentum)


# %% mistake: single_numbers_pass
# You let a single number per channel through. Its variance is zero, the output is the bias
# whatever the input was, and n / (n - 1) divides by zero. Raise a `ValueError`.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register_parameter(
            "weight", nn.Parameter(torch.ones(num_features)) if affine else None
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)) if affine else None)
        kept = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, first in kept.items():
            self.register_buffer(name, first if track_running_stats else None)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            count = x.numel() // x.shape[1]
            dims = [dim for dim in range(x.dim()) if dim != 1]
            mean, variance = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.running_mean is not None:
                self._keep(mean.detach(), variance.detach() * count / max(count - 1, 1))
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (x - mean.reshape(shape)) * (variance.reshape(shape) + self.eps).rsqrt()
        if self.weight is not None:
            y = y * self.weight.reshape(shape) + self.bias.reshape(shape)
        return y

    @torch.no_grad()
    def _keep(self, mean, variance):
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


# %% alternate: by_moments
# The variance as the mean of squares of what is left, channels moved to the end.
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        if affine:
            self.weight = nn.Parameter(torch.ones(num_features))
            self.bias = nn.Parameter(torch.zeros(num_features))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        tracked = track_running_stats
        self.register_buffer("running_mean", torch.zeros(num_features) if tracked else None)
        self.register_buffer("running_var", torch.ones(num_features) if tracked else None)
        count = torch.zeros((), dtype=torch.long) if tracked else None
        self.register_buffer("num_batches_tracked", count)

    def forward(self, x):
        flat = x.movedim(1, -1)
        rows = flat.reshape(-1, flat.shape[-1])
        n = rows.shape[0]
        tracks = self.running_mean is not None
        if self.training and n < 2:
            raise ValueError("too few")
        if self.training or not tracks:
            mean = rows.sum(0) / n
            var = ((rows - mean) ** 2).sum(0) / n
        else:
            mean, var = self.running_mean, self.running_var
        if self.training and tracks:
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                m = self.momentum
                m = 1.0 / float(self.num_batches_tracked) if m is None else m
                self.running_mean.mul_(1 - m).add_(mean * m)
                self.running_var.mul_(1 - m).add_(((rows - mean) ** 2).sum(0) / (n - 1) * m)
        y = (flat - mean) / torch.sqrt(var + self.eps)
        if self.weight is not None:
            y = torch.addcmul(self.bias, y, self.weight)
        return y.movedim(-1, 1)
