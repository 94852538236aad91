"""A Llama-style decoder: RMS norms, rotary positions, SwiGLU and grouped key-value heads."""
