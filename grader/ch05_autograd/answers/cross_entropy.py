# %% blocked: the_built_in
# That is the finished loss. Write the Function that it could be made of.
def cross_entropy(logits, target):
    return nn.functional.cross_entropy(logits, target)


# %% mistake: saves_the_probabilities
# Your `forward` computes the probabilities and saves them, or keeps them on `ctx`. In the second
# derivative they are then constants, so it lacks all that matters, and they are as large as the
# logits. Compute them from the logits in `backward`.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward((logits - log_sum_exp(logits)).exp(), target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        probabilities, target = ctx.saved_tensors
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(target), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: saves_the_sum
# You save the logarithm of the sum that `forward` computed. It is small, but in the second derivative
# it is a constant, and the part of the derivative that goes through it is missing.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target, log_sum_exp(logits))
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target, total = ctx.saved_tensors
        probabilities = (logits - total).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: overflows
# You take the exponential of the logits as they are. In float32 it is infinite from 89 on. Take the
# largest logit of each row out of the sum first.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    return logits.exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: log_of_the_probability
# You take the logarithm of a probability. Of a class that is far below the largest it is 0 in float32, and its
# logarithm minus infinity. Take the logarithm of the sum, and the logit as it is.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        terms = (logits - logits.amax(1, keepdim=True)).exp()
        probabilities = terms / terms.sum(1, keepdim=True)
        return -probabilities.gather(1, target[:, None]).log().mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        terms = (logits - logits.amax(1, keepdim=True)).exp()
        probabilities = terms / terms.sum(1, keepdim=True)
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: one_maximum_for_all_rows
# You subtract the largest logit of the whole batch. In a row that lies far below it every exponential
# is 0, and its logarithm minus infinity. Each row needs its own.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax().detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: adds_an_epsilon
# You add a small number under the logarithm. That keeps infinity away and changes the answer: a
# probability of 1e-30 is a loss of 69, not one of 27.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        probabilities = probability(logits)
        return -(probabilities.gather(1, target[:, None]) + 1e-12).log().mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = probability(logits)
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def probability(logits):
    top = logits.amax(1, keepdim=True).detach()
    weights = (logits - top).exp()
    return weights / weights.sum(1, keepdim=True)


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: forgets_the_incoming_gradient
# Your `backward` does not use the gradient that comes in. It is 1 only if this loss is all there is;
# multiply by it.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: gradient_of_the_sum
# Your loss is a mean, and your gradient that of a sum: divide by the number of rows in `backward`
# too.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: one_hot_times_logits
# You multiply the logits by a one-hot row. Where a logit is minus infinity, that is 0 times infinity,
# and NaN. Pick the target with `gather`.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (
            log_sum_exp(logits)
            - (logits * nn.functional.one_hot(target, logits.shape[1])).sum(1, keepdim=True)
        ).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% mistake: ordinary_operations
# This is right, and the graph keeps the exponentials, as large as the logits. A Function of your own
# saves the two inputs and computes the rest once more.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()


# %% mistake: once_differentiable
# You marked `backward` as once differentiable, or computed it under `no_grad`. Then nobody can
# differentiate it again.
class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (log_sum_exp(logits) - logits.gather(1, target[:, None])).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        probabilities = (logits - log_sum_exp(logits)).exp()
        hit = torch.zeros_like(probabilities).scatter(1, target[:, None], 1.0)
        return grad * (probabilities - hit) / len(logits), None


def log_sum_exp(logits):
    top = logits.amax(1, keepdim=True).detach()
    return top + (logits - top).exp().sum(1, keepdim=True).log()


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)


# %% alternate: a_function_for_the_gradient
# The gradient is a Function too, with a formula of its own for the second derivative.
class Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, grad):
        ctx.save_for_backward(logits, target, grad)
        weights = (logits - logits.max(1, keepdim=True).values).exp()
        p = weights / weights.sum(1, keepdim=True)
        p[torch.arange(len(p)), target] -= 1
        return p * (grad / len(p))

    @staticmethod
    def backward(ctx, direction):
        logits, target, grad = ctx.saved_tensors
        weights = (logits - logits.max(1, keepdim=True).values).exp()
        p = weights / weights.sum(1, keepdim=True)
        along = (p * direction).sum(1, keepdim=True)
        by_logits = p * (direction - along) * (grad / len(p))
        at_target = direction.gather(1, target[:, None])
        return by_logits, None, (along - at_target).mean()


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        top, _ = logits.max(1)
        rows = torch.arange(len(top))
        return ((logits - top[:, None]).exp().sum(1).log() + top - logits[rows, target]).mean()

    @staticmethod
    def backward(ctx, grad):
        return Gradient.apply(*ctx.saved_tensors, grad), None


def cross_entropy(logits, target):
    return Loss.apply(logits, target)


# %% alternate: autograd_inside
# Backward builds the ordinary graph once more and differentiates that.
def plain(logits, target):
    picked = logits.gather(1, target.unsqueeze(1))
    top = logits.amax(1, keepdim=True)
    return ((logits - top).exp().sum(1, keepdim=True).log() - (picked - top)).mean()


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return plain(logits, target)

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        with torch.enable_grad():
            loss = plain(logits, target)
        (gradient,) = torch.autograd.grad(loss, logits, grad, create_graph=torch.is_grad_enabled())
        return gradient, None


def cross_entropy(logits, target):
    return CrossEntropy.apply(logits, target)
