"""The controller for a Flink of one's own, outside any testbed: it watches (shadow mode), or drives."""
