"""A real Flink as a testbed: the same verbs as the simulated one, for emulated nodes and Raspberry Pis."""
