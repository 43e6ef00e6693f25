"""A cycle that is launched through Pipes and dies in the middle, in a way that its process does not tell."""

import os

from dagster_pipes import (
    PipesEnvVarParamsLoader,
    PipesUnityCatalogVolumesContextLoader,
    PipesUnityCatalogVolumesMessageWriter,
    open_dagster_pipes,
)

with open_dagster_pipes(
    params_loader=PipesEnvVarParamsLoader(),
    context_loader=PipesUnityCatalogVolumesContextLoader(),
    message_writer=PipesUnityCatalogVolumesMessageWriter(interval=0.2),
) as pipes:
    pipes.report_asset_materialization(asset_key="pipelines")
os._exit(0)
