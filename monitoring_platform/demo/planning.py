"""How the refresh of a materialized view is planned."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from monitoring_platform.demo.events import Json
from monitoring_platform.demo.model import Flow

_CLASSES = {"COMPLETE_RECOMPUTE": "full", "NO_OP": "no_op"}


@dataclass(frozen=True)
class Obstacle:
    """Why a view cannot be refreshed incrementally."""

    issue_type: str
    sub_type: str | None = None
    expression: str | None = None
    table: str | None = None

    def as_json(self) -> Json:
        """The element of incrementalization_issues."""
        issue: Json = {"issue_type": self.issue_type, "prevent_incrementalization": True}
        if self.sub_type is not None:
            issue["plan_not_incrementalizable_sub_type"] = self.sub_type
        if self.expression is not None:
            issue["expression_name"] = self.expression
        if self.table is not None:
            issue["table_information"] = {"table_name": self.table}
        return issue


FIRST_BUILD = Obstacle("CHANGE_SET_MISSING")


def technique(flow: Flow, obstacle: Obstacle | None, rng: Random) -> str:
    """Complete where something prevents anything else; nothing to do now and then where no rows are told anyway."""
    if obstacle is not None:
        return "COMPLETE_RECOMPUTE"
    quiet = flow.counts == "nothing" and rng.random() < 0.12
    return "NO_OP" if quiet else rng.choice(("ROW_BASED", "ROW_BASED", "GROUP_AGGREGATE"))


def technique_class(chosen: str) -> str:
    """full, incremental or no_op."""
    return _CLASSES.get(chosen, "incremental")


def back_ticked(name: str) -> str:
    """A dataset's name with every part in back-ticks."""
    return ".".join(f"`{part}`" for part in name.split("."))


def information(flow: Flow, target: str, chosen: str, obstacle: Obstacle | None) -> Json:
    """The body of planning_information: the chosen technique, the others, and the tables with their sizes."""
    size = float(flow.usual_rows * 900)
    techniques: list[Json] = [] if obstacle is None else [{"incrementalization_issues": [obstacle.as_json()]}]
    techniques.append(_technique(chosen, size * (1.0 if obstacle else 0.02), is_chosen=True))
    if obstacle is None:
        techniques.append(_technique("COMPLETE_RECOMPUTE", size, is_chosen=False))
    return {
        "technique_information": techniques,
        "source_table_information": [
            {
                "table_name": back_ticked(name),
                "full_size": size,
                "change_size": size * 0.02,
                "is_size_after_pruning": True,
                "is_row_id_enabled": True,
                "is_cdf_enabled": True,
            }
            for name in flow.inputs
        ],
        "target_table_information": {
            "table_name": back_ticked(target),
            "full_size": size * 0.4,
            "is_row_id_enabled": True,
        },
    }


def _technique(name: str, cost: float, *, is_chosen: bool) -> Json:
    return {
        "maintenance_type": f"MAINTENANCE_TYPE_{name}",
        "is_chosen": is_chosen,
        "is_applicable": True,
        "cost": cost,
    }
