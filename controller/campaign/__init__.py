"""Campaigns on a real testbed: one run after the other, each kept as a small record."""
