"""The decision log: what a policy asked for, why, and what came of it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.schema import DECISIONS, RECEIPTS, check


def decision_log(decisions: DataFrame, receipts: DataFrame) -> DataFrame:
    """One row per plan, and per turn in which something was noted: run_id, time_s, change, reason, notes,
    planned, outcome, downtime_s, message.

    A receipt answers the last plan before it was asked for: at the same time on a simulated testbed, some
    milliseconds earlier on a real one. Outcome is null where no receipt came.
    """
    is_planned = F.col("placement").isNotNull()
    told = check(decisions, DECISIONS, "table decisions").where(is_planned | (F.size("notes") > 0))
    notes = F.transform("notes", _note)
    asked = told.select(
        "run_id",
        "time_s",
        _change().alias("change"),
        "reason",
        notes.alias("notes"),
        is_planned.alias("planned"),
    )
    answers = check(receipts, RECEIPTS, "table receipts").select(
        F.col("run_id").alias("answered_run"), "requested_s", "outcome", "downtime_s", "message"
    )
    next_plan_s = F.lead("time_s").over(Window.partitionBy("run_id", "planned").orderBy("time_s"))
    is_answer = (
        (F.col("run_id") == F.col("answered_run"))
        & F.col("planned")
        & (F.col("requested_s") >= F.col("time_s"))
        & (F.col("requested_s") < F.coalesce("next_plan_s", F.lit(float("inf"))))
    )
    answered = asked.withColumn("next_plan_s", next_plan_s).join(answers, on=is_answer, how="left")
    return answered.drop("answered_run", "requested_s", "next_plan_s").orderBy("run_id", "time_s")


def _note(note: Column) -> Column:
    """For example "request: map-1 → map-2 (load 0.9)"."""

    def said(key: Column, value: Column) -> Column:
        return F.concat(key, F.lit(" "), value)

    between = F.concat_ws(" → ", _unless_empty(note["sender"]), _unless_empty(note["receiver"]))
    facts = F.array_join(
        F.transform(F.map_entries(note["data"]), lambda pair: said(pair["key"], pair["value"])), ", "
    )
    in_brackets = F.concat(F.lit("("), _unless_empty(facts), F.lit(")"))
    details = F.concat_ws(" ", _unless_empty(between), in_brackets)
    return F.concat_ws(": ", note["kind"], _unless_empty(details))


def _unless_empty(text: Column) -> Column:
    return F.when(text != "", text)


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
