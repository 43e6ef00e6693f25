"""A synthetic fleet of pipelines with planted problems, and the truth about them."""

from monitoring_platform.demo.fleet import Fleet
from monitoring_platform.demo.making import generate

__all__ = ["Fleet", "generate"]
