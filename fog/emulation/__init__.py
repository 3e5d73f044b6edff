"""Emulated nodes of one Linux machine: their disks, limits, namespaces, and the process they die with."""
