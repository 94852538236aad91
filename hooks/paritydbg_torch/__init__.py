"""PyTorch behind paritydbg's adapter: hooks that record, and what else the core asks of a framework.

A gradient recorded at a layer (``grad_output``, ``grad_input``) is the total gradient of that tensor,
over all of its users, in both frameworks: tensor hooks see nothing else, and totals compare.
"""

from paritydbg_torch.adapter import ADAPTER

__all__ = ["ADAPTER"]
