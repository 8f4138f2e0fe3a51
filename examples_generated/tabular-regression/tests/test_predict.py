"""predict.py gives what the trained model gives, for the same rows."""

import csv

import pytest
import torch
from conftest import load, run_to_end

import predict
import train as training


def test_predictions_are_those_of_the_trained_model(config, capsys, tmp_path):
    run_to_end(config, epochs=1)
    preprocessing = training.Preprocessing.fit(config)
    data = training.Rows(config, "val", preprocessing)
    features, _ = data[0, list(range(20))]
    model = training.make_model(preprocessing)
    model.load_state_dict(load(config.run_dir / "best.pt")["model"])
    model.eval()
    with torch.inference_mode():
        predictions = model(features)

    file = tmp_path / "rows.csv"
    lines = (config.data_dir / "val.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:21]), encoding="utf-8")
    capsys.readouterr()
    predict.main(predict.Arguments(files=(file,), checkpoint=config.run_dir / "best.pt"))
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))[1:]
    assert [row[:2] for row in rows] == [[str(file), str(number)] for number in range(1, 21)]
    mean, std = preprocessing.target_mean, preprocessing.target_std
    expected = (predictions * std + mean).tolist()
    assert [float(row[-1]) for row in rows] == pytest.approx(expected, rel=1e-4, abs=1e-4 * std)
