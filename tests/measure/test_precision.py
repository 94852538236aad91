"""What a dtype can resolve."""

from __future__ import annotations

from paritydbg.measure.precision import no_finer


def test_sixteen_bits_raise_a_bound_and_thirty_two_leave_it() -> None:
    assert no_finer(1e-4, "float32", "int64") == 1e-4
    assert no_finer(1e-4, "float32", "float16") == 8 * 2.0**-11
    assert no_finer(1e-4, "bfloat16") == 8 * 2.0**-8
    assert no_finer(0.5, "float16") == 0.5
