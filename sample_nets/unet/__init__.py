"""A small U-Net for segmentation, upsampling by transposed convolutions and by a bilinear resize."""
