"""ResNet-50 at its full depth and an eighth of its width, on images of 64 by 64 pixels."""
