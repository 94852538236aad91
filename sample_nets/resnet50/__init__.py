"""ResNet-50 at its full depth and an eighth of its width, on images of 48 by 48 pixels."""
