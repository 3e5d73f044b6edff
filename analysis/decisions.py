"""The decision log: what a policy asked for, why, and what came of it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.schema import DECISIONS, RECEIPTS, check


def decision_log(decisions: DataFrame, receipts: DataFrame) -> DataFrame:
    """One row per plan: run_id, time_s, change, reason, outcome, downtime_s, message.

    A receipt answers the plan that was asked for at the same time; outcome is null where none came.
    """
    plans = check(decisions, DECISIONS, "table decisions").where(F.col("placement").isNotNull())
    asked = plans.select("run_id", "time_s", _change().alias("change"), "reason")
    answers = check(receipts, RECEIPTS, "table receipts").select(
        "run_id", F.col("requested_s").alias("time_s"), "outcome", "downtime_s", "message"
    )
    return asked.join(answers, on=["run_id", "time_s"], how="left").orderBy("run_id", "time_s")


def _change() -> Column:
    """For example "map 2 → 3"; "map moved" where as many replicas go to other nodes."""

    def described(operator: Column) -> Column:
        before = F.coalesce(F.try_element_at("requested", operator), F.array().cast("array<string>"))
        after = F.try_element_at("placement", operator)
        moved = F.array_sort(before) != F.array_sort(after)
        resized = F.concat(
            operator, F.lit(" "), F.size(before).cast("string"), F.lit(" → "), F.size(after).cast("string")
        )
        return F.when(F.size(before) != F.size(after), resized).when(
            moved, F.concat(operator, F.lit(" moved"))
        )

    changes = F.transform(F.map_keys("placement"), described)
    return F.array_join(changes, ", ")  # leaves out nulls: operators that stay as they are
