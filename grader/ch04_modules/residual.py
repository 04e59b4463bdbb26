"""A residual network of basic blocks, written for the checks of `resnet` to compare with."""

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """One block: two 3×3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.project = (stride, inputs) != (1, outputs)
        if self.project:
            self.conv3 = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.norm3 = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (self.norm3(self.conv3(x)) if self.project else x))


class Network(nn.Module):
    """The whole network, stage by stage."""

    def __init__(self, blocks: list[int], widths: list[int], classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        self.stages = nn.ModuleList()
        inputs = widths[0]
        for number, (count, width) in enumerate(zip(blocks, widths, strict=True)):
            for first in [True] + [False] * (count - 1):
                self.stages.append(Residual(inputs, width, 2 if first and number else 1))
                inputs = width
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        for block in self.stages:
            x = block(x)
        return self.head(x.mean((2, 3)))
