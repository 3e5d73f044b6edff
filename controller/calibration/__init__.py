"""Calibration: what a real testbed can do, measured, and the profile by which the simulator imitates it."""
