"""Each measurement compiles anew and leaves nothing compiled behind."""

import torch
from torch._dynamo.utils import counters

from grader.inside.instruments.dynamo import fresh_dynamo


def test_the_second_measurement_sees_graphs_again():
    def double(x):
        return x * 2

    for _ in range(2):
        graphs = []

        def backend(module, example_inputs, graphs=graphs):
            graphs.append(module)
            return module.forward

        with fresh_dynamo():
            torch.compile(double, backend=backend)(torch.ones(3))
        assert len(graphs) == 1
        assert not counters
