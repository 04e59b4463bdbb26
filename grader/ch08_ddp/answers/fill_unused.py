# %% blocked: runs_backward
# That runs the whole backward pass to learn who is in the graph. The graph can be read without.
def fill_unused(loss, parameters):
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    anywhere = torch.tensor([grad is not None for grad in found], dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, grad in zip(parameters, anywhere.tolist(), found, strict=True):
        if used and grad is None and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: asks_nobody
# You know what this rank uses, and no more. Another rank may use what this one does not, and waits for its share. The
# ranks must tell each other.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: zeros_for_all
# You give zeros to every parameter that this rank does not use, also to those that no rank uses. A zero is a gradient:
# weight decay and momentum move what has one.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: used_by_all
# You take the minimum: a parameter counts as used if all ranks use it. One rank is enough.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MIN)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: overwrites
# You put zeros where a gradient from an earlier pass was. With gradients that accumulate, that one is part of the sum.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: looks_at_grads
# You take a `.grad` that is there for use. It may be from an earlier pass, and the graph of this loss knows nothing of it.
# Only the graph tells.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(p) in reached or p.grad is not None for p in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: recursion
# You call yourself for each node below. Python ends that after `sys.getrecursionlimit()` calls, and a graph may be
# deeper. Keep a list of nodes to visit.
def fill_unused(loss, parameters):
    reached, seen = set(), set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        for next_node, _ in node.next_functions:
            visit(next_node)

    visit(loss.grad_fn)
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: walks_every_way
# You do not remember where you have been. A node with two ways to it is visited twice, the next four times, and sixty
# such nodes in a row keep you busy for ever.
def fill_unused(loss, parameters):
    reached, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: one_message_each
# You ask for each parameter by itself. Put all answers into one tensor and send it once.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    for at in range(len(here)):
        dist.all_reduce(anywhere[at : at + 1], op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: leaves_early
# A rank whose loss has no graph returns before the all-reduce. The others wait for it.
def fill_unused(loss, parameters):
    reached, seen, todo = set(), set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        todo += [next_node for next_node, _ in node.next_functions]
    if loss.grad_fn is None:
        return [False] * len(parameters)
    here = [id(parameter) in reached for parameter in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% mistake: compares_numbers
# You look for a parameter that has the same numbers as one in the graph. Two fresh layers can have the same numbers, all
# ones for example. Ask whether they are the same object.
def fill_unused(loss, parameters):
    reached, seen, todo = [], set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.append(node.variable)
        todo += [next_node for next_node, _ in node.next_functions]
    here = [any(torch.equal(p, other) for other in reached) for p in parameters]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% alternate: level_by_level
# The graph level by level, parameters by position, and a sum instead of a maximum.
def fill_unused(loss, parameters):
    numbers = {}
    for number, parameter in enumerate(parameters):
        numbers.setdefault(id(parameter), []).append(number)
    votes = torch.zeros(len(parameters))
    level, known = {loss.grad_fn} - {None}, set()
    while level:
        known |= level
        for node in level:
            if node.name().endswith("AccumulateGrad"):
                votes[numbers.get(id(node.variable), [])] = 1
        level = {n for node in level for n, _ in node.next_functions if n is not None} - known
    here = votes.tolist()
    anywhere = votes.clone()
    dist.all_reduce(anywhere)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()


# %% alternate: from_the_parameters
# Each parameter's own node is asked for, and looked up among the nodes of the graph.
def fill_unused(loss, parameters):
    seen, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [next_node for next_node, _ in node.next_functions]
    with torch.enable_grad():
        here = [
            p.requires_grad and torch.autograd.graph.get_gradient_edge(p).node in seen
            for p in parameters
        ]
    anywhere = torch.tensor(here, dtype=torch.int32)
    dist.all_reduce(anywhere, op=dist.ReduceOp.MAX)
    for parameter, used, used_here in zip(parameters, anywhere.tolist(), here, strict=True):
        if used and not used_here and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return anywhere.bool().tolist()
