"""Flower's simulation on Ray, one processor to a client; clients clip, the server adds the noise.

The cohort is the workload's: the message to a sampled node says which client it is to be. Model
and data are made once in each of Ray's processes, not once for each message.

`python benchmarks/peers/run_flower.py WORKLOAD --initial PATH`
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["FLWR_HOME"] = tempfile.mkdtemp()  # it writes an identity of the user there

from collections.abc import Iterable

from flower_client import train
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg
from flwr.simulation import run_simulation
from networks import build
from protocol import Clock, Task, report, task


class Cohorts(FedAvg):
    """FedAvg that tells each sampled node which client of the round's cohort it is."""

    def __init__(self, what: Task) -> None:
        super().__init__(
            fraction_train=what.work.cohort / len(what.work.sizes),
            fraction_evaluate=0.0,
            min_train_nodes=what.work.cohort,
            min_available_nodes=len(what.work.sizes),
        )
        self._work = what.work

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        messages = list(super().configure_train(server_round, arrays, config, grid))
        for message, client in zip(messages, self._work.members(server_round - 1), strict=True):
            own = ConfigRecord({**config, "client": client})
            message.content = RecordDict({"arrays": arrays, "config": own})
        return messages


def run(what: Task) -> None:
    if what.work.unit != "client":
        raise SystemExit(f"{what.work.name}: Flower clips no single examples")
    logging.getLogger("flwr").setLevel(logging.ERROR)
    client_app = ClientApp(mods=[fixedclipping_mod])
    client_app.train()(lambda message, context: train(what, message))
    model = build(what.work.network, what.initial, double=what.double, dropout=what.dropout)
    last: list[ArrayRecord] = []
    clock = Clock()

    def after_round(number: int, arrays: ArrayRecord) -> None:
        if last and last[0] is arrays:  # Flower goes on with what it had
            raise RuntimeError(f"{what.work.name}: Flower aggregated nothing in round {number}")
        last[:] = [arrays]
        if number:
            clock.round()
        if number == what.rounds:
            names = [name for name, _ in model.named_parameters()]
            values = arrays.to_torch_state_dict()
            found = {name: values[name].numpy() for name in names}
            report(what, clock, found, ("flwr", "ray", "torch"))

    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        DifferentialPrivacyClientSideFixedClipping(
            Cohorts(what), what.noise, what.work.clip, what.work.cohort
        ).start(
            grid,
            ArrayRecord(model.state_dict()),
            num_rounds=what.rounds,
            evaluate_fn=after_round,
        )

    run_simulation(
        server_app,
        client_app,
        num_supernodes=len(what.work.sizes),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0},
            "init_args": {"include_dashboard": False},
        },
    )


if __name__ == "__main__":
    try:
        run(task(__doc__))
    finally:
        shutil.rmtree(os.environ["FLWR_HOME"])
