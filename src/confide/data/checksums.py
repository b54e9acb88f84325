"""Files as their authors published them: a damaged or different one is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# MD5, because that is what was published for them; it guards against damage, not against malice.
OFFICIAL = {
    "fashion-mnist": {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    "adult": {
        "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
        "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
    },
    "cifar10": {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    "cifar100": {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    },
}
# SHA-256 of the arrays in a packed file, one after the other, as `content` computes it.
PACKED = {
    "cifar10_part1.npz": "d24e595e1ac934e1d810734f81da441f1e0bf646d010959a21cb191477811cf1",
    "femnist_12clients.npz": "d396e95ea890855b6993d7c1b03098fbec854f505c07a0ce5c2ce687f48f0dee",
    "lfw62.npz": "21386ba46db546375967bffc7d0ea4610210da3b4267985228b8a013bcac63e0",
    "utkface.npz": "ed7c97cd5ba94a1ce5fe193451e3cf5b0260b9020f19eae3f7e52ea8d4923073",
}


def check_file(name: str, path: Path) -> None:
    """Refuse a file that is not the official one, where that is known."""
    known = OFFICIAL.get(name, {}).get(path.name)
    if known is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "md5").hexdigest()
    if found != known:
        raise ValueError(
            f"Data {name}: {path} has MD5 {found}, allowed is the official file's {known}; get it "
            "again, or say verify = false."
        )


def check_arrays(name: str, path: Path, arrays: Iterable[NDArray[Any]]) -> None:
    """Refuse a packed file whose arrays are not the known ones."""
    known, found = PACKED[path.name], content(arrays)
    if found != known:
        raise ValueError(
            f"Data {name}: the arrays of {path} have SHA-256 {found}, allowed is {known}; get it "
            "again, or say verify = false."
        )


def content(arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 of arrays one after the other."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
