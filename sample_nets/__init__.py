"""Six networks, each in PyTorch and as a MindSpore port, with faults to switch on in the port.

Each pair is a folder with ``torch_net``, ``mindspore_net``, ``data`` and ``faults``; the training
scripts and the bench import them by name. Nothing of paritydbg is imported here.
"""

from __future__ import annotations

NAMES = ("lenet5", "resnet50", "unet", "bert", "llama", "rnn")
