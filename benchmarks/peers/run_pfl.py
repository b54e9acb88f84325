"""pfl-research's simulation: one process, or as many as torchrun starts.

Tensors in memory, users' batches cut once, the users of a cohort spread over the processes by their
sizes, nothing evaluated: what its guides say is fastest.

`python benchmarks/peers/run_pfl.py WORKLOAD --initial PATH`
`torchrun --standalone --nproc_per_node 2 benchmarks/peers/run_pfl.py WORKLOAD --initial PATH`
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from networks import arrays, build, clock_of, tensors
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
from protocol import Clock, Task, report, task
from torch import Tensor
from torch.nn.functional import cross_entropy


class Ticks(TrainingProcessCallback):
    """Tells the clock about the end of each round."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self._clock.round()
        return False, Metrics()


def central_model(what: Task) -> tuple[torch.nn.Module, PyTorchModel]:
    module = build(
        what.work.network,
        what.initial,
        double=what.double,
        dropout=what.dropout,
        device=what.device,
    )

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(module(x), y)

    def metrics(x: Tensor, y: Tensor) -> dict[str, Weighted]:
        return {"records": Weighted(len(y), 1)}  # asked for once, before and after the first round

    module.loss, module.metrics = loss, metrics  # type: ignore[assignment]
    server = torch.optim.SGD(module.parameters(), lr=1.0)
    return module, PyTorchModel(module, torch.optim.SGD, server)


def run(what: Task) -> None:
    if what.work.unit != "client":
        raise SystemExit(f"{what.work.name}: pfl clips no single examples")
    if what.threads:
        torch.set_num_threads(what.threads)
    np.random.seed(0)  # pfl's processes agree on their draws by it
    users = {
        str(client): Dataset(
            tensors(x, y, double=what.double, device=what.device), user_id=str(client)
        )
        for client, (x, y) in enumerate(what.data())
    }
    epochs = 1
    if not any(what.work.sizes):  # pfl evaluates the first round, and cannot on nothing at all
        one = Dataset((torch.zeros(1, *what.work.shape), torch.zeros(1)))
        users, epochs = dict.fromkeys(users, one), 0
    clock = clock_of(what.device)
    module, model = central_model(what)
    order = what.work.cohorts()
    federated = FederatedDataset(
        users.__getitem__,
        lambda: str(next(order)),
        user_id_to_weight={user: max(1, len(records)) for user, records in users.items()},
    )
    gaussian = GaussianMechanism(what.work.clip, what.noise)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=what.rounds,
            evaluation_frequency=what.rounds,
            train_cohort_size=what.work.cohort,
            val_cohort_size=None,
        ),
        SimulatedBackend(federated, federated, [CentrallyAppliedPrivacyMechanism(gaussian)]),
        model,
        NNTrainHyperParams(
            local_num_epochs=epochs,
            local_learning_rate=what.work.rate,
            local_batch_size=what.work.batch,
        ),
        callbacks=[Ticks(clock)],
        send_metrics_to_platform=False,
    )
    if int(os.environ.get("RANK", "0")) == 0:
        root = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        report(what, clock, arrays(module), ("pfl", "torch"), root)


if __name__ == "__main__":
    run(task(__doc__))
