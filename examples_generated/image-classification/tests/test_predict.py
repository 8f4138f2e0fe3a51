"""predict.py gives what the trained model gives, for the same images."""

import csv

import pytest
import torch
from conftest import load, run_to_end

import predict
import train as training


def test_predictions_are_those_of_the_trained_model(config, capsys):
    run_to_end(config, epochs=1)
    preprocessing = training.Preprocessing.fit(config)
    data = training.Images(config, "val", preprocessing)
    chosen = [i * len(data) // 20 for i in range(20)]
    images, _ = data[0, chosen]
    model = training.make_model(preprocessing)
    model.load_state_dict(load(config.run_dir / "best.pt")["model"])
    model.eval()
    with torch.inference_mode():
        logits = model(images)

    files = tuple(data.files[i] for i in chosen)
    capsys.readouterr()
    predict.main(predict.Arguments(files=files, checkpoint=config.run_dir / "best.pt"))
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))[1:]
    assert [row[0] for row in rows] == [str(file) for file in files]
    probabilities, numbers = logits.softmax(dim=1).max(dim=1)
    assert [row[-2] for row in rows] == [preprocessing.classes[number] for number in numbers.tolist()]
    assert [float(row[-1]) for row in rows] == pytest.approx(probabilities.tolist(), abs=1e-4)
