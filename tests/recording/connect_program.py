"""A program that runs a pipeline over Spark Connect by itself, recorded. Arguments: the spec, the folder of logs."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
from pyspark.sql import SparkSession

from monitoring_platform.recording.declarative import capture

path, events = Path(sys.argv[1]), Path(sys.argv[2])
spec = load_pipeline_spec(path)
spark = SparkSession.builder.remote("local[2]").getOrCreate()
with capture(events, spec.name, spec.storage):
    graph = create_dataflow_graph(spark, None, None, spec.configuration)
    register_definitions(path, SparkConnectGraphElementRegistry(spark, graph), spec, spark, graph)
    handle_pipeline_events(start_run(spark, graph, None, False, None, False, spec.storage))
