"""Who is in the fleet: pipelines with their flows, rules and oddities, and which of them carries a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from monitoring_platform.demo.drafting import drafts
from monitoring_platform.demo.lineage import wire
from monitoring_platform.demo.model import Pipeline, Secrets
from monitoring_platform.demo.planting import with_plants

OWNERS = {
    "bronze": "ingestion-team",
    "silver": "core-data-team",
    "gold": "analytics-team",
    "gateway": "platform-team",
}


@dataclass(frozen=True)
class Fleet:
    """All pipelines of one demo."""

    pipelines: tuple[Pipeline, ...]

    @classmethod
    def build(cls, pipelines: int, seed: int) -> Fleet:
        """The fleet of a seed; a bigger one has other plants but the same names."""
        rng = Random(f"fleet {seed}")
        planted = with_plants(drafts(pipelines, seed), rng)
        return cls(tuple(wire(_with_secrets(planted, rng), seed)))

    @property
    def secrets(self) -> list[str]:
        """Every planted credential."""
        return [text for p in self.pipelines if p.secrets for text in (p.secrets.token, p.secrets.password)]


def _with_secrets(fleet: list[Pipeline], rng: Random) -> list[Pipeline]:
    """Credentials in the configuration of a few pipelines with clusters of their own, and of the one with a sink."""
    ordinary = [n for n, p in enumerate(fleet) if not p.runs_without_end and p.plant is None]
    chosen = rng.sample(ordinary, min(4, len(ordinary))) + [n for n, p in enumerate(fleet) if p.plant == "sink"]
    for number in chosen:
        secrets = Secrets(f"dapi{rng.getrandbits(128):032x}", f"Pw-{rng.getrandbits(64):016x}-demo")
        fleet[number] = replace(fleet[number], serverless=False, secrets=secrets)
    return fleet
