"""The checks of `septet doctor`."""
