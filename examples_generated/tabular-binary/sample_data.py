"""Write the sample data set: scikit-learn's breast cancer, where the shape of cell nuclei tells malignant from benign.

The mean texture is put in three groups of one size, so that there is a column of categories, and a tenth of the cells
in the first three columns is left empty: neither is so in the original.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split


def write_sample(data_dir: Path) -> None:
    cancer = load_breast_cancer(as_frame=True)
    features = cancer.data
    features["mean texture"] = pd.qcut(features["mean texture"], 3, labels=["smooth", "medium", "rough"]).astype(str)
    target = cancer.target.map(dict(enumerate(cancer.target_names))).rename("diagnosis")
    empty = np.random.default_rng(0).random(features.shape) < 0.1
    empty[:, 3:] = False
    features = features.mask(empty)
    table = features.join(target)
    train, val = train_test_split(table, test_size=0.2, stratify=target, random_state=0)
    data_dir.mkdir(parents=True, exist_ok=True)
    train.to_csv(data_dir / "train.csv", index=False)
    val.to_csv(data_dir / "val.csv", index=False)


if __name__ == "__main__":
    write_sample(Path("data"))
    print("wrote data/train.csv and data/val.csv: 569 cases")
