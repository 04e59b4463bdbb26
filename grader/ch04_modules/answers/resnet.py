# %% blocked: from_torchvision
# Torchvision has this network. The exercise is to build it.
def resnet(blocks, widths, classes):
    import torchvision

    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, blocks, classes)


# %% mistake: nothing_is_added
# Your blocks are chains: nothing is added, so nothing is residual. With its convolutions at zero
# such a block forgets its input. The shortcut must be added to the branch.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return self.branch(x).relu()


# %% mistake: relu_too_early
# You apply the last ReLU to the branch before the shortcut is added. It comes after the addition.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return self.branch(x).relu() + self.shortcut(x)


# %% mistake: no_last_relu
# After the addition comes a ReLU. Without it negative values go on to the next block.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return self.branch(x) + self.shortcut(x)


# %% mistake: stride_in_the_second
# Your second convolution has the stride. The first one has it: the block works on the small image
# from there on.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: shortcut_without_norm
# Your shortcut's convolution has no norm after it.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: shortcut_for_width_only
# You convolve on the shortcut only where the number of channels changes. With stride 2 and equal
# widths, branch and shortcut have different sizes.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: shortcut_everywhere
# You convolve on every shortcut. Where the shapes agree the input itself is added; that is what
# lets gradients through.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if True:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: every_stage_halves
# Your first stage has stride 2 as well. The stem has already halved the image twice.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: every_block_halves
# All blocks of your later stages have stride 2. Only the first of each has.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: with_biases
# Your convolutions have biases. The norm after each takes any constant off again; they only cost
# memory.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: no_pooling
# You left out the max pooling of the stem. All stages work on images of four times the area.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: no_relu_in_the_stem
# You left out the ReLU of the stem: convolution, norm, ReLU, and only then the pooling.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: pools_two_by_two
# Your stem pools over 2×2. It is 3×3 with stride 2 and padding 1: the windows overlap.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: one_norm_for_two
# You use one norm after both convolutions of a block. Each keeps statistics of its own: in training one would
# count every batch twice, and mix two distributions.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        norm = nn.BatchNorm2d(outputs)
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            norm,
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            norm,
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: mean_before
# Your stem pools by the mean. It takes the maximum.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.AvgPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: one_block_many_times
# You repeat one block. It is the same object each time, with the same weights: parameters are
# counted once, and gradients add up. Make a new one for each place.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        layers.append(Block(inputs, width, stride=2 if stage else 1))
        inputs = width
        layers += [Block(width, width, 1)] * (blocks[stage] - 1)
        if blocks[stage] > 2:
            layers[-1] = Block(width, width, 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% mistake: a_list_of_blocks
# Your blocks are in a Python list. Nobody finds them there: no parameters, no `eval()`, no
# checkpoint. Use `nn.ModuleList` or `nn.Sequential`.
def resnet(blocks, widths, classes):
    layers = [
        nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for number in range(blocks[stage]):
            layers.append(Block(inputs, width, stride=2 if stage and not number else 1))
            inputs = width
    return Whole(layers, nn.Linear(inputs, classes))


class Whole(nn.Module):
    def __init__(self, layers, head):
        super().__init__()
        self.layers = layers
        self.head = head

    def forward(self, x):
        for layer in self.layers:
            x = layer.to(x.dtype)(x)
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


# %% alternate: other_names
# Registered in another order, by functions, with an Identity.
class Basic(nn.Module):
    def __init__(self, a, b, s):
        super().__init__()
        same = s == 1 and a == b
        self.skip = nn.Identity() if same else nn.ModuleList()
        if not same:
            self.skip.append(nn.BatchNorm2d(b))
            self.skip.append(nn.Conv2d(a, b, (1, 1), (s, s), bias=None is not None))
        self.second = nn.Conv2d(b, b, 3, padding="same", bias=False)
        self.second.padding = (1, 1)
        self.norms = nn.ModuleDict({"2": nn.BatchNorm2d(b), "1": nn.BatchNorm2d(b)})
        self.first = nn.Conv2d(a, b, 3, s, padding=1, bias=False)

    def forward(self, x):
        y = torch.clamp(self.norms["1"](self.first(x)), min=0)
        y = self.norms["2"](self.second(y))
        y += x if isinstance(self.skip, nn.Identity) else self.skip[0](self.skip[1](x))
        return F.relu(y)


def resnet(blocks, widths, classes):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(widths[-1], classes)
            self.stages = nn.ModuleList()
            before = widths[0]
            for i, n in enumerate(blocks):
                stage = []
                for j in range(n):
                    stage.append(Basic(before, widths[i], 1 + (i > 0 and j == 0)))
                    before = widths[i]
                self.stages.append(nn.Sequential(*stage))
            self.stem = nn.Conv2d(3, widths[0], kernel_size=7, stride=2, padding=3, bias=False)
            self.stem_norm = nn.BatchNorm2d(widths[0])

        def forward(self, x):
            x = torch.relu(self.stem_norm(self.stem(x)))
            x = nn.MaxPool2d(3, 2, 1)(x)
            for stage in self.stages:
                x = stage(x)
            return self.out(x.flatten(2).mean(2))

    return Net()
