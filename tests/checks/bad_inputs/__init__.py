"""Modules of tests/checks/bad_inputs.py: the kinds of bad input, the small study they start from, and the rules that every run must keep."""
