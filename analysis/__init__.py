"""From recorded runs to metrics, tables, figures and one report, on Spark."""
