import numpy as np
import pytest
import torch
from PIL import Image

from confide.data import federate, load


def picture(path, colour, size=(8, 6), mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def classes(folder, count=5, mode="L"):
    for k, name in enumerate(("cat", "dog")):
        for number in range(count):
            colour = 40 * k + number if mode == "L" else (40 * k + number, 1, 2)
            picture(folder / name / f"{number}.png", colour, mode=mode)


def bytes_of(data, x):
    return torch.round(data.pixels.restore(x) * 255).long()


def test_a_folder_with_one_sub_folder_per_class(tmp_path):
    classes(tmp_path / "pets")
    data = load(str(tmp_path / "pets"), test=0.4)
    assert data.name == "pets" and data.labels == ("cat", "dog") and data.shape == (1, 6, 8)
    assert torch.bincount(data.y_train).tolist() == [3, 3]
    assert torch.bincount(data.y_test).tolist() == [2, 2]
    values = bytes_of(data, data.x_train)[:, 0, 0, 0]
    assert torch.equal(values >= 40, data.y_train == 1)
    assert data.fingerprint == load(str(tmp_path / "pets"), test=0.4).fingerprint


def test_folders_for_training_and_tests(tmp_path):
    classes(tmp_path / "train", 4, "RGB")
    classes(tmp_path / "test", 2, "RGB")
    data = load(str(tmp_path))
    assert (len(data.x_train), len(data.x_test)) == (8, 4) and data.shape == (3, 6, 8)
    assert bytes_of(data, data.x_train)[5, :, 0, 0].tolist() == [41, 1, 2]
    assert load(str(tmp_path), grey=True, side=4).shape == (1, 4, 4)


def test_sizes_must_agree(tmp_path):
    classes(tmp_path)
    picture(tmp_path / "dog" / "9.png", 3, (5, 5))
    with pytest.raises(ValueError, match=r"has the size .* allowed is one size, or say side"):
        load(str(tmp_path))
    assert load(str(tmp_path), side=5).shape == (1, 5, 5)


def test_damaged_folders_are_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no sub-folders"):
        load(str(tmp_path / "empty"))
    (tmp_path / "empty" / "cat").mkdir()
    with pytest.raises(ValueError, match=r"cat has no images, allowed are files ending in .png"):
        load(str(tmp_path / "empty"))
    classes(tmp_path / "pets")
    (tmp_path / "pets" / "cat" / "x.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"is not an image that Pillow can read"):
        load(str(tmp_path / "pets"))
    whole = (tmp_path / "pets" / "cat" / "1.png").read_bytes()
    (tmp_path / "pets" / "cat" / "x.png").write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=r"x\.png is damaged"):
        load(str(tmp_path / "pets"), grey=True)
    classes(tmp_path / "two" / "train")
    classes(tmp_path / "two" / "test")
    picture(tmp_path / "two" / "test" / "eel" / "1.png", 3)
    with pytest.raises(ValueError, match=r"class 'eel' is in test and not in train"):
        load(str(tmp_path / "two"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    return tmp_path


def test_medical_mnist(here):
    for k, name in enumerate(("AbdomenCT", "BreastMRI", "CXR", "ChestCT", "Hand", "HeadCT")):
        for number in range(5):
            path = here / "medical-mnist" / name / f"00{number}.jpeg"
            picture(path, (40 * k,) * 3, (64, 64), "RGB")
    data = load("medical-mnist")
    assert data.shape == (1, 64, 64) and data.classes == 6 and len(data.x_test) == 6
    assert abs(int(bytes_of(data, data.x_train[data.y_train == 2]).max()) - 80) <= 2


def test_lfw_has_people_with_enough_pictures(here):
    for number in range(1, 21):
        picture(here / "lfw" / "Ada_B" / f"Ada_B_{number:04d}.jpg", (9, 9, 9), (250, 250), "RGB")
    for number in range(1, 24):
        picture(here / "lfw" / "Cy_D" / f"Cy_D_{number:04d}.jpg", (99, 9, 9), (250, 250), "RGB")
    picture(here / "lfw" / "Eve_F" / "Eve_F_0001.jpg", 0, (250, 250))
    data = load("lfw")
    assert data.labels == ("Ada_B", "Cy_D") and data.shape == (3, 32, 32)
    assert torch.bincount(data.y_train).tolist() == [15, 17]
    assert torch.equal(torch.tensor(data.columns["person"]), data.y_train)
    with pytest.raises(ValueError, match=r"least = 50"):
        load("lfw", least=50)


def test_the_middle_of_a_face_is_kept(here):
    array = np.zeros((250, 250, 3), np.uint8)
    array[62:188, 62:188] = 200
    for number in range(20):
        for person in ("Ada_B", "Cy_D"):
            path = here / "lfw" / person / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path)
    assert int(bytes_of(load("lfw"), load("lfw").x_train).min()) == 200


def test_utkface_by_file_names(here):
    names = [f"{age}_{age % 2}_{age % 5}_20170116{age:09d}.jpg.chip.jpg" for age in range(1, 101)]
    for name in [*names, "61_1_20170109142408075.jpg.chip.jpg", "cover.jpg"]:
        picture(here / "UTKFace" / name, (7, 7, 7), (20, 20), "RGB")
    data = load("utkface")
    assert len(data.x_train) + len(data.x_test) == 100 and data.shape == (3, 32, 32)
    # 12 children, 7 of 13 to 19, 20 below 40, 25 below 65, and the others.
    total = torch.bincount(torch.cat([data.y_train, data.y_test]))
    assert total.tolist() == [12, 7, 20, 25, 36]
    assert load("utkface", target="gender").classes == 2
    race = load("utkface", target="race", side=16)
    assert race.shape == (3, 16, 16) and set(race.columns) == {"age", "gender", "race"}
    assert np.array_equal(race.columns["race"], race.y_train.numpy())
    clients = federate(race, None, {"kind": "column", "column": "race"}, 0).clients
    assert len(clients) == 5
    with pytest.raises(ValueError, match=r"target = 'sex', allowed are age, gender, race"):
        load("utkface", target="sex")


def test_utkface_without_such_names(here):
    picture(here / "UTKFace" / "me.jpg", 3)
    with pytest.raises(ValueError, match=r"has no files such as 25_0_2"):
        load("utkface")
