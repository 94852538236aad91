"""What stands for a PyTorch API in MindSpore: tables as CSV, their values, their lookup; no framework is imported."""
