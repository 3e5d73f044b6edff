"""The jobs that run on Flink (java/), what they are made of (catalog.yml), what they write (output.py)."""
