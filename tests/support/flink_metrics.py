"""Shows what Flink's Prometheus reporter would show of a small job whose every figure is known.

Runs alone on a node, with nothing but Python: a source and an operator `map` of two instances. map-0 is busy
half of the time with 100 records/s, map-1 a quarter of it with 40 records/s, and back-pressured another
quarter.
"""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

# task, instance, records in and out per s, ms per s: busy, back-pressured, idle
INSTANCES = (
    ("source", 0, 0.0, 140.0, 0.0, 500.0, 500.0),
    ("map", 0, 100.0, 10.0, 500.0, 0.0, 500.0),
    ("map", 1, 40.0, 4.0, 250.0, 250.0, 500.0),
)
LAG_RECORDS = 700
BEGUN_S = time.time()


def page(elapsed_s: float) -> str:
    lines = ["# TYPE flink_taskmanager_job_task_numRecordsIn gauge"]
    names = ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs", "accumulateBackPressuredTimeMs",
             "accumulateIdleTimeMs")  # fmt: skip
    for task, instance, *rates in INSTANCES:
        labels = f'job_name="rides",task_name="{task}",subtask_index="{instance}",tm_id="tm-{instance}"'
        lines += [
            f"flink_taskmanager_job_task_{name}{{{labels}}} {elapsed_s * rate}"
            for name, rate in zip(names, rates, strict=True)
        ]
    source = 'job_name="rides",task_name="source",operator_name="kafka",subtask_index="0"'
    lines.append(f"flink_taskmanager_job_task_operator_pendingRecords{{{source}}} {LAG_RECORDS}")
    lines.append('flink_jobmanager_job_numRestarts{job_name="rides"} 2')
    lines.append('flink_jobmanager_job_numberOfFailedCheckpoints{job_name="rides"} 0')
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = page(time.time() - BEGUN_S).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


if __name__ == "__main__":
    HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
