"""predict.py gives what the trained model gives, for the same texts."""

import csv
from dataclasses import replace

import pandas as pd
import pytest
import torch
from conftest import load, run_to_end

import predict
import train as training


def test_predictions_are_those_of_the_trained_model(config, capsys, tmp_path):
    run_to_end(config, epochs=1)
    preprocessing = training.Preprocessing.fit(config)
    texts = pd.read_csv(config.data_dir / "val.csv", dtype=str, keep_default_na=False)[:20]
    texts["text"] = [" ".join(text.split()) for text in texts["text"]]  # as predict.py takes them: one a line
    texts.to_csv(tmp_path / "val.csv", index=False)
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts["text"]), encoding="utf-8")
    data = training.Texts(replace(config, data_dir=tmp_path), "val", preprocessing)
    tokens, _ = data[0, list(range(20))]
    model = training.make_model(preprocessing)
    model.load_state_dict(load(config.run_dir / "best.pt")["model"])
    model.eval()
    with torch.inference_mode():
        logits = model(**tokens)

    capsys.readouterr()
    predict.main(predict.Arguments(files=(file,), checkpoint=config.run_dir / "best.pt"))
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))[1:]
    assert [row[:2] for row in rows] == [[str(file), str(number)] for number in range(1, 21)]
    probabilities, numbers = logits.softmax(dim=1).max(dim=1)
    assert [row[-2] for row in rows] == [preprocessing.classes[number] for number in numbers.tolist()]
    assert [float(row[-1]) for row in rows] == pytest.approx(probabilities.tolist(), abs=1e-4)
