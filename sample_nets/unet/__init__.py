"""A small U-Net for segmentation that upsamples by transposed convolution and bilinear resize."""
