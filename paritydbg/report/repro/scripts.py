"""The two scripts: each runs one layer on the stored tensors and holds it against the other side.

They need their framework and numpy alone, and end with 1 where the difference shows, else with 0.
"""

from __future__ import annotations

import re

from paritydbg.errors import UsageError
from paritydbg.model.handover import Handover, HandoverSide

_SLOT = re.compile(r"[A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")

_HEAD = '''"""{title}

    python {name}

Runs {code_short} on the tensors of tensors.npz and holds the result against what {other} gives on them.
Ends with 1 where they differ by more than rounding, with 0 where they agree.
"""

import sys

'''

_COMPARE = '''

def compare(what, got, key):
    """Print how far a result lies from the other framework's, and whether that is too far."""
    if key not in data:
        return False
    other = data[key].astype(np.float64)
    got = np.asarray(got).astype(np.float64).reshape(other.shape)
    far = np.linalg.norm(got - other) / max(np.linalg.norm(other), 1e-300)
    # A gradient may lie further, where large terms cancel in it.
    differs = not far <= (data[f"allowed.{key}"] if f"allowed.{key}" in data else ALLOWED)
    print(f"{what}: relative difference {far:.3e}  {'DIFFERS' if differs else 'agrees'}")
    return differs


'''

_TORCH_LAYER = """
layer = {code}
layer.train({training})
own = dict(layer.named_parameters()) | dict(layer.named_buffers())
with torch.no_grad():
    for name, tensor in own.items():
        if f"torch.values/{{name}}" in data:
            tensor.copy_(torch.from_numpy(data[f"torch.values/{{name}}"]))

{inputs}
{outputs} = layer({call})
differs = []
{compare}
{backward}
sys.exit(any(differs))
"""

_TORCH_BACKWARD = """torch.autograd.backward({pairs})
{grads}
for name, tensor in layer.named_parameters():
    if tensor.grad is not None:
        differs.append(
            compare(f"gradient of {{name}}", tensor.grad.numpy(), f"torch.expected.gradients/{{name}}")
        )
"""

_MINDSPORE_LAYER = """
layer = {code}
layer.set_train({training})
for name, parameter in layer.parameters_and_names():
    if f"mindspore.values/{{name}}" in data:
        parameter.set_data(ms.Tensor(data[f"mindspore.values/{{name}}"], parameter.dtype))

{inputs}
differs = []
{run}

sys.exit(any(differs))
"""

_MINDSPORE_BACKWARD = """

def weighted({floats}):
    {outputs} = layer({call})
    # The gradient of a sum weighted by g is what g brings back.
    total = {total}
    return total, {told}


weights = list(layer.trainable_params())
(_, {told}), gradients = ms.value_and_grad(
    weighted, {positions}, weights or None, has_aux=True
)({floats})
{compare}
of_inputs, of_weights = {unpack}
{grads}
names = [name for name, p in layer.parameters_and_names() if p.requires_grad]
for name, gradient in zip(names, of_weights):
    differs.append(
        compare(f"gradient of {{name}}", gradient.asnumpy(), f"mindspore.expected.gradients/{{name}}")
    )
"""

_TORCH_OPTIMIZER = """
names = {names}
before = [data[f"torch.values/{{name}}"] for name in names]
parameters = [torch.nn.Parameter(torch.tensor(array)) for array in before]
for name, parameter in zip(names, parameters):
    parameter.grad = torch.tensor(data[f"torch.gradients/{{name}}"])
optimizer = {code}
optimizer.step()
differs = [
    compare(f"change of {{name}}", after.detach().numpy() - was, f"torch.expected.values/{{name}}")
    for name, after, was in zip(names, parameters, before)
]
sys.exit(any(differs))
"""

_MINDSPORE_OPTIMIZER = """
names = {names}
before = [data[f"mindspore.values/{{name}}"] for name in names]
parameters = [ms.Parameter(ms.Tensor(array), name=name) for name, array in zip(names, before)]
optimizer = {code}
optimizer(tuple(ms.Tensor(data[f"mindspore.gradients/{{name}}"]) for name in names))
differs = [
    compare(f"change of {{name}}", after.asnumpy() - was, f"mindspore.expected.values/{{name}}")
    for name, after, was in zip(names, parameters, before)
]
sys.exit(any(differs))
"""


def script(handover: Handover, package: str) -> str:
    """The script of one framework: ``torch`` or ``mindspore``."""
    for slot in (*handover.trial.inputs, *handover.trial.grad_outputs, *handover.port.own.outputs):
        # It becomes a variable's name: what a file says must not become code.
        if not _SLOT.fullmatch(slot):
            raise UsageError(f"the slot {slot!r} cannot be written as a variable of a script")
    side = handover.reference if package == "torch" else handover.port
    optimizer = handover.trial.layer is None
    imports = (
        "import torch\n" if package == "torch" else "import mindspore\nimport mindspore as ms\n"
    )
    head = _HEAD.format(
        title=title(handover),
        name=f"repro_{package}.py",
        code_short=short(side.code),
        other="MindSpore" if package == "torch" else "torch",
    )
    limit = f"ALLOWED = {handover.allowed:.1e}"
    data = f'\n{limit}\ndata = np.load("tensors.npz", allow_pickle=False)\n'
    if optimizer:
        template = _TORCH_OPTIMIZER if package == "torch" else _MINDSPORE_OPTIMIZER
        code = side.code.replace("net.trainable_params()", "parameters")
        body = template.format(names=sorted(side.values), code=code)
    elif package == "torch":
        body = _torch_layer(handover, side)
    else:
        body = _mindspore_layer(handover, side)
    if package == "mindspore":
        body = f"ms.set_context(mode=ms.PYNATIVE_MODE)\n{body.lstrip()}"
    numpy = "import numpy as np\n"
    imports = numpy + imports if package == "torch" else imports + numpy
    return head + imports + data + _COMPARE + body.lstrip("\n")


def title(handover: Handover) -> str:
    """``torch.nn.GELU and mindspore.nn.GELU differ, forward``, without a name of the user's net."""
    phase = handover.finding.stage.value
    both = short(handover.reference.code), short(handover.port.code)
    return f"{both[0]} and {both[1]} differ ({phase})"


def short(code: str) -> str:
    """The API of a line of code: what stands before its arguments."""
    return code.partition("(")[0]


def slot_name(slot: str) -> str:
    """A slot as a variable's name: ``x0`` for ``0``, ``x1_0`` for ``1.0``, ``mask`` for itself."""
    name = slot.replace(".", "_")
    return f"x{name}" if name[:1].isdigit() else name


def _arguments(slots: list[str]) -> str:
    """The call's arguments: nested slots as tuples."""
    positional: dict[str, list[str]] = {}
    for slot in slots:
        positional.setdefault(slot.partition(".")[0], []).append(slot)
    told = []
    for head, members in positional.items():
        nested = members != [head]
        value = f"({', '.join(map(slot_name, members))},)" if nested else slot_name(members[0])
        told.append(value if head.isdigit() else f"{head}={value}")
    return ", ".join(told)


def _outputs(slots: list[str], prefix: str = "y") -> str:
    """What the layer returns, taken apart: ``y``, or ``(y0, (y1_0, y1_1))`` for nested slots."""
    if slots == [""]:
        return prefix
    heads: dict[str, list[str]] = {}
    for slot in slots:
        heads.setdefault(slot.partition(".")[0], []).append(slot)
    parts = []
    for head, members in heads.items():
        names = [_result_name(slot) for slot in members]
        parts.append(names[0] if members == [head] else f"({', '.join(names)},)")
    # What lies behind the last known slot is not looked at.
    return f"{', '.join(parts)}, *_"


def _output(slot: str) -> str:
    return f"output {slot}".strip()


def _result_name(slot: str) -> str:
    return f"y{slot.replace('.', '_')}"


def _torch_layer(handover: Handover, side: HandoverSide) -> str:
    trial = handover.trial
    inputs = "\n".join(
        f'{slot_name(slot)} = torch.tensor(data["inputs/{slot}"])'
        + (".requires_grad_()" if array.dtype.kind == "f" and trial.grad_outputs else "")
        for slot, array in trial.inputs.items()
    )
    slots = list(side.own.outputs)
    compare = "\n".join(
        f'differs.append(compare("{f"output {slot}".strip()}", {_result_name(slot)}.detach().numpy(), '
        f'"torch.expected.outputs/{slot}"))'
        for slot in slots
    )
    backward = ""
    if trial.grad_outputs:
        given = [slot for slot in slots if slot in trial.grad_outputs]
        tensors = ", ".join(map(_result_name, given))
        gradients = ", ".join(f'torch.tensor(data["grad_outputs/{slot}"])' for slot in given)
        grads = "\n".join(
            f'differs.append(compare("gradient of input {slot}", {slot_name(slot)}.grad.numpy(), '
            f'"torch.expected.grad_inputs/{slot}"))'
            for slot in side.own.grad_inputs
        )
        backward = _TORCH_BACKWARD.format(pairs=f"[{tensors}], [{gradients}]", grads=grads)
    return _TORCH_LAYER.format(
        code=side.code,
        training=trial.training,
        inputs=inputs,
        outputs=_outputs(slots),
        call=_arguments(list(trial.inputs)),
        compare=compare,
        backward=backward,
    )


def _mindspore_layer(handover: Handover, side: HandoverSide) -> str:
    trial = handover.trial
    inputs = "\n".join(
        f'{slot_name(slot)} = ms.Tensor(data["inputs/{slot}"])' for slot in trial.inputs
    )
    slots = list(side.own.outputs)
    outputs, call = _outputs(slots), _arguments(list(trial.inputs))
    told = ", ".join(map(_result_name, slots))
    compare = "\n".join(
        f'differs.append(compare("{f"output {slot}".strip()}", {_result_name(slot)}.asnumpy(), '
        f'"mindspore.expected.outputs/{slot}"))'
        for slot in slots
    )
    run = f"{outputs} = layer({call})\n{compare}"
    if trial.grad_outputs:
        floats = [slot for slot, array in trial.inputs.items() if array.dtype.kind == "f"]
        given = [slot for slot in slots if slot in trial.grad_outputs]
        total = " + ".join(
            f'({_result_name(slot)} * ms.Tensor(data["grad_outputs/{slot}"], '
            f"{_result_name(slot)}.dtype)).sum()"
            for slot in given
        )
        grads = "\n".join(
            f'differs.append(compare("gradient of input {slot}", of_inputs[{place}].asnumpy(), '
            f'"mindspore.expected.grad_inputs/{slot}"))'
            for place, slot in enumerate(floats)
        )
        unpack = "(gradients if weights else (gradients, ()))" if floats else "((), gradients)"
        if len(floats) == 1:
            grads = (
                f"of_inputs = of_inputs if isinstance(of_inputs, tuple) else (of_inputs,)\n{grads}"
            )
        run = _MINDSPORE_BACKWARD.format(
            floats=", ".join(map(slot_name, floats)),
            outputs=outputs,
            call=call,
            total=total,
            told=f"{told}" if len(slots) > 1 else told,
            positions=tuple(range(len(floats))) or None,
            compare=compare,
            unpack=unpack,
            grads=grads,
        )
    return _MINDSPORE_LAYER.format(
        code=side.code, training=trial.training, inputs=inputs, run=run.rstrip("\n")
    )
