"""Replays a workload into a real Kafka: schedule → records → pacing → sender, in one or several processes."""
