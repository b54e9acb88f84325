import math

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant

from confide.published import fed_cdp
from published.truths import sampled_gaussian_moment

FED_SDP = {"mnist": 0.8536, "cifar10": 0.8536, "lfw": 0.6677, "adult": 0.3025, "cancer": 0.2065}
FED_CDP_1 = {"mnist": 0.0845, "cifar10": 0.0845, "lfw": 0.0689, "adult": 0.0494, "cancer": 0.0467}
FED_CDP_100 = {
    "mnist": 0.8227,
    "cifar10": 0.8227,
    "lfw": 0.6356,
    "adult": 0.2761,
    "cancer": 0.1469,
}
ROWS = [("fed-sdp", 1, FED_SDP), ("fed-sdp", 100, FED_SDP)]
ROWS += [("fed-cdp", 1, FED_CDP_1), ("fed-cdp", 100, FED_CDP_100)]


@pytest.mark.parametrize("dataset", fed_cdp.ROUNDS)
@pytest.mark.parametrize(("method", "L", "printed"), ROWS)
def test_table_6(method: fed_cdp.Method, L: int, printed: dict[str, float], dataset: str) -> None:
    ours = fed_cdp.table_6(method, dataset, L, unit="client").value
    assert ours == pytest.approx(printed[dataset], abs=1e-4)


def test_the_client_row_of_fed_cdp_repeats_the_record_row() -> None:
    record, client = (
        fed_cdp.table_6("fed-cdp", "lfw", 100, unit=unit) for unit in ("record", "client")
    )
    assert (record.value, record.unit) == (client.value, "record")
    assert client.unit == "client"
    assert "says nothing about a client" in client.note


def test_the_steps_are_one_more_than_the_table_says() -> None:
    without = fed_cdp.moments_epsilon(0.01, 6, 3 * 1, 1e-5).value
    assert fed_cdp.table_6("fed-cdp", "cancer", 1).value > without
    assert fed_cdp.moments_epsilon(0.01, 6, 4, 1e-5).value == pytest.approx(0.0467, abs=1e-4)


def test_moments_epsilon_by_quadrature() -> None:
    def epsilon(alpha: float) -> float:
        moment = sampled_gaussian_moment(0.1, 6, alpha)
        return (101 * math.log(moment) + math.log(1e5)) / (alpha - 1)

    least = min(epsilon(alpha) for alpha in range(20, 40))
    assert fed_cdp.moments_epsilon(0.1, 6, 101, 1e-5).value == pytest.approx(least, rel=1e-8)


def test_the_loss_distribution_of_the_largest_entry() -> None:
    event = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(6.0))
    exact = PLDAccountant(value_discretization_interval=1e-5).compose(event, 10_001)
    assert exact.get_epsilon(1e-5) == pytest.approx(0.600853, abs=1e-3)


def test_what_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="Fed-SDP does not support it"):
        fed_cdp.table_6("fed-sdp", "mnist", 1)
    with pytest.raises(ValueError, match="Table VI has mnist, cifar10"):
        fed_cdp.table_6("fed-cdp", "imagenet", 1)
    with pytest.raises(ValueError, match="method is 'dp-sgd'"):
        fed_cdp.table_6("dp-sgd", "mnist", 1)


def test_lemma_1_and_definition_3() -> None:
    assert fed_cdp.lemma_1_sigma(0.5, 1e-5).value == pytest.approx(
        2 * math.sqrt(2 * math.log(1.25e5))
    )
    with pytest.raises(ValueError, match=r"epsilon is 1\.5; it must be below 1"):
        fed_cdp.lemma_1_sigma(1.5, 1e-5)
    epsilon, delta = fed_cdp.definition_3(1, 1e-5, 0.01)
    assert epsilon.value == pytest.approx(math.log(1 + 0.01 * (math.e - 1)))
    assert delta.value == pytest.approx(1e-7)
