"""The embedded engine: sorted columns of numbers and compiled kernels, in one process."""
