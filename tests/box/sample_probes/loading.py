"""What a probe of another module uses."""

import torch


def batches(dataset):
    """All batches of two, from two workers."""
    loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=2)
    return [batch.tolist() for batch in loader]
