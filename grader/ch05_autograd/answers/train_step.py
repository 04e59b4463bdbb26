# %% mistake: mean_of_means
# You give every piece the same weight. A target in a small piece then counts for more than one in a
# large piece. Weigh each by its number of targets that count.
def train_step(model, optimizer, batches):
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        if not bool((targets != -100).any()):
            continue
        loss = nn.functional.cross_entropy(model(inputs), targets) * (1 / len(batches))
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: mean_of_means_of_all
# You take the mean of the pieces' means. A target in a small piece then counts for more than one in a large piece;
# and the mean of a piece in which no target counts is NaN, which makes your loss NaN.
def train_step(model, optimizer, batches):
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets) / len(batches)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: weighted_by_rows
# You weigh each piece by its number of rows. Targets of -100 are rows and do not count: weigh by the
# targets that do.
def train_step(model, optimizer, batches):
    count = sum(len(targets) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        if not bool((targets != -100).any()):
            continue
        loss = nn.functional.cross_entropy(model(inputs), targets) * (len(targets) / count)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: sum_of_means
# You add up the means of the pieces, so the gradient grows with their number. Each needs its share of
# the whole as a weight.
def train_step(model, optimizer, batches):
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        if not bool((targets != -100).any()):
            continue
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: nan_from_an_empty_piece
# The mean of a piece without targets is 0 divided by 0, which is NaN, and NaN times 0 is NaN: your loss is. Take
# sums, or leave such a piece out.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss = loss * int((targets != -100).sum()) / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: old_gradients
# You never clear `.grad`. `backward` adds to what is there, and the last step's gradients count again.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: clears_every_time
# You clear `.grad` before each piece. What the pieces before it had added is gone, and the step is that
# of the last piece.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    total = 0.0
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: steps_every_time
# You make a step after each piece. Then the second piece sees other parameters than the first, and an
# optimizer with a memory remembers several steps.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
    return total


# %% mistake: one_backward_at_the_end
# You keep the losses as tensors: in a list, or in a total with one `backward` at the end. The result is
# right, and all graphs are alive at once, which is the memory of the whole batch. Call `backward` for
# each piece, and keep `loss.item()`.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        total = total + loss
    total.backward()
    optimizer.step()
    return total.item()


# %% mistake: concatenates
# You put the pieces together again. They were cut because the whole does not fit.
def train_step(model, optimizer, batches):
    inputs, targets = (torch.cat(parts) for parts in zip(*batches))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


# %% mistake: loss_of_the_last_piece
# You return the loss of the last piece. Add up what each contributes.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return loss.item()


# %% mistake: sum_without_the_count
# You take sums and never divide by the number of targets that count. The gradient is that many times too
# large.
def train_step(model, optimizer, batches):
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum")
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: loss_after_the_step
# You compute the loss again after the step. It belongs to the parameters before it, and each piece goes
# through the model twice.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
    optimizer.step()
    with torch.no_grad():
        sums = [
            nn.functional.cross_entropy(model(x), t, reduction="sum").item() for x, t in batches
        ]
    return sum(sums) / count


# %% mistake: loss_is_a_sum
# You return the sum of the losses of all targets. The loss of the batch is their mean: divide by the number of
# targets that count, as you did for the gradients.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum")
        (loss / count).backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: runs_the_model_twice
# Each piece goes through your model twice, once for the loss and once for the gradients. One pass gives both.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    with torch.no_grad():
        losses = [
            nn.functional.cross_entropy(model(inputs), targets, reduction="sum").item()
            for inputs, targets in batches
        ]
    optimizer.zero_grad()
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
    optimizer.step()
    return sum(losses) / count


# %% mistake: not_recorded
# When your model ran, nothing was recorded: it stood within `no_grad`, or something that is still open had
# switched grad mode off. A loss without a graph has no backward.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        with torch.no_grad():
            logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% mistake: grad_mode_stays_off
# You switch grad mode off and leave it off. The first step is right, and the next one records nothing. Use
# `with torch.no_grad():`, which puts it back; the optimizer needs none of it.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    torch.set_grad_enabled(False)
    optimizer.step()
    return total


# %% mistake: backward_of_the_running_total
# You call `backward` on the total so far, after each piece. The first piece is in every total, so its gradient is
# added again each time. Go back from each piece's own loss.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        total = total + loss
        total.backward(retain_graph=True)
    optimizer.step()
    return total.item()


# %% mistake: recomputes_each_piece
# You checkpoint the model: it runs a second time for each backward. A piece's graph is gone before the next piece
# begins, so there is nothing left to save.
def train_step(model, optimizer, batches):
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    optimizer.zero_grad()
    total = 0.0
    for inputs, targets in batches:
        logits = torch.utils.checkpoint.checkpoint(model, inputs, use_reentrant=False)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


# %% alternate: shares_in_float32
# A tensor's number divided by another is a float32, also where the loss is a float64.
def train_step(model, optimizer, batches):
    optimizer.zero_grad()
    count = torch.stack([(targets != -100).sum() for _, targets in batches]).sum()
    total = torch.zeros(())
    for inputs, targets in batches:
        mine = (targets != -100).sum()
        if mine:
            loss = nn.functional.cross_entropy(model(inputs), targets) * (mine / count)
            loss.backward()
            total = total + loss.detach()
    optimizer.step()
    return float(total)


# %% alternate: shares_of_the_mean
# Means, weighted by the share of the targets that count; pieces without any are left out.
def train_step(model, optimizer, batches):
    counts = [torch.count_nonzero(targets + 100).item() for _, targets in batches]
    for parameter in model.parameters():
        parameter.grad = None
    losses = []
    for (inputs, targets), count in zip(batches, counts):
        logits = model(inputs)
        if count:
            loss = nn.functional.cross_entropy(logits, targets)
            loss.backward(torch.full_like(loss, count / sum(counts)))
            losses.append(count * float(loss))
        logits = loss = None
    optimizer.step()
    return sum(losses) / sum(counts)


# %% alternate: scales_the_gradients
# Gradients of sums are added up, and divided once, at the end.
def train_step(model, optimizer, batches):
    optimizer.zero_grad(set_to_none=False)
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()
    total, count = 0.0, 0
    for inputs, targets in batches:
        keep = targets.ne(-100)
        rows = torch.log_softmax(model(inputs), 1)
        picked = rows.gather(1, targets.clamp(min=0)[:, None])[:, 0]
        loss = -(picked * keep).sum()
        loss.backward()
        total, count = total + loss.detach(), count + keep.sum()
    for p in model.parameters():
        p.grad /= count
    optimizer.step()
    return float(total / count)
