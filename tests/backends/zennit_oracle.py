"""zennit's excitation backpropagation of small nets, in a process of its own: it needs a stand-in for torchvision.

python zennit_oracle.py nets.pt answers.npz: `nets.pt` holds {name: (module of torch.nn parts, inputs, class)}.
"""

import sys
import types

import numpy as np
import torch


class Residual(torch.nn.Module):
    """Two branches and their sum, written with a module for the sum, which zennit can see."""

    def __init__(self, one, two):
        super().__init__()
        stand_in()
        from zennit.layer import Sum
        self.one, self.two, self.sum = one, two, Sum()

    def forward(self, inputs):
        return self.sum(torch.stack([self.one(inputs), self.two(inputs)], dim=-1))


def stand_in():
    """zennit imports the classes of torchvision's nets to recognise them; none is met here."""
    if "torchvision" in sys.modules:
        return
    names = {"torchvision": (), "torchvision.models": (), "torchvision.models.resnet": ("Bottleneck", "BasicBlock"),
             "torchvision.models.vgg": ("VGG",)}
    for name, classes in names.items():
        sys.modules[name] = types.ModuleType(name)
        for each in classes:
            setattr(sys.modules[name], each, type(each, (), {}))


def build(parts):
    """A net from a list of (kind, settings, state): what crosses the processes is plain data."""
    made = []
    for kind, settings, state in parts:
        if kind == "residual":
            made.append(Residual(build(settings[0]), build(settings[1])))
            continue
        module = getattr(torch.nn, kind)(**settings).double()
        module.load_state_dict(state)
        made.append(module)
    return torch.nn.Sequential(*made).eval()


def main(path_in, path_out):
    stand_in()
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import ExcitationBackprop
    answers = {}
    for name, (parts, inputs, seeds) in torch.load(path_in, weights_only=True).items():
        net = build(parts)
        leaf = inputs.clone().requires_grad_()
        composite = ExcitationBackprop(stabilizer=1e-12, zero_params=["bias"], canonizers=[SequentialMergeBatchNorm()])
        with composite.context(net) as changed:
            (found,) = torch.autograd.grad(changed(leaf), leaf, seeds)
        answers[name] = found.numpy()
    np.savez(path_out, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
