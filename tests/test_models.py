import pickle

import pytest
import torch
from torch import nn

from confide.engine.flat import Flat
from confide.models import MODELS, build
from confide.models.norms import group_normalised, groups

DIGIT, COLOUR, SERIES = (1, 28, 28), (3, 32, 32), (1, 1, 48)
# Counted by hand from the layers' sizes; the last three are the published counts.
SIZES = [
    ("mlp", DIGIT, 10, 784 * 32 + 32 + 330),
    ("mlp256", DIGIT, 10, 203_530),
    ("svm", (30,), 2, 62),
    ("tabular", (105,), 2, 105 * 64 + 64 + 64 * 32 + 32 + 66),
    ("cnn1", COLOUR, 10, 3 * 16 * 25 + 16 + 16 * 18 * 18 * 10 + 10),
    ("cnn2", DIGIT, 10, 416 + 12_832 + 512 * 64 + 64 + 650),
    ("cnn2-flat", COLOUR, 62, 1_216 + 12_832 + 800 * 62 + 62),
    ("cnn4", (1, 64, 64), 6, 160 + 4_640 + 18_496 + 36_928 + 1024 * 128 + 128 + 774),
    ("wind-cnn", SERIES, 48, 96 + 2_592 + 384 * 64 + 64 + 65 * 48),
    ("leaf-cnn", DIGIT, 10, 1_663_370),
    ("simple-cnn", COLOUR, 10, 1_626_442),
    ("resnet18", COLOUR, 10, 11_173_962),
]


def numbers(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(map(torch.equal, first.parameters(), second.parameters()))


def test_every_model_is_in_the_table_of_sizes():
    assert {row[0] for row in SIZES} == set(MODELS)


@pytest.mark.parametrize(("name", "shape", "outputs", "size"), SIZES, ids=[r[0] for r in SIZES])
def test_models_have_the_documented_size_and_no_buffers(name, shape, outputs, size):
    module = build(name, shape, outputs, 0)
    assert numbers(module) == size
    assert not list(module.buffers())
    assert module.training
    assert isinstance(module, nn.Sequential)


@pytest.mark.parametrize("name", ["mlp", "simple-cnn"])
def test_parameters_depend_on_the_seed_alone(name):
    torch.manual_seed(3)
    first = build(name, COLOUR, 10, 7)
    torch.rand(11)
    after = torch.get_rng_state()
    second = build(name, COLOUR, 10, 7)
    assert torch.equal(torch.get_rng_state(), after)
    assert same(first, second)
    assert not same(first, build(name, COLOUR, 10, 8))
    assert same(build(name, COLOUR, 10, 2**80), build(name, COLOUR, 10, 2**80))


def test_losses_of_the_models():
    assert build("svm", (4,), 2, 0).loss == "hinge"
    assert build("wind-cnn", SERIES, 48, 0).loss == "squared"
    assert not hasattr(build("mlp", (4,), 2, 0), "loss")


def test_settings():
    assert numbers(build("mlp", (10,), 2, 0, hidden=[5, 3])) == 55 + 18 + 8
    assert numbers(build("mlp", (10,), 2, 0, hidden=[])) == 22
    quiet = build("simple-cnn", COLOUR, 10, 0, dropout=False)
    assert not any(isinstance(part, nn.Dropout) for part in quiet.modules())


@pytest.mark.parametrize(
    ("name", "shape", "settings", "says"),
    [
        ("cnn3", DIGIT, {}, "name = 'cnn3' is unknown, allowed are .* Did you mean cnn"),
        ("mlp", (4,), {"hiden": 3}, "unknown setting 'hiden', .* Did you mean hidden?"),
        ("mlp", (4,), {"hidden": [0]}, r"Model mlp: hidden = \[0\], allowed is a list of whole"),
        ("tabular", (4,), {"hidden": 32}, "Model tabular: hidden = 32, allowed is a list"),
        ("simple-cnn", COLOUR, {"dropout": 0.5}, "dropout = 0.5, allowed are true and false"),
        ("mlp", (4,), {"norm": "batch"}, "norm = 'batch', allowed is \"group\""),
        ("cnn2", (30,), {}, r"an image has 3 sizes, not 1\), allowed are images"),
        ("cnn2", (1, 8, 8), {}, "cannot take these records"),
    ],
)
def test_wrong_models_are_one_sentence(name, shape, settings, says):
    with pytest.raises(ValueError, match=says) as refused:
        build(name, shape, 10, 0, **settings)
    assert "\n" not in str(refused.value)


OWN = """
import torch
from torch import nn

class Net(nn.Module):
    loss = "hinge"
    def __init__(self, outputs, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(9, width), nn.BatchNorm1d(width),
                                    nn.Linear(width, outputs))
    def forward(self, x):
        return self.layers(x)

def pictures():
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 2))

ready = nn.Sequential(nn.Flatten(), nn.Linear(9, 2))
number = 3
def strange(): return 7
def narrow(): return nn.Sequential(nn.Flatten(), nn.Linear(9, 3))
class Lossy(Net): loss = "hinges"
class Lazy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
class Moody(Net):
    def forward(self, x): return {}["missing"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(OWN)
    return path


def test_a_model_of_one_s_own(file):
    module = build(f"{file}:Net", (1, 3, 3), 2, 0, width=5)
    assert module.loss == "hinge"
    assert numbers(module) == 50 + 10 + 12
    assert same(module, build(f"{file}:Net", (1, 3, 3), 2, 0, width=5))
    assert same(build(f"{file}:ready", (9,), 2, 0), build(f"{file}:ready", (9,), 2, 0))
    assert build(f"{file}:pictures", (1, 3, 3), 2, 0)[1].running_mean is not None


def test_group_normalisation_leaves_no_buffers(file):
    for name in ("Net", "pictures", "Lazy"):
        module = build(f"{file}:{name}", (1, 3, 3), 2, 0, norm="group")
        assert not list(module.buffers())
        assert any(isinstance(part, nn.GroupNorm) for part in module.modules())


def test_a_lone_normalisation_is_replaced_too():
    assert isinstance(group_normalised(nn.BatchNorm2d(64, affine=False)), nn.GroupNorm)


def test_a_shared_normalisation_stays_shared_and_keeps_its_values():
    shared = nn.BatchNorm2d(8)
    nn.init.normal_(shared.weight)
    module = nn.Sequential(shared, nn.Sequential(nn.ReLU(), shared))
    changed = group_normalised(module)
    assert isinstance(changed[0], nn.GroupNorm) and changed[0] is changed[1][1]
    assert torch.equal(changed[0].weight, shared.weight)
    assert not list(changed.buffers())


def test_batch_normalisation_is_refused_with_its_remedy(file):
    with pytest.raises(ValueError, match=r"buffer .* of BatchNorm2d .*--set model\.norm=group"):
        Flat(build(f"{file}:pictures", (1, 3, 3), 2, 0))
    assert Flat(build(f"{file}:pictures", (1, 3, 3), 2, 0, norm="group")).lengths


def test_two_files_of_one_name_are_two_models(tmp_path):
    for width in (3, 4):
        (tmp_path / str(width)).mkdir()
        (tmp_path / str(width) / "net.py").write_text(
            "from torch import nn\n"
            f"class Net(nn.Sequential):\n"
            f"    def __init__(self):\n"
            f"        super().__init__(nn.Linear(9, {width}), nn.Linear({width}, 2))\n"
        )
    models = [build(f"{tmp_path}/{width}/net.py:Net", (9,), 2, 0) for width in (3, 4)]
    assert [numbers(module) for module in models] == [38, 50]
    assert [numbers(pickle.loads(pickle.dumps(module))) for module in models] == [38, 50]


def test_groups_have_at_least_four_channels():
    assert [groups(c) for c in (1, 3, 6, 16, 64, 100, 512)] == [1, 1, 1, 4, 16, 25, 32]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Nett", "has no 'Nett'. Did you mean Net?"),
        ("number", "it is a int, allowed are a torch.nn.Module"),
        ("strange", "it gives a int, allowed is a torch.nn.Module"),
        ("narrow", r"give \(2, 3\), allowed is a tensor of shape \(2, 2\)"),
        ("Moody", "it cannot take these records .'missing'., allowed are what it was"),
        ("Lossy", "loss = 'hinges', allowed are .* Did you mean hinge?"),
    ],
)
def test_wrong_models_of_one_s_own(file, name, says):
    with pytest.raises(ValueError, match=says):
        build(f"{file}:{name}", (1, 3, 3), 2, 0)


def test_wrong_files(tmp_path):
    with pytest.raises(ValueError, match="does not exist, allowed is a Python file"):
        build(f"{tmp_path}/none.py:Net", (9,), 2, 0)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    with pytest.raises(ValueError, match=r"does not load \(ModuleNotFoundError"):
        build(f"{tmp_path}/broken.py:Net", (9,), 2, 0)
