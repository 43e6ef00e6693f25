"""A stand-in Databricks workspace: a local HTTP server that refuses what the real service refuses.

    with Workspace(folder) as workspace:
        monitor = workspace.principal("monitor@example.com", token="dapi-1")
        sales = workspace.pipeline("sales", owner="ana@example.com", catalog="main", schema="sales", events=log)
        sales.grant(monitor, "CAN_VIEW").publish("sales_log", to=monitor)
        warehouse = workspace.warehouse("w1", users=[monitor])
        WorkspaceClient(config=Config(host=workspace.host, token="dapi-1"))

One history of events is served in every shape in which the service has it: REST, published and hidden table, the
function `event_log()`, the system table, a legacy storage folder. SQL statements run on real tables. Whatever the
service would not know is answered with ENDPOINT_NOT_FOUND and listed in `unknown_calls`.
"""

from tests.workspace.model import Job, JobRun, Pipeline, Principal, Relation, Update, Warehouse
from tests.workspace.refusal import SqlError
from tests.workspace.server import Call, Faults
from tests.workspace.world import Workspace

__all__ = [
    "Call",
    "Faults",
    "Job",
    "JobRun",
    "Pipeline",
    "Principal",
    "Relation",
    "SqlError",
    "Update",
    "Warehouse",
    "Workspace",
]
