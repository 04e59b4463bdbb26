# %% blocked: builtin_sync
# The built-in is what you are asked to build.
class SyncBatchNorm(nn.SyncBatchNorm):
    pass


# %% mistake: own_rows_only
# You normalise each rank with its own rows. That is an ordinary BatchNorm.
class SyncBatchNorm(nn.BatchNorm1d):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__(features, eps, momentum)

    def _check_input_dim(self, x):
        pass


# %% mistake: plain_all_reduce
# Your all-reduce is invisible to autograd. The outputs are right, and each rank's gradients leave
# out what its rows do to the outputs of the others. Write a `torch.autograd.Function` with a
# backward that sums, too.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: constants_in_backward
# You treat mean and variance as constants. A row moves the mean that is subtracted from it and from
# all others: gradients must go through both.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        mean, var = (mean.detach(), var.detach())
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: mean_in_backward
# Your backward averages over ranks. The forward is a sum, and so is its backward.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: mean_of_means
# You average the means of the ranks. A rank with two rows then counts as much as one with five. Sum
# values and counts.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            count = x.new_tensor([x.numel() // x.shape[1]])
            dist.all_reduce(count)
            mean = SumOverRanks.apply(x.sum(across) * x.shape[1] / max(x.numel(), 1))
            mean = mean / dist.get_world_size()
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: mean_of_variances
# You average the variances of the ranks, each around its own mean. How far the means lie apart is
# missing. Sum the squares of the distances from the mean of all.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (
                (x - x.sum(across, keepdim=True) * x.shape[1] / max(x.numel(), 1))
                .square()
                .sum(across)
            )
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: mean_of_squares
# You compute the variance as the mean of the squares minus the square of the mean. Around 1000 both
# are near a million, and float32 has 24 bits: the difference is mostly rounding error. Subtract
# first, square then.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            var = SumOverRanks.apply(x.square().sum(across)) / count - mean.square()
            var = var.clamp(min=0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: biased_running_var
# Your running variance takes the biased one. In evaluation there is no batch: it should estimate
# the variance of all data, with one less in the denominator.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: local_count
# You correct the variance by this rank's number of values. It is the number of all ranks that
# counts, and with a single row you divide by zero.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * own / (own - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: unbiased_in_training
# You normalise with the unbiased variance. That one is for the running statistics. The batch itself
# is divided by its number of values.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / (count - 1)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: momentum_turned_round
# You keep a share of `momentum` of the old statistics. In torch, `momentum` is the share of the new
# ones.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, 1 - self.momentum)
                self.running_var.lerp_(var * count / (count - 1), 1 - self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: talks_in_evaluation
# In evaluation you still sum over ranks. A rank that evaluates alone would wait for ever, and the
# running statistics are there to be used.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        dist.barrier()
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: batch_statistics_in_evaluation
# In evaluation you normalise with the batch. Then a row's output depends on the rows beside it.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if True:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad() if self.training else torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: gathers_the_batch
# You gather the rows of all ranks and normalise all of them, on every rank. It is right, and it
# sends the whole batch where two numbers per feature are enough.
class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rows = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, torch.tensor([float(len(x))]))
        ctx.rows = [int(n) for n in rows]
        longest = max(ctx.rows)
        padded = x.new_zeros(longest, *x.shape[1:])
        padded[: len(x)] = x
        parts = [torch.empty_like(padded) for _ in rows]
        dist.all_gather(parts, padded)
        return torch.cat([part[:n] for part, n in zip(parts, ctx.rows)])

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad.split(ctx.rows)[dist.get_rank()]


class SyncBatchNorm(nn.BatchNorm1d):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__(features, eps, momentum)

    def forward(self, x):
        if not self.training:
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias
            )
        rows = Gather.apply(x)
        normal = nn.functional.batch_norm(
            rows, self.running_mean, self.running_var, None, None, True, self.momentum, self.eps
        )
        sizes = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(sizes, torch.tensor([float(len(x))]))
        mine = normal.split([int(n) for n in sizes])[dist.get_rank()]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        return mine * self.weight.view(column) + self.bias.view(column)


# %% mistake: leaves_early
# A rank without rows returns at once. The others still wait for its sums. Contribute zeros.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        if x.numel() == 0:
            return x
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)
        return normal * self.weight.view(column) + self.bias.view(column)


# %% mistake: sums_parameter_gradients
# You sum the gradients of `weight` and `bias` over ranks. DDP averages them afterwards: they come
# out too large by the number of ranks.
class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = (eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        across = [dim for dim in range(x.dim()) if dim != 1]
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        mean, var = (self.running_mean, self.running_var)
        if self.training:
            own = x.new_tensor([x.numel() // x.shape[1]])
            *sums, count = SumOverRanks.apply(torch.cat([x.sum(across), own]))
            mean = torch.stack(sums) / count
            squares = (x - mean.view(column)).square().sum(across)
            var = SumOverRanks.apply(squares) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        normal = (x - mean.view(column)) / (var + self.eps).sqrt().view(column)

        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, p):
                return p.clone()

            @staticmethod
            def backward(ctx, grad):
                total = grad.clone()
                dist.all_reduce(total)
                return total

        weight, bias = (self.weight, self.bias)
        if self.training:
            weight, bias = (Same.apply(weight), Same.apply(bias))
        return normal * weight.view(column) + bias.view(column)


# %% alternate: by_hand
# Counts, means and sums of squares are gathered and merged; backward is a formula.
class Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean, invstd, count):
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        normal = (x - mean.view(column)) * invstd.view(column)
        ctx.save_for_backward(normal, invstd)
        ctx.count = count
        return normal

    @staticmethod
    def backward(ctx, grad):
        normal, invstd = ctx.saved_tensors
        column = [-1 if dim == 1 else 1 for dim in range(grad.dim())]
        across = [dim for dim in range(grad.dim()) if dim != 1]
        both = torch.stack([grad.sum(across), (grad * normal).sum(across)])
        dist.all_reduce(both)
        first, second = (both / ctx.count).unbind()
        out = grad - first.view(column) - normal * second.view(column)
        return (out * invstd.view(column), None, None, None)


class SyncBatchNorm(nn.Module):
    def __init__(self, features, eps=1e-05, momentum=0.1):
        super().__init__()
        self.features, self.eps, self.momentum = (features, eps, momentum)
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        column = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        if not self.training:
            invstd = torch.rsqrt(self.running_var + self.eps)
            normal = (x - self.running_mean.view(column)) * invstd.view(column)
            return torch.addcmul(self.bias.view(column), normal, self.weight.view(column))
        with torch.no_grad():
            rows = x.transpose(0, 1).flatten(1)
            n = rows.shape[1]
            mean = rows.mean(1) if n else rows.new_zeros(self.features)
            m2 = (rows - mean[:, None]).square().sum(1)
            mine = torch.cat([mean, m2, mean.new_tensor([n])])
            parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, mine)
            count, mean, m2 = (0.0, torch.zeros_like(mean), torch.zeros_like(m2))
            for part in parts:
                other, other_m2, k = (
                    part[: self.features],
                    part[self.features : -1],
                    float(part[-1]),
                )
                if k:
                    delta, both = (other - mean, count + k)
                    mean = mean + delta * k / both
                    m2 = m2 + other_m2 + delta.square() * count * k / both
                    count = both
            self.running_mean.mul_(1 - self.momentum).add_(mean, alpha=self.momentum)
            self.running_var.mul_(1 - self.momentum).add_(m2 / (count - 1), alpha=self.momentum)
        normal = Normalise.apply(x, mean, torch.rsqrt(m2 / count + self.eps), count)
        return normal * self.weight.view(column) + self.bias.view(column)
