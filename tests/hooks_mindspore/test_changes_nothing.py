"""A captured run is bitwise the run without capture, in fresh processes and few steps.

MindSpore's CPU kernels change their last bits by themselves after some calls; the first few are stable.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, sys
from contextlib import nullcontext
import mindspore as ms, numpy as np
from mindspore import Tensor, nn, ops
import paritydbg

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Dense(12, 16), nn.BatchNorm1d(16), nn.Dropout(p=0.3)
        self.middle, self.last = nn.Dense(16, 16), nn.Dense(16, 16)
        self.last.weight = self.middle.weight

    def construct(self, x):
        x = self.drop(ops.relu(self.norm(self.first(x))))
        return self.last(ops.tanh(self.middle(x)))

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
path, level = sys.argv[1:]
net = Net().set_train()
net = ms.amp.auto_mixed_precision(net, level) if level != "O0" else net
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
source = np.random.default_rng(0)
gradient_of = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
block = paritydbg.capture(net, path, optimizer=optimizer) if path != "-" else nullcontext()
with block:
    for _ in range(3):
        loss, gradients = gradient_of(Tensor(source.standard_normal((8, 12)).astype(np.float32)))
        optimizer(gradients)
        for tensor in (loss, *gradients, *net.get_parameters()):
            print(hashlib.sha256(tensor.asnumpy().tobytes()).hexdigest())
print(hashlib.sha256(ms.get_rng_state().asnumpy().tobytes()).hexdigest())
"""


def told(path: str, level: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, level], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_training_is_bitwise_the_same(tmp_path: Path, level: str) -> None:
    without, captured = told("-", level), told(str(tmp_path / "a.h5"), level)
    assert len(without) > 20
    assert captured == without
    assert (tmp_path / "a.h5").exists()
