from datetime import datetime, timedelta

import pytest
import torch

from confide.data import federate, load
from confide.data.wind import FARMS

START = datetime(2010, 1, 1)


def write(folder, hours, name="gefcom2012/train.csv"):
    """The power of farm k at hour h is (h + 1000 k) / 10,000."""
    lines = ["date," + ",".join(FARMS)]
    for h in hours:
        date = (START + timedelta(hours=int(h))).strftime("%Y%m%d%H")
        lines.append(f"{date}," + ",".join(f"{(h + 1000 * k) / 10_000:.4f}" for k in range(7)))
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    return tmp_path


def test_windows_hold_the_hours_they_say(here):
    write(here, range(240))
    data = load("wind", past=12, ahead=6, step=6)
    assert data.shape == (1, 1, 12) and data.outputs == 6 and data.classes is None
    farm = torch.tensor(data.columns["farm"])
    assert torch.bincount(farm).tolist() == [len(farm) // 7] * 7
    x = (data.x_train[:, 0, 0] * 10_000).round().long() - 1000 * farm[:, None]
    y = (data.y_train * 10_000).round().long() - 1000 * farm[:, None]
    assert torch.equal(torch.cat([x, y], 1), x[:, :1] + torch.arange(18))
    assert torch.all(x[:, 0] % 6 == 0)


def test_no_hour_is_in_training_and_in_tests(here):
    write(here, range(240))
    data = load("wind", past=12, ahead=6, step=6)
    last = (data.y_train[::7, -1] * 10_000).round().max()
    first = (data.x_test[::7, 0, 0, 0] * 10_000).round().min()
    assert last < first


def test_windows_do_not_reach_over_gaps(here):
    hours = [h for h in range(240) if not 100 <= h < 104]
    write(here, hours, "gefcom2012_wind_power.csv")
    data = load("wind", past=12, ahead=6, step=1)
    parts = [data.x_train[:, 0, 0], data.y_train], [data.x_test[:, 0, 0], data.y_test]
    for x, y in parts:
        series = (torch.cat([x, y], 1) * 10_000).round()
        assert torch.all(torch.diff(series) == 1)


def test_the_farms_are_natural_clients(here):
    write(here, range(240))
    data = load("wind", past=12, ahead=6, step=6)
    federation = federate(data, None, {"kind": "column", "column": "farm"}, 0)
    assert len(federation.clients) == 7
    assert federation.histogram() is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"past": 0}, "past = 0, allowed is a whole number of at least 1"),
        ({"past": 300}, "leave 0 windows for training"),
        ({"test": 0}, "test = 0, allowed is a number between 0 and 1"),
    ],
)
def test_wrong_settings(here, options, says):
    write(here, range(240))
    with pytest.raises(ValueError, match=says):
        load("wind", **options)


def test_wrong_files(here):
    write(here, [0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"the dates do not rise"):
        load("wind")
    path = here / "gefcom2012" / "train.csv"
    path.write_text("date,wp1\n2010010100,0.1\n")
    with pytest.raises(ValueError, match=r"has no column 'wp2' of numbers"):
        load("wind")
    path.write_text("date," + ",".join(FARMS) + "\n" + "2010019900" + ",0.1" * 7 + "\n")
    with pytest.raises(ValueError, match=r"date .* allowed is YYYYMMDDHH"):
        load("wind")
