"""Which MindSpore API stands for a PyTorch one: CSV tables, their values, their lookup."""
