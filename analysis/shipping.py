"""This project's packages on the workers of a cluster, which have installed none of it."""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from analysis.spark import is_local

PACKAGES = ("fogscale", "controller", "workloads", "analysis")


def ship_packages(spark: SparkSession) -> None:
    """Sends the packages along with the tasks, once per context; a local Spark has them."""
    context = spark.sparkContext
    if is_local(context.master or "") or getattr(context, "_fogscale_shipped", False):
        return
    folder = tempfile.mkdtemp(prefix="fogscale-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # workers may ask for it until the end
    archive = Path(folder) / "fogscale.zip"
    archive.write_bytes(packed())
    context.addPyFile(str(archive))
    context._fogscale_shipped = True  # type: ignore[attr-defined]  # once per context


def packed() -> bytes:
    """The packages as a zip: code and data, nothing compiled."""
    root = Path(__file__).resolve().parent.parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(root))
    return buffer.getvalue()
