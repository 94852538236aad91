"""The dump: one HDF5 file, written so that it survives a kill, read with every size checked.

The layout is in `schema` and, for people, in FORMAT.md. h5py is imported here and nowhere else.
"""
