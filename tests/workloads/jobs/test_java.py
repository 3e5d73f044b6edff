"""Java's own tests of the jobs: logic against counting by hand, state across a rescaling, bytes written."""

import shutil
import subprocess
from xml.etree import ElementTree

from fog.artifacts.builders import find_maven
from fog.folders import checkout
from tests.support.flink_jobs import require_tools


def test_the_jobs_own_tests_pass(require, tmp_path):
    require_tools(require)
    module = shutil.copytree(checkout() / "workloads/jobs/java", tmp_path / "java")
    command = [find_maven(), "-q", "-B", "test"]
    done = subprocess.run(command, cwd=module, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-5000:]
    reports = [
        ElementTree.parse(file).getroot() for file in (module / "target/surefire-reports").glob("*.xml")
    ]
    tested = {str(report.get("name")).rsplit(".", 1)[-1] for report in reports}
    assert {"ClickFraudTest", "TopRoutesTest", "OutputTest"} <= tested
    assert sum(int(str(report.get("skipped"))) for report in reports) == 0
