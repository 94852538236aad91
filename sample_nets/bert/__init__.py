"""A twelve-layer post-norm encoder with a tied masked-word head and a next-sentence head."""
