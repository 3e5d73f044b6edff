"""Faults on purpose: a testbed is broken while an experiment runs on it, and what is left is judged."""
