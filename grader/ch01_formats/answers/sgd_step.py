# %% blocked: builtin_optimizer
# The optimiser on a float32 copy does the step that the exercise asks you to write.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float() if state is None else state
    master.grad = grad.float()
    torch.optim.SGD([master], lr=lr).step()
    weight.copy_(master)
    return master.detach()


# %% mistake: stalls
# The update is lost when the weight is stored: `1 - 0.0006` rounds back to 1 in bfloat16, at every
# step anew, in whatever precision you compute it. Keep what was rounded off in `state`.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    weight.copy_(weight.float() - lr * grad.float())
    return None


# %% mistake: new_master_every_step
# You make the float32 copy anew from the weight at every call, and so it is as coarse as the
# weight. Make it once, when `state` is None; after that go on with the copy you returned.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float()
    master -= lr * grad.float()
    weight.copy_(master)
    return master


# %% mistake: bf16_master
# Your copy is in bfloat16. It loses the update just as the weight does. The copy must be finer than
# what it is a copy of: float32 is, and still fits into four bytes.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.clone() if state is None else state
    master = master - lr * grad
    weight.copy_(master)
    return master


# %% mistake: half_master
# Your copy is in float16. It has three bits more than bfloat16, too few for small updates, and its
# range is narrow: a weight of a million becomes infinite, one of a millionth almost nothing.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.half() if state is None else state
    master = master - (lr * grad.float()).half()
    weight.copy_(master)
    return master


# %% mistake: master_not_written_back
# The master copy learns, and the weight never hears of it. After each step round the copy into the
# weight: `weight.copy_(master)`.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float() if state is None else state
    return master - lr * grad.float()


# %% mistake: adds_what_is_owed_twice
# You add up updates and never take off what the weight has already received, so each update counts
# again in every later step. After writing the weight, what remains owed is what you wanted minus
# what was stored.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    owed = torch.zeros_like(weight, dtype=torch.float32) if state is None else state
    owed = owed - lr * grad.float()
    weight.copy_(weight.float() + owed)
    return owed


# %% mistake: compensation_sign
# Your compensation has the wrong sign. If the weight was stored too large, the difference must be
# taken off the next time: owed is wanted minus stored, and it is added.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    owed = torch.zeros_like(weight, dtype=torch.float32) if state is None else state
    wanted = weight.float() - lr * grad.float() - owed
    weight.copy_(wanted)
    return wanted - weight.float()


# %% mistake: ascends
# Your weights run uphill: the step goes against the gradient, `w - lr * g`.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float() if state is None else state
    master = master + lr * grad.float()
    weight.copy_(master)
    return master


# %% mistake: stochastic
# You round at random with the right chances. That is right on average, but the single weight takes
# a random walk of several steps around its goal. The task asks each weight to stay within one.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    bits = (weight.float() - lr * grad.float()).view(torch.int32)
    noise = torch.randint(0, 65536, bits.shape, dtype=torch.int32)
    upper = (bits + noise) >> 16
    weight.copy_(upper.to(torch.int16).view(torch.bfloat16))
    return None


# %% mistake: state_elsewhere
# You keep the precise weight outside of `state`. Then two weights share one copy, and a run that
# goes on from a checkpoint has lost it. Return it, and take it from `state` the next time.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    if state is None:
        sgd_step.master = weight.float()
    sgd_step.master = sgd_step.master - lr * grad.float()
    weight.copy_(sgd_step.master)
    return torch.ones_like(weight)


# %% mistake: replaces_the_memory
# You hand the weight new memory through `.data` instead of writing into the old. Views of the
# weight, and buffers that several weights share, keep the old values. `copy_` writes in place.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float() if state is None else state
    master = master - lr * grad.float()
    weight.data = master.to(torch.bfloat16)
    return master


# %% mistake: changes_the_gradient
# You scale the gradient in place. It is not yours: whoever reads it after the step, to log its norm
# for instance, finds another one.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    master = weight.float() if state is None else state
    master = master - grad.mul_(lr)
    weight.copy_(master)
    return master


# %% alternate: kahan_in_bf16
# Kahan's sum with everything in bfloat16, the buffer too: two bytes of state per weight.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    owed = torch.zeros_like(weight) if state is None else state
    update = owed - lr * grad
    before = weight.clone()
    weight += update
    return update - (weight - before)


# %% alternate: exact_debt
# The weight owes the rest, in float32.
@torch.no_grad()
def sgd_step(weight, grad, lr, state):
    wanted = weight.float() - lr * grad.float()
    if state is not None:
        wanted = wanted + state
    weight.copy_(wanted)
    return wanted - weight


# %% alternate: lower_half
# The weight is the upper half of a float32, the state its lower half: together they are the master
# copy, in four bytes rather than six.
def sgd_step(weight, grad, lr, state):
    data = weight.detach()
    lower = 0 if state is None else state.to(torch.int32)
    master = ((data.contiguous().view(torch.int16).to(torch.int32) << 16) + lower).view(
        torch.float32
    )
    bits = (master - lr * grad.float()).view(torch.int32)
    upper = (bits + 0x8000) >> 16
    data.copy_(upper.to(torch.int16).view(torch.bfloat16))
    return (bits - (upper << 16)).to(torch.int16)


# %% alternate: master_in_place
# One master copy, changed in place, as mixed-precision optimisers do.
def sgd_step(weight, grad, lr, state):
    if state is None:
        state = weight.detach().to(torch.float32, copy=True)
    state.sub_(grad, alpha=lr)
    weight.data.copy_(state)
    return state


# %% alternate: trusts_the_caller
# Without a decorator: the statement says that autograd is off.
def sgd_step(weight, grad, lr, state=None):
    state = (weight.float() if state is None else state) - lr * grad.float()
    weight[...] = state
    return state
