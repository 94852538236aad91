"""From compared pairs to findings: what is beyond rounding, where it began, on which rung."""
