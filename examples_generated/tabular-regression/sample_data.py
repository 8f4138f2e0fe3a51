"""Write the sample data set: scikit-learn's diabetes, a measure of the disease's progression a year later.

A tenth of the cells in the first three columns is left empty, which is not so in the original.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split


def write_sample(data_dir: Path) -> None:
    diabetes = load_diabetes(as_frame=True, scaled=False)
    features = diabetes.data
    features["sex"] = features["sex"].map({1: "A", 2: "B"})  # the source does not say which is which
    target = diabetes.target.rename("progression")
    groups = pd.qcut(target, 5)
    empty = np.random.default_rng(0).random(features.shape) < 0.1
    empty[:, 3:] = False
    features = features.mask(empty)
    table = features.join(target)
    train, val = train_test_split(table, test_size=0.2, stratify=groups, random_state=0)
    data_dir.mkdir(parents=True, exist_ok=True)
    train.to_csv(data_dir / "train.csv", index=False)
    val.to_csv(data_dir / "val.csv", index=False)


if __name__ == "__main__":
    write_sample(Path("data"))
    print("wrote data/train.csv and data/val.csv: 442 patients")
