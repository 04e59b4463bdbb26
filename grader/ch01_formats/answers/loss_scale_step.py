# %% blocked: builtin_scaler
# The built-in follows the rule that the exercise asks you to write.
def loss_scale_step(grads, scale, streak, interval):
    skip = not all(bool(grad.isfinite().all()) for grad in grads)
    scales, count = torch.tensor(scale), torch.tensor(streak, dtype=torch.int32)
    torch._amp_update_scale_(
        scales, count, torch.tensor(float(skip)), {{grow}}, 1 / {{shrink}}, interval
    )
    return None if skip else [grad.float() / scale for grad in grads], float(scales), int(count)


# %% mistake: unscales_in_float16
# You divide in float16, and the gradients that the scale has saved underflow after all. Convert to
# float32 first, then divide.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [(grad / scale).float() for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: unscales_with_the_next_scale
# You change the scale first and divide by the new one. These gradients were made with the old one;
# in every step that makes the scale grow they come out {{grow}} times too small.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    streak += 1
    if streak == interval:
        scale, streak = scale * {{grow}}, 0
    return [grad.float() / scale for grad in grads], scale, streak


# %% mistake: never_unscales
# You hand back the gradients as they came, multiplied by the scale. The optimiser would take steps
# thousands of times too large.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: looks_at_the_sum
# You look at the sum of the gradients. It overflows when many are large and none is infinite, and
# good steps are thrown away. Look at each element.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.sum().isfinite()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: overlooks_nan
# You look for infinities alone. Inside a backward pass `inf - inf` and `0 * inf` give NaN; a step
# with a NaN destroys the weights for good.
def loss_scale_step(grads, scale, streak, interval):
    if any(bool(grad.isinf().any()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: looks_at_the_first
# You look at the first gradient only. An overflow anywhere spoils the step: the other gradients
# come from the same backward pass.
def loss_scale_step(grads, scale, streak, interval):
    if not bool(grads[0].isfinite().all()):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: repairs_the_gradients
# You replace infinities and NaN by zeros and go on. Then some weights take the step and others do
# not, in a direction that is no gradient. Skip the whole step.
def loss_scale_step(grads, scale, streak, interval):
    good = all(bool(grad.isfinite().all()) for grad in grads)
    unscaled = [torch.nan_to_num(grad.float(), 0.0, 0.0, 0.0) / scale for grad in grads]
    if not good:
        return unscaled, scale / {{shrink}}, 0
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: grows_one_late
# You do not count the present step, so the scale grows one step late. With interval 3 the third
# good step in a row makes it grow: the one that begins with streak 2.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: keeps_the_streak
# After an overflow you go on counting where you were. The count means good steps in a row: an
# overflow sets it back to zero.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, streak
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: grows_ever_after
# After the scale has grown you do not set the count back. The next steps count from there, and the
# rhythm is lost.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 >= interval:
        return unscaled, scale * {{grow}}, streak + 1
    return unscaled, scale, streak + 1


# %% mistake: skips_without_backing_off
# You skip the step and keep the scale. It is still too large, so the next step overflows too, and
# the one after that: the training stands still. Divide it by {{shrink}}.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: looks_at_the_last
# You look at the last gradient only, or each one overwrites what the one before it said. An overflow
# anywhere spoils the step: the other gradients come from the same backward pass.
def loss_scale_step(grads, scale, streak, interval):
    for grad in grads:
        good = bool(grad.isfinite().all())
    if not good:
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: overlooks_minus_infinity
# You look for plus infinity and NaN. Gradients have both signs, and overflow on both sides:
# `torch.isfinite` is false for all three.
def loss_scale_step(grads, scale, streak, interval):
    if any(bool((grad == math.inf).any()) or bool(grad.isnan().any()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: grows_every_step
# You let the scale grow after every good step. It would overflow every few steps; wait for
# `interval` good steps in a row.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    return [grad.float() / scale for grad in grads], scale * {{grow}}, 0


# %% mistake: stops_at_one
# You do not let the scale fall below 1. Nothing is special about 1: large gradients may overflow
# there too, and then the scale must go on down, or every step is thrown away.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, max(scale / {{shrink}}, 1.0), 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% mistake: whole_scales
# You divide the scale with `//`, which throws away what lies behind the point: half of 1.0 becomes
# 0.0, and dividing by that gives infinities. A scale may be below 1; divide with `/`.
def loss_scale_step(grads, scale, streak, interval):
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale // {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1


# %% alternate: looks_at_the_float32_sum
# In float32 no sum of float16 numbers overflows: it is finite just if all of them are.
def loss_scale_step(grads, scale, streak, interval):
    if not bool(sum((grad.float().sum() for grad in grads), torch.zeros(())).isfinite()):
        return None, scale / {{shrink}}, 0
    streak = (streak + 1) % interval
    return [grad.float() / scale for grad in grads], scale if streak else scale * {{grow}}, streak


# %% alternate: looks_at_extremes
# The largest magnitude tells: NaN spreads through `max`, and infinity is the largest of all.
def loss_scale_step(grads, scale, streak, interval):
    for grad in grads:
        if grad.numel() and not grad.abs().max() <= 65504:
            return None, scale / {{shrink}}, 0
    streak += 1
    grows = streak == interval
    inverse = 1.0 / scale
    new = [torch.mul(grad.to(torch.float32), inverse) for grad in grads]
    return new, scale * (1.0 + {{grow - 1}} * grows), streak % interval


# %% alternate: unscales_first
# Unscale all, and look at the results: an infinity divided stays one.
def loss_scale_step(grads, scale, streak, interval):
    unscaled = tuple(
        torch.ldexp(grad.float(), torch.tensor(-int(math.log2(scale)))) for grad in grads
    )
    flat = torch.cat([grad.reshape(-1) for grad in unscaled])
    if bool((flat - flat != 0).any()):
        return None, scale / {{shrink}}, 0
    streak = streak + 1
    return (unscaled, {{grow}} * scale, 0) if streak >= interval else (unscaled, scale, streak)
