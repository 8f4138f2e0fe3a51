"""A user's mistake in the data ends a run with one line, at once, from worker processes too."""

import shutil
from random import Random

import pytest
from PIL import Image

from projects import copy_example, run

pytestmark = pytest.mark.xdist_group("bad data")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    project = copy_example("image-classification", tmp_path_factory.mktemp("images"))
    run(project, "sample_data.py")
    return project


def refusal(project, *flags):
    """The one line with which train.py ends."""
    said = run(project, "train.py", *flags, status=1).stderr.strip()
    assert "\n" not in said
    return said


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unreadable_image(images, workers):
    file = images / "data/train/3/0000.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    said = refusal(images, "--num-workers", workers, "--run-dir", f"runs/{workers}")
    file.write_bytes(whole)
    assert "data/train/3/0000.png" in said


def test_images_of_any_mode(images):
    draw = Random(0)
    for mode in ("1", "L", "P", "RGBA", "CMYK"):
        image = Image.frombytes("L", (20, 30), draw.randbytes(600)).convert(mode)
        image.save(images / f"data/train/3/{mode}.{'tiff' if mode == 'CMYK' else 'png'}")
    Image.frombytes("I;16", (20, 15), draw.randbytes(600)).save(images / "data/train/3/sixteen bits.png")
    done = run(images, "train.py", "--epochs", "1", "--run-dir", "runs/modes")
    assert "1,443 training" in done.stdout


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda data: shutil.rmtree(data / "val"), "no images: expected"),
        (lambda data: (data / "train/empty").mkdir(), "holds no image"),
        (lambda data: shutil.copytree(data / "val/3", data / "val/stranger"), "no training images of stranger"),
        (lambda data: [shutil.rmtree(folder) for folder in sorted((data / "train").iterdir())[1:]], "one class"),
    ],
    ids=["no val", "an empty class", "a class that training lacks", "one class"],
)
def test_folders_that_are_not_as_they_should(images, tmp_path, break_it, message):
    shutil.copytree(images / "data", tmp_path / "data")
    break_it(tmp_path / "data")
    assert message in refusal(images, "--data-dir", tmp_path / "data", "--run-dir", tmp_path / "run")
