"""The report: one file, readable without anything else, that says what came out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from analysis.report import write_report


def metrics(policies=("gesscale",), seeds=1, **changes):
    rows = []
    for place, policy in enumerate(policies):
        for seed in range(1, seeds + 1):
            row = {
                "run_id": f"demo/{policy}/taxi/{seed}", "experiment": "demo", "policy": policy,
                "workload": "taxi", "seed": seed, "accuracy_o": 0.8 + place, "accuracy_u": 0.5,
                "timeshare_o": 49.0, "timeshare_u": 21.0, "excess_time": 0.042, "reconfigurations": 12,
                "cost": 1000.0 + 100 * place + seed, "processed_ratio": 0.96, "finished": True,
            }  # fmt: skip
            rows.append(row | changes)
    return pd.DataFrame(rows)


def samples(frame):
    time_s = np.arange(0.0, 601.0, 10.0)
    return pd.concat(
        pd.DataFrame({
            "run_id": run_id, "sequence": range(len(time_s)), "time_s": time_s,
            "offered_records": time_s * 100, "processed_records": time_s * 90, "lag_records": time_s * 10,
            "response_p95_ms": 100.0 + time_s, "demand": 3, "supply": 2 + (time_s > 300),
        })
        for run_id in frame["run_id"]
    )  # fmt: skip


def decisions(frame):
    row = {"time_s": 3725.0, "change": "map 2 → 3", "reason": "<b>map</b> +1", "outcome": "done",
           "downtime_s": 120.0, "message": "", "planned": True,
           "notes": [f"grant: <i>a</i> → b{number}" for number in range(4)]}  # fmt: skip
    late = row | {"time_s": 4000.0, "outcome": None, "downtime_s": np.nan, "message": None, "notes": []}
    talk = late | {"time_s": 4001.0, "change": None, "reason": None, "planned": False, "notes": ["hello: a"]}
    rows = (row, late, talk)
    return pd.DataFrame([one | {"run_id": run_id} for run_id in frame["run_id"] for one in rows])


def page(tmp_path, frame, published=None):
    path = write_report(tmp_path, "A <title>", samples(frame), decisions(frame), frame, published, "seed: 1")
    assert path == tmp_path / "report.html"
    return path.read_text()


class Balanced(HTMLParser):
    """Fails on a tag that is closed and was not the last to be opened."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_startendtag(self, tag, attrs):
        pass


@pytest.mark.parametrize(("policies", "seeds"), [(["gesscale"], 1), (["gesscale", "static", "mine"], 3)])
def test_the_page_is_whole_and_needs_nothing_else(tmp_path, policies, seeds):
    text = page(tmp_path, metrics(policies, seeds))
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    loaded = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', text)
    assert [place for place in loaded if not place.startswith("#")] == []
    assert text.count("<svg") == 1
    assert "A &lt;title&gt;" in text
    assert "seed: 1" in text


def test_one_run_shows_published_values_beside_ours(tmp_path):
    text = page(tmp_path, metrics(), {"gesscale": {"cost": 999.5, "reconfigurations": 12}})
    assert re.search(r"<th>Cost<.*?1,001\.?0?<.*?999\.5", text, re.DOTALL)
    assert ">12<" in text  # a count without decimals
    assert "Comparison by pairs" not in text


def test_decisions_show_time_change_reason_and_outcome(tmp_path):
    text = page(tmp_path, metrics())
    assert "1:02:05" in text
    assert "map 2 → 3" in text
    assert "&lt;b&gt;map&lt;/b&gt; +1" in text
    assert "done, down for 120 s" in text
    assert "no answer by the end" in text


def test_what_was_exchanged_inside_a_policy_stands_beside_its_plans(tmp_path):
    text = page(tmp_path, metrics())
    assert '<span class="note">grant: &lt;i&gt;a&lt;/i&gt; → b3</span></details>' in text
    assert "4 notes</summary>" in text  # many are folded away
    assert re.search(r'1:06:41</td><td class="change"></td><td><span class="note">hello: a</span>', text)
    assert "2 plans<" in text  # talking is no plan


def test_several_policies_are_compared_by_pairs(tmp_path):
    text = page(tmp_path, metrics(["gesscale", "static"], seeds=3))
    assert (
        "gesscale is the cheapest that keeps service: 1,002 replica-minutes, 9.1 % less than static" in text
    )
    assert "Rule: service first" in text
    assert "1,002.0 ± 2.5" in text  # s = 1, t(0.975, 2) = 4.303, √3
    assert re.search(r'class="number better">−9\.1 %<span class="note">p &lt; 0\.001', text)
    assert "seed 1 of 3 runs" in text


def test_the_cheapest_comes_last_if_it_was_late_with_a_quarter_of_the_records(tmp_path):
    late = metrics(["static"], seeds=3, cost=10.0, processed_ratio=0.75)
    text = page(tmp_path, pd.concat([metrics(["gesscale", "thr_nlaware"], seeds=3), late]))
    assert "gesscale is the cheapest that keeps service" in text
    assert "static does not keep it" in text
    assert re.search(r"3\.</td><th>static</th>.*?25\.0 % of records not in time", text, re.DOTALL)


def test_one_run_each_is_compared_without_a_test(tmp_path):
    text = page(tmp_path, metrics(["gesscale", "static"]))
    assert "−9.1 %" in text
    assert "p =" not in text
    assert "gesscale is the cheapest that keeps service" in text


def test_unfinished_runs_are_pointed_out(tmp_path):
    text = page(tmp_path, metrics(finished=False))
    assert "1 of 1 runs ended before all records were processed" in text
    assert "demo/gesscale/taxi/1" in text


def test_a_run_without_samples_is_reported_without_a_figure(tmp_path):
    frame = metrics(cost=np.nan, finished=False)
    path = write_report(tmp_path, "t", samples(frame).head(0), decisions(frame), frame, None, "")
    text = path.read_text()
    assert "No samples were recorded" in text
    assert "nan" not in text.lower().replace("finance", "")


def by_operator(frame, operators):
    kept = ["run_id", "experiment", "policy", "workload", "seed", "cost", "timeshare_u"]
    rows = [frame[kept].assign(operator=name, offered_rate_per_s=10.0 * (n + 1)) for n, name in operators]
    return pd.concat(rows)


def test_several_operators_have_a_table_of_their_own(tmp_path):
    frame = metrics(("gesscale", "static"), seeds=3)
    operators = by_operator(frame, enumerate(["parser", "map"]))
    path = write_report(tmp_path, "t", samples(frame), decisions(frame), frame, None, "", operators=operators)
    text = path.read_text()
    Balanced().feed(text)
    table = text.partition('<table class="by-operator">')[2].partition("</table>")[0]
    assert table.count("<tr>") == 1 + 4  # the head, and two policies for each of two operators
    assert table.index(">map<") < table.index(">parser<")
    assert "records/s" in table
    assert ">20.0 ± 0.0<" in table
    assert "1,002.0 ±" in table


def test_one_operator_has_no_table_by_operator(tmp_path):
    frame = metrics()
    operators = by_operator(frame, enumerate(["map"]))
    path = write_report(tmp_path, "t", samples(frame), decisions(frame), frame, None, "", operators=operators)
    assert '<table class="by-operator">' not in path.read_text()


def test_workloads_are_not_mixed(tmp_path):
    one, other = metrics(), metrics()
    other = other.assign(workload="worldcup98", run_id="demo/gesscale/worldcup98/1", cost=5.0)
    text = page(tmp_path, pd.concat([one, other]))
    assert text.count("<svg") == 2
    assert "workload taxi" in text
    assert "workload worldcup98" in text


FINDINGS = {
    "audit": {
        "run": "r", "produced": 27758, "found": 27758, "lost": 0, "doubled": 0, "unexpected": 0,
        "drained": True, "clean": True,
    },
    "rescales": [{
        "requested_s": 61.0, "finished_s": 70.0, "style": "in_place", "outcome": "done", "message": "",
        "before": {"map": ["fog1"]}, "wanted": {"map": ["fog1", "fog2"]}, "silent_s": 3.81,
        "commit_silent_s": None,
    }],
    "gaps": [{"at_s": 120.0, "seconds": 33.0}],
}  # fmt: skip


def found_page(tmp_path, findings):
    frame = metrics()
    by_run = {frame["run_id"].iloc[0]: findings}
    path = write_report(tmp_path, "t", samples(frame), decisions(frame), frame, None, "", by_run)
    Balanced().feed(path.read_text())
    return path.read_text()


def test_a_real_run_shows_its_audit_its_downtimes_and_its_gaps(tmp_path):
    shown = found_page(tmp_path, FINDINGS)

    assert "27,758 records produced, 0 lost, 0 doubled." in shown
    assert re.search(r"0:01:01.*map 1 → 2.*in_place.*done.*3\.8 s.*–", shown)
    assert "0:02:00, 33 s" in shown


def test_a_real_run_shows_its_time_scale_beside_its_restarts_and_what_the_controller_took(tmp_path):
    restart = FINDINGS["rescales"][0] | {"style": "restart", "silent_s": 27.0}
    more = {
        "rescales": [
            restart,
            restart | {"silent_s": 33.0},
            restart | {"outcome": "failed", "silent_s": 300.0},
        ],
        "time_scale": 0.25,
        "controller": {"resident_mb": 97.4, "core_ratio": 0.0184, "seconds": 600.0},
    }

    shown = found_page(tmp_path, FINDINGS | more)

    assert "a restart of 30 s stands for the paper" in shown
    assert "Measured here: 30 s in the median of 2." in shown
    assert "97 MB of memory and 1.8 % of a core (within the 141 MB and 3 %" in shown
    heavy = {"controller": {"resident_mb": 97.4, "core_ratio": 0.05, "seconds": 600.0}}
    assert "5.0 % of a core (above the" in found_page(tmp_path, FINDINGS | heavy)


def test_a_loss_is_no_good_news(tmp_path):
    audit = FINDINGS["audit"] | {"lost": 3, "unexpected": 1, "clean": False, "drained": False}

    shown = found_page(tmp_path, FINDINGS | {"audit": audit})

    assert '<p class="worse">27,758 records produced, 3 lost, 0 doubled, 1 that nobody sent;' in shown


def test_a_simulated_run_has_no_audit(tmp_path):
    assert "Nothing lost" not in page(tmp_path, metrics())
