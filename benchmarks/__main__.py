"""`make bench [PART=…]`: speed and memory, part by part. Each part measures things side by side in one run:
machines are noisy, so it is the ratios that count."""

from __future__ import annotations

import os
import subprocess
import sys

from fogscale.errors import unknown

PARTS = (
    "simulation", "records", "filtering", "learning", "edf", "protocol", "producing", "imports", "testbed",
    "encryption",
)  # fmt: skip


def main() -> None:
    chosen = sys.argv[1:] or PARTS
    for part in chosen:
        if part not in PARTS:
            sys.exit(f"benchmarks: {unknown('part', part, PARTS)}")
    failed = [part for part in chosen if not _ran(part)]
    if failed:
        sys.exit(f"benchmarks: these failed: {', '.join(failed)}")


def _ran(part: str) -> bool:
    print(f"\n== {part}", flush=True)
    if part in ("testbed", "encryption") and os.geteuid() != 0:
        print("skipped: emulated nodes need root")
        return True
    return subprocess.run([sys.executable, "-m", f"benchmarks.{part}"]).returncode == 0


if __name__ == "__main__":
    main()
