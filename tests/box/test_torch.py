"""torch works in a child: loader workers, Dynamo, ranks, and operations that would use many threads."""

import pytest

from tests.box.conftest import ask


@pytest.fixture
def child(torch_box):
    with torch_box.open() as child:
        yield child


def test_a_matmul_and_its_backward(child):
    source = """
        import torch
        a = torch.ones(300, 300, requires_grad=True)
        (a @ a).sum().backward()
        result = [a.grad.sum().item(), torch.get_num_threads()]
    """
    assert ask(child, source) == [300.0 * 2 * 300 * 300, 1]


def test_a_loader_with_two_workers(child):
    source = """
        import torch
        torch.ones(300, 300) @ torch.ones(300, 300)
        data = torch.utils.data.TensorDataset(torch.arange(10))
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2)
        result = [x.tolist() for x, in loader]
    """
    assert ask(child, source) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_dynamo_with_the_eager_backend(child):
    source = """
        import torch
        @torch.compile(backend='eager')
        def double(x):
            return x * 2 if x.sum() > 0 else x
        result = double(torch.ones(3)).tolist()
    """
    assert ask(child, source) == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("method", ["tcp://127.0.0.1:29511", "file:///tmp/meeting"])
def test_two_gloo_ranks(child, method):
    source = f"""
        import json, os
        import torch, torch.distributed as dist
        torch.ones(300, 300) @ torch.ones(300, 300)
        pids = []
        for rank in range(2):
            pids.append(os.fork())
            if pids[-1] == 0:
                try:
                    dist.init_process_group('gloo', init_method={method!r}, rank=rank, world_size=2)
                    x = torch.full((3,), float(rank + 1))
                    dist.all_reduce(x)
                    json.dump(x.tolist(), open(f'/tmp/{{rank}}', 'w'))
                    dist.destroy_process_group()
                finally:
                    os._exit(0)
        for pid in pids: os.waitpid(pid, 0)
        result = [json.load(open(f'/tmp/{{rank}}')) for rank in range(2)]
    """
    assert ask(child, source) == [[3.0] * 3] * 2


def test_each_child_draws_its_own_numbers(torch_box):
    draws = []
    for _ in range(2):
        with torch_box.open() as child:
            draws.append(ask(child, "import torch; result = torch.rand(4).tolist()"))
    assert draws[0] != draws[1]


def test_more_memory_than_there_is_raises_in_the_students_code(child):
    source = """
        import torch
        try: torch.empty(2**42)
        except RuntimeError as error: result = str(error)
    """
    assert "memory" in ask(child, source)
