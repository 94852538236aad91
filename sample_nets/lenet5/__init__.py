"""LeNet-5 on small grey images: the smallest pair, and the one to try first."""
