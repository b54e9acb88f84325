"""The data sets by name: what they are, under which licence, and where they may be found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.data.places import HUB, Files, Package, Way

_HERE = str(Path(__file__).parent)
_HUB = "confide.data.hub:read_hub"
_FOUR = (
    *("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    *("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
_EMNIST_SPLITS = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
_CIFAR10 = (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch")


@dataclass(frozen=True)
class Entry:
    """A data set as it is published; what is found here may be a part of it, and says so."""

    name: str
    what: str
    records: str  # for training / for tests, or all of them
    classes: str
    licence: str
    home: str
    get: str  # how to get it, as a part of a sentence
    ways: tuple[Way, ...]


def _in(folders: Iterable[str], files: tuple[str, ...], reader: str) -> tuple[Files, ...]:
    """The same files in one of several folders."""
    return tuple(Files(folder, files, f"confide.data.{reader}") for folder in folders)


def _hub(name: str, **settings: Any) -> Package:
    return Package(HUB, name, _HUB, settings=settings)


_ENTRIES = (
    Entry(
        name="mnist",
        what="handwritten digits, 28x28 grey",
        records="60,000 / 10,000",
        classes="10",
        licence="CC BY-SA 3.0",
        home="Y. LeCun, C. Cortes, C. Burges: the MNIST database of handwritten digits",
        get="it comes with confide, so the installation is damaged: install it again",
        # An absolute folder wins over every root that it is joined to.
        ways=(Files(_HERE, ("mnist.npz",), "confide.data.pictures:read_mnist"),),
    ),
    Entry(
        name="fashion-mnist",
        what="pictures of clothes, 28x28 grey",
        records="60,000 / 10,000",
        classes="10",
        licence="MIT",
        home="https://github.com/zalandoresearch/fashion-mnist",
        get="put its four -ubyte.gz files into fashion-mnist/, or pip install 'confide[data]'",
        ways=(
            *_in(("FashionMNIST/raw", "fashion-mnist"), _FOUR, "idx:read_fashion"),
            _hub(
                "zalando-datasets/fashion_mnist",
                image="image",
                target="label",
                mean=(0.2860,),
                deviation=(0.3530,),
            ),
        ),
    ),
    Entry(
        name="emnist",
        what="handwritten letters and digits, 28x28 grey",
        records="697,932 / 116,323",
        classes="62",
        licence="none stated; made by G. Cohen et al. from NIST Special Database 19",
        home="https://www.nist.gov/itl/products-and-services/emnist-dataset",
        get="unpack its gzip.zip into emnist/",
        ways=tuple(
            way
            for split in _EMNIST_SPLITS
            for way in _in(
                ("EMNIST/raw", "emnist", "emnist/gzip", "gzip"),
                (f"emnist-{split}-train-images-idx3-ubyte",),
                "idx:read_emnist",
            )
        ),
    ),
    Entry(
        name="femnist",
        what="EMNIST by writer (LEAF), 28x28 grey",
        records="about 800,000",
        classes="62",
        licence="BSD 2-Clause (LEAF)",
        home="https://leaf.cmu.edu",
        get="put LEAF's data/train and data/test into femnist/, or pip install 'confide[data]'",
        ways=(
            *_in(("femnist", "femnist/data"), ("train/", "test/"), "leaf:read_leaf"),
            Files(
                "",
                ("femnist_12clients.npz",),
                "confide.data.pictures:read_femnist_part",
                "here only 5,997 digits by 12 writers, 10 classes",
            ),
            _hub(
                "flwrlabs/femnist",
                image="image",
                target="character",
                columns={"writer": "writer_id"},
            ),
        ),
    ),
    Entry(
        name="cifar10",
        what="small pictures, 32x32 in colour",
        records="50,000 / 10,000",
        classes="10",
        licence="none stated; cite A. Krizhevsky: Learning Multiple Layers of Features, 2009",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        get="unpack cifar-10-python.tar.gz, or pip install 'confide[data]'",
        ways=(
            *_in(("cifar-10-batches-py",), _CIFAR10, "cifar:read_cifar10"),
            Files(
                "",
                ("cifar10_part1.npz",),
                "confide.data.pictures:read_cifar10_part",
                "here only the first 18,000 training images, and all test images",
            ),
            _hub(
                "uoft-cs/cifar10",
                image="img",
                target="label",
                mean=(0.4914, 0.4822, 0.4465),
                deviation=(0.2470, 0.2435, 0.2616),
            ),
        ),
    ),
    Entry(
        name="cifar100",
        what="small pictures, 32x32 in colour",
        records="50,000 / 10,000",
        classes="100 (or 20)",
        licence="none stated; cite A. Krizhevsky: Learning Multiple Layers of Features, 2009",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        get="unpack cifar-100-python.tar.gz, or pip install 'confide[data]'",
        ways=(
            *_in(("cifar-100-python",), ("train", "test"), "cifar:read_cifar100"),
            _hub(
                "uoft-cs/cifar100",
                image="img",
                target="fine_label",
                mean=(0.5071, 0.4865, 0.4409),
                deviation=(0.2673, 0.2564, 0.2762),
            ),
        ),
    ),
    Entry(
        name="medical-mnist",
        what="six kinds of medical images, 64x64 grey",
        records="58,954",
        classes="6",
        licence="CC BY-SA 4.0",
        home="https://github.com/apolanco3225/Medical-MNIST-Classification",
        get="unpack it, so that medical-mnist/ has the folders AbdomenCT, BreastMRI and the others",
        ways=(
            *_in(
                ("medical-mnist", "Medical-MNIST", "medical_mnist"),
                ("AbdomenCT/", "BreastMRI/", "CXR/", "ChestCT/", "Hand/", "HeadCT/"),
                "folders:read_medical",
            ),
            Files(
                "",
                ("medical_mnist.npz",),
                "confide.data.pictures:read_medical",
                "here only 6,000 images for training and 1,500 for tests",
            ),
        ),
    ),
    Entry(
        name="lfw",
        what="faces of people with 20 images or more, 32x32 in colour",
        records="3,023",
        classes="62",
        licence="for research; cite G. Huang et al.: Labeled Faces in the Wild, 2007",
        home="https://vis-www.cs.umass.edu/lfw/",
        get="unpack lfw.tgz, so that lfw/ has one folder for each person",
        ways=(
            *_in(
                ("lfw-py/lfw_funneled", "lfw-py/lfw-deepfunneled", "lfw-py/lfw", "lfw"),
                ("./",),
                "folders:read_lfw",
            ),
            Files("", ("lfw62.npz",), "confide.data.pictures:read_lfw"),
        ),
    ),
    Entry(
        name="utkface",
        what="faces with age, gender and race, 32x32 in colour",
        records="over 20,000",
        classes="5 ages, 2 genders, 5 races",
        licence="for non-commercial research only",
        home="https://susanqq.github.io/UTKFace/",
        get="unpack the aligned and cropped faces into UTKFace/",
        ways=(
            *_in(("UTKFace", "utkface"), ("./",), "folders:read_utkface"),
            Files(
                "",
                ("utkface.npz",),
                "confide.data.pictures:read_utkface",
                "here only 6,000 faces at random",
            ),
        ),
    ),
    Entry(
        name="adult",
        what="does a person earn more than 50,000 a year, 105 inputs",
        records="32,561 / 16,281",
        classes="2",
        licence="CC BY 4.0",
        home="https://archive.ics.uci.edu/dataset/2/adult",
        get="put adult.data and adult.test into adult/",
        ways=(
            *_in(("adult", ""), ("adult.data", "adult.test"), "censuses:read_adult"),
            *_in(("", "adult"), ("adult.csv",), "censuses:read_adult_csv"),
        ),
    ),
    Entry(
        name="cancer",
        what="is a tumour malignant, 30 inputs (Wisconsin, diagnostic)",
        records="569",
        classes="2",
        licence="CC BY 4.0",
        home="https://archive.ics.uci.edu/dataset/17",
        get="pip install 'confide[data]'",
        ways=(Package("sklearn", "cancer", "confide.data.science:read_cancer"),),
    ),
    Entry(
        name="ipums",
        what="does a person earn more than 25,000 a year, your own extract of a census",
        records="as extracted",
        classes="2",
        licence="IPUMS terms: registration, no redistribution",
        home="https://usa.ipums.org",
        get="make an extract with INCTOT and put it there as ipums.csv",
        ways=(
            *_in(("",), ("ipums.csv",), "censuses:read_ipums"),
            *_in(("",), ("ipums.parquet",), "censuses:read_ipums"),
        ),
    ),
    Entry(
        name="wind",
        what="the power of 7 wind farms over the next 48 hours",
        records="3,038 / 763",
        classes="48 numbers",
        licence="none stated; cite T. Hong et al.: GEFCom 2012, 2014",
        home="Global Energy Forecasting Competition 2012, wind track",
        get="put the competition's train.csv into gefcom2012/",
        ways=(
            *_in(("gefcom2012",), ("train.csv",), "wind:read_official"),
            *_in(("",), ("gefcom2012_wind_power.csv",), "wind:read_packed"),
        ),
    ),
    Entry(
        name="digits",
        what="handwritten digits, 8x8 grey",
        records="1,797",
        classes="10",
        licence="CC BY 4.0",
        home="https://archive.ics.uci.edu/dataset/80",
        get="pip install 'confide[data]'",
        ways=(Package("sklearn", "digits", "confide.data.science:read_digits"),),
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
