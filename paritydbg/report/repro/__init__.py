"""A finding's reproduction as a folder: two scripts, their tensors, a text for the maintainers."""
