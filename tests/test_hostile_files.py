"""Files that somebody else wrote: a checkpoint runs no code, names and cells of any kind break nothing."""

import csv
import io
import json
import os
import pickle
import shutil
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from modules import imported_from

pytestmark = pytest.mark.xdist_group("hostile files")


class Payload:
    """Whoever unpickles it runs a command, which leaves the file `ran` in the folder of the process."""

    def __reduce__(self) -> tuple:
        return os.system, ("touch ran",)


def saved(content: object, **how: bool) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **how)
    return file.getvalue()


def zipped(opcodes: bytes) -> bytes:
    """An archive such as torch.save() writes, around these instructions to the unpickler."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (("data.pkl", opcodes), ("version", b"3\n"), ("byteorder", b"little")):
            archive.writestr(f"archive/{name}", content)
    return file.getvalue()


def tarred() -> bytes:
    """As the first versions of torch wrote it."""
    file, content = io.BytesIO(), pickle.dumps(Payload())
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return file.getvalue()


def scripted() -> bytes:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    return file.getvalue()


def array_of_objects() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Payload()], dtype=object))
    return file.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


PLAIN = {"model": {}, "config": {}, "classes": {}, "random": {}}
ORDERED_DICT = b"\x80\x02ccollections\nOrderedDict\n"

CRAFTED: dict[str, Callable[[], bytes]] = {
    "a pickle": lambda: pickle.dumps(Payload()),
    "a pickle in text": lambda: pickle.dumps(Payload(), 0),
    "torch's archive": lambda: saved(Payload()),
    "a good checkpoint but for one value": lambda: saved(PLAIN | {"config": {"lr": Payload()}}),
    "the same in torch's format before": lambda: saved(
        PLAIN | {"config": Payload()}, _use_new_zipfile_serialization=False
    ),
    "an array of objects in it": lambda: saved(PLAIN | {"preprocessing": np.array([Payload()], dtype=object)}),
    "an array of objects": array_of_objects,
    "torch's first format": tarred,
    "a script": scripted,
    "safetensors": safetensors,
    "bare instructions": lambda: b"cos\nsystem\n(S'touch ran'\ntR.",
    "the same in an archive": lambda: zipped(b"cos\nsystem\n(S'touch ran'\ntR."),
    "a call that fails": lambda: zipped(ORDERED_DICT + b"K\x05R."),
    "a state that is none": lambda: zipped(ORDERED_DICT + b")RK\x05b."),
    "a tensor of nothing": lambda: zipped(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R."),
    "a storage that is none": lambda: zipped(b"\x80\x02K\x05Q."),
    "an empty archive": lambda: zipped(b""),
    "an empty file": lambda: b"",
    "a text": lambda: b"a checkpoint, I promise",
    "zeros": lambda: bytes(1000),
    "no dictionary": lambda: saved([1, 2]),
    "a list of settings": lambda: saved(PLAIN | {"config": ["lr"]}),
    "a model that is a number": lambda: saved(PLAIN | {"model": 3}),
}


@pytest.fixture(scope="module")
def checkpoint_module(project):
    with imported_from(project(task="tabular-regression"), "checkpoint") as (module,):
        yield module


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("content", CRAFTED.values(), ids=CRAFTED)
def test_no_file_runs_code_or_gives_a_traceback(checkpoint_module, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "best.pt"
    file.write_bytes(content())
    with warnings.catch_warnings(action="error"), pytest.raises(SystemExit) as refusal:
        checkpoint_module.read_checkpoint(file)
    assert str(refusal.value).startswith(f"{file} is no ")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ran").exists()


def test_the_payload_would_run(tmp_path, monkeypatch):
    """Else the test above could not fail."""
    monkeypatch.chdir(tmp_path)
    torch.load(io.BytesIO(saved(Payload())), weights_only=False)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("answers", "predicted"),
    [({"task": "tabular-regression"}, ["data/val.csv"]), ({"task": "language-modeling"}, ["--prompt", "x"])],
    ids=["table", "language"],
)
def test_every_command_refuses_a_crafted_checkpoint(project, warm, tmp_path, answers, predicted):
    made = project(**answers)
    file = tmp_path / "last.pt"
    file.write_bytes(saved(PLAIN | {"config": Payload()}))
    commands = [
        ["evaluate.py", "--checkpoint", file],
        ["predict.py", "--checkpoint", file, *predicted],
        ["train.py", "--run-dir", tmp_path, "--resume"],
        ["train.py", "--run-dir", tmp_path / "run", "--init-from", file],
        ["check.py", "--init-from", file],
    ]
    for command in commands:
        said = warm.run(made, *command, status=1).strip()
        assert said.splitlines()[-1].startswith(f"{file} is no whole checkpoint"), command
        assert "Traceback" not in said
        assert not (made / "ran").exists()


def test_a_checkpoint_of_another_version_is_refused_with_the_way_out(project, warm, tmp_path):
    """Random states of another length, a part without one of its values."""
    made = project(task="tabular-regression")
    run_dir = tmp_path / "run"
    warm.run(made, "train.py", "--run-dir", run_dir, "--epochs", "1")
    good = torch.load(run_dir / "last.pt", weights_only=True)
    for change in (
        {"random": good["random"] | {"torch": good["random"]["torch"][:-8]}},
        {"random": good["random"] | {"python": (4, (1, 2), None)}},
        {"metrics_file": {}},
        {"model": good["model"] | dict.fromkeys(good["model"], "weights")},
    ):
        torch.save(good | change, run_dir / "last.pt")
        said = warm.run(made, "train.py", "--run-dir", run_dir, "--epochs", "1", "--resume", status=1).strip()
        assert "Traceback" not in said, change.keys()
        assert f"--init-from {run_dir / 'last.pt'}" in said.splitlines()[-1]


# A file's name cannot hold / and NUL, nor more than 255 bytes; a name within a file can.
NAMES = (
    "quo'te\"d",
    "new\nline",
    "{0}{{ 7 * 7 }}{% raw %}",
    "$(touch ran) `id`; rm",
    "$a_{$ \\frac",  # no formula
    "=cmd|'calc'!A0",
    "-rf",
    "\x1b[31mred",
    "e\u0301",
    "\u00e9",
    "n" * 240,
    "a,b;c",
    "__class__",
    "\u202ertl",
    "%s %n",
    "NA",
)
WITHIN = (*NAMES, "../../above", "/etc/passwd", "a/b\\c", "c" * 300, "日" * 300)
"""Names of labels, columns and tags, and cells."""


def write_csv(file: Path, rows: list[list]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows(rows)


def write_image(file: Path, n_values: int = 256) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, n_values, (8, 8), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")


def class_folders(data: Path, split: str) -> None:
    for name in NAMES:
        for file in NAMES[:2]:
            write_image(data / split / name / f"{file}.png")


def labelled_images(data: Path, split: str) -> None:
    for name in NAMES:
        write_image(data / split / f"{name}.png")
    rows = [[f"{name}.png", *(int(j % len(NAMES) == i) for j in range(len(WITHIN)))] for i, name in enumerate(NAMES)]
    write_csv(data / split / "labels.csv", [["file", *WITHIN], *rows])


def masks(data: Path, split: str) -> None:
    for name in NAMES:
        write_image(data / split / "images" / f"{name}.png")
        write_image(data / split / "masks" / f"{name}.png", n_values=4)
    (data / "classes.txt").write_text("\n".join([*NAMES[2:5], *WITHIN[-5:-3]]), encoding="utf-8")


def table(data: Path, split: str) -> None:
    names = [name for name in WITHIN if name != "NA"]  # which is a gap
    columns = [*names, "self", "", "twice", "twice"]
    cells = [[i if j % 2 else names[(i + j) % len(names)] for j in range(len(columns))] for i in range(40)]
    targets = [names[i % len(names)] for i in range(40)]
    rows = [[*row, target] for row, target in zip(cells, targets, strict=True)]
    write_csv(data / f"{split}.csv", [[*columns, "cultivar"], *rows])


def texts(data: Path, split: str) -> None:
    rows = [[WITHIN[5 * i % len(WITHIN)] * 3, WITHIN[i % len(WITHIN)]] for i in range(42)]
    write_csv(data / f"{split}.csv", [["text", "label"], *rows])


def words(data: Path, split: str) -> None:
    rows = [[i // 6, WITHIN[5 * i % len(WITHIN)] * 3, WITHIN[i % len(WITHIN)]] for i in range(84)]
    write_csv(data / f"{split}.csv", [["sentence", "word", "tag"], *rows])


def series(data: Path, split: str) -> None:
    rows = [[time, *(time % 7 for _ in WITHIN), time % 5] for time in range(200)]
    write_csv(data / f"{split}.csv", [["time_ms", *WITHIN, "potential_mv"], *rows])


def lines(data: Path, split: str) -> None:
    (data / f"{split}.txt").write_text("\0\x1b\u2028 ".join(NAMES) * 20, encoding="utf-8")


HOSTILE: dict[str, tuple[dict[str, str], Callable[[Path, str], None], str]] = {
    "class folders": ({"task": "image-classification"}, class_folders, "*/*.png"),
    "labelled images": ({"task": "image-classification", "labels": "multilabel"}, labelled_images, "*.png"),
    "masks": ({"task": "image-segmentation"}, masks, "images/*.png"),
    "a table": ({"task": "tabular-classification"}, table, "../val.csv"),
    "texts": ({"task": "text-classification"}, texts, "../val.csv"),
    "words": ({"task": "token-classification"}, words, "../val.csv"),
    "series": ({"task": "time-series-forecasting"}, series, "../val.csv"),
    "language": ({"task": "language-modeling"}, lines, ""),
}


@pytest.mark.parametrize(("answers", "write", "files"), HOSTILE.values(), ids=HOSTILE)
def test_names_and_cells_of_any_kind(project, warm, tmp_path, answers, write, files):
    made = project(**answers)
    data, run_dir = tmp_path / "da ta\n'\"{0}", tmp_path / "ru n\n'\"$x_{$é"
    data.mkdir()
    for split in ("train", "val"):
        (data / split).mkdir()
        write(data, split)
    where = ["--data-dir", data]
    warm.run(made, "check.py", *where)
    warm.run(made, "train.py", *where, "--run-dir", run_dir, "--epochs", "1", "--num-workers", "0")
    evaluated = warm.run(made, "evaluate.py", *where, "--checkpoint", run_dir / "best.pt")
    warm.run(made, "plot.py", run_dir)
    assert (run_dir / "curves.png").stat().st_size
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert f"val_loss {rows[-1]['val_loss']:.6f}" in evaluated

    asked = [*map(str, (data / "val").glob(files))] if files else []
    if files:
        predicted = warm.run(made, "predict.py", "--checkpoint", run_dir / "best.pt", *asked)
        header, *rows = csv.reader(io.StringIO(predicted, newline=""))
        assert {len(row) for row in rows} == {len(header)}
        assert {row[0] for row in rows} == {*asked}
        of_names = {"class", "tag"} & {*header}
        assert all({row[header.index(name)] for row in rows} <= {*WITHIN} for name in of_names)
        if write is labelled_images:
            assert header[1 : 1 + len(WITHIN)] == [*WITHIN]
    else:
        prompt = "e\u0301\u202e{{ 7 }}\n'\"$(id)"
        predicted = warm.run(made, "predict.py", "--checkpoint", run_dir / "best.pt", "--prompt", prompt)
        assert predicted.startswith(prompt)
    assert not [*tmp_path.rglob("ran"), *made.rglob("ran")]


BOMB = struct.pack(">I4sIIBBBBB", 13, b"IHDR", 60000, 60000, 8, 2, 0, 0, 0)
"""The header of an image that would take 10 gigabytes."""

BROKEN_IMAGES = {
    "a decompression bomb": b"\x89PNG\r\n\x1a\n" + BOMB + b"\x9a\x76\x82\x70" + bytes(100),
    "an empty file": b"",
    "a text": b"not an image",
}


@pytest.mark.parametrize("content", BROKEN_IMAGES.values(), ids=BROKEN_IMAGES)
@pytest.mark.parametrize("task", ["image-classification", "image-segmentation"])
def test_an_image_that_is_none(project, tmp_path, content, task):
    """Worker processes send the exception as text, from which the message is taken back whole."""
    file = tmp_path / "new\nline\u2028.png"
    file.write_bytes(content)
    with imported_from(project(task=task), "batches", "data") as (batches, data):
        with pytest.raises(batches.BadData) as refusal:
            data.read_image(file, *([16] if task == "image-classification" else []))
        assert str(refusal.value).startswith(f"{file} cannot be read as an image (")
        sent = "Caught BadData in DataLoader worker process 0.\nOriginal Traceback:\n  File x\nbatches.BadData: "
        assert str(batches.BadData(f"{sent}{refusal.value}\n")) == str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("../../val/0000.png", "there is no image"), ("/etc/passwd", "there is no image"), ("1" * 200_000, "no CSV file")],
    ids=["above", "absolute", "huge"],
)
def test_labels_name_files_of_their_folder_only(project, tmp_path, name, said):
    write_image(tmp_path / "a.png")
    write_csv(tmp_path / "labels.csv", [["file", "value"], ["a.png", 1], [name, 2]])
    made = project(task="image-regression")
    with imported_from(made, "data") as (data,), pytest.raises(SystemExit, match=said) as refusal:
        data.read_targets(tmp_path)
    assert "\n" not in str(refusal.value)


def test_a_file_name_that_is_no_text_comes_back_as_it_is(project, warm, tmp_path):
    """An archive from a system with another encoding leaves such names."""
    made = project(task="tabular-regression")
    file = tmp_path / os.fsdecode(b"caf\xe9.csv")
    shutil.copy(made / "data/val.csv", file)
    warm.run(made, "train.py", "--run-dir", tmp_path / "run", "--epochs", "1")
    warm.run(made, "predict.py", "--checkpoint", tmp_path / "run/best.pt", file)
    assert b"caf\xe9.csv,1," in warm.output.read_bytes()
