"""Raw trace files to a trace: read on Spark, cleaned, sorted by time, with a rate profile and a report."""
