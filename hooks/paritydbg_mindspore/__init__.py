"""MindSpore behind paritydbg's adapter: hooks that record, and what else the core asks of a framework.

No MindSpore operator ever runs inside a hook: on CPU that alone changes the last bits of later calls.
A gradient recorded at a layer (``grad_output``, ``grad_input``) is the total gradient of that tensor,
over all of its users, as in the PyTorch package.
"""

from paritydbg_mindspore.adapter import ADAPTER

__all__ = ["ADAPTER"]
