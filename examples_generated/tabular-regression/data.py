"""From CSV files to batches. Replace `Rows` with your own data: a batch of indices in, a batch of tensors out."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.data import Dataset

from batches import BatchKey
from config import Config


@dataclass(frozen=True)
class Preprocessing:
    """What the training rows decide about every row. It travels in the checkpoint."""

    target_mean: float
    target_std: float
    numbers: dict[str, tuple[float, float]]  # column -> mean and standard deviation
    gaps: list[str]  # those of them with missing values, which get a column of 0 and 1 beside them
    categories: dict[str, list[str]]  # column -> its values, among them "" where some are missing

    @classmethod
    def fit(cls, config: Config) -> "Preprocessing":
        file = config.data_dir / "train.csv"
        table = read_table(file)
        targets = read_targets(table, config.target, file)
        if targets.nunique() == 1:
            raise SystemExit(f"{file}: {config.target} is {targets[0]:g} throughout: name another column with --target")

        for name in [*config.ignore, *config.categories]:
            if name not in table:
                raise SystemExit(f"{file} has no column {name}; --ignore and --categories take {', '.join(table)}")
        numbers, gaps, categories = {}, [], {}
        for name in table.columns.drop([config.target, *config.ignore]):
            cells = table[name].dropna()
            if cells.empty:
                continue  # says nothing
            share_of_numbers = pd.to_numeric(cells, errors="coerce").notna().mean()
            if share_of_numbers > 0.5 and name not in config.categories:
                values = read_numbers(cells, file)
                # What is constant in training stays 0, whatever other files bring.
                std = float(values.std(ddof=0)) if values.nunique() > 1 else math.inf
                numbers[name] = (float(values.mean()), std)
                if len(cells) < len(table):
                    gaps.append(name)
            else:
                categories[name] = sorted(read_names(table[name]).unique())
        if not numbers and not categories:
            raise SystemExit(f"{file} has no column to learn from: there must be one beside the target")
        return cls(float(targets.mean()), float(targets.std(ddof=0)), numbers, gaps, categories)

    @property
    def n_features(self) -> int:
        return len(self.numbers) + len(self.gaps) + sum(len(values) for values in self.categories.values())

    def features(self, table: pd.DataFrame, file: Path) -> Tensor:
        """(N, n_features): numbers in standard deviations from the training mean, categories as a 0 or 1 a value.

        A missing number is the mean. A category that training has not seen is 0 throughout.
        """
        for name in [*self.numbers, *self.categories]:
            if name not in table:
                raise SystemExit(f"{file} has no column {name}: add it, since training has it")
        columns = []
        for name, (mean, std) in self.numbers.items():
            numbers = read_numbers(table[name], file)
            columns.append(((numbers - mean) / std).fillna(0))
            if name in self.gaps:
                columns.append(numbers.isna())
        for name, values in self.categories.items():
            names = read_names(table[name])
            columns += [names == value for value in values]
        return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """data_dir/SPLIT.csv, by whole batches: features (N, n_features) and targets (N,), in standard deviations."""

    def __init__(self, config: Config, split: str, preprocessing: Preprocessing) -> None:
        file = config.data_dir / f"{split}.csv"
        table = read_table(file)
        targets = read_targets(table, config.target, file)
        targets = (targets - preprocessing.target_mean) / preprocessing.target_std
        self.features = preprocessing.features(table, file)
        self.targets = torch.tensor(targets.to_numpy(), dtype=torch.float32)

    def __getitem__(self, key: BatchKey) -> tuple[Tensor, Tensor]:
        _, indices = key  # nothing here is random, so the batch's seed has no use
        rows = torch.tensor(indices)  # once: a list would be converted for each of the two
        return self.features[rows], self.targets[rows]

    def __len__(self) -> int:
        return len(self.features)


def read_table(file: Path) -> pd.DataFrame:
    """The cells of a CSV file as they are written; what is missing is NaN."""
    try:
        # As text: a column that pandas takes for numbers in one file and for text in the next would not compare.
        table = pd.read_csv(file, dtype=str, skipinitialspace=True)
    except FileNotFoundError:
        raise SystemExit(f"{file} does not exist (a sample: python sample_data.py)") from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SystemExit(f"{file} cannot be read as a CSV file ({reason}): correct it") from None
    if table.empty:
        raise SystemExit(f"{file} has no rows: put some below the names of its columns")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes the cells that are too many for row names
        raise SystemExit(f"{file} has more cells in a row than names of columns: correct its first line")
    return table


def read_targets(table: pd.DataFrame, name: str, file: Path) -> pd.Series:
    targets = pd.to_numeric(target_cells(table, name, file), errors="coerce").astype(float)
    wrong = ~np.isfinite(targets)
    if wrong.any():
        raise SystemExit(f"{file}: {name} is no number in {lines(wrong)}: correct it")
    return targets


def target_cells(table: pd.DataFrame, name: str, file: Path) -> pd.Series:
    """The target's column, which may not have gaps."""
    if name not in table:
        raise SystemExit(f"{file} has no column {name}: add it, or name another with --target, of {', '.join(table)}")
    if table[name].isna().any():
        raise SystemExit(f"{file}: {name} is missing in {lines(table[name].isna())}: fill it in, or delete the row")
    return table[name]


def lines(wrong: pd.Series) -> str:
    """Where in the file, for a message; line 1 has the names of the columns."""
    numbers = [str(i + 2) for i in np.flatnonzero(wrong)]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers[:5])}{' …' if len(numbers) > 5 else ''}"


def read_numbers(cells: pd.Series, file: Path) -> pd.Series:
    """A column's cells as numbers, NaN where they are missing."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    wrong = cells[cells.notna() & ~(numbers.abs() < 1e30)]  # text is NaN by now, which is not less either
    if not wrong.empty:
        raise SystemExit(
            f"{file}, line {wrong.index[0] + 2}: {cells.name} is {wrong.iloc[0]!r:.100}, not a number as elsewhere:"
            f" correct it or leave it empty (if they are names, not amounts: --categories {cells.name})"
        )
    return numbers


def read_names(cells: pd.Series) -> pd.Series:
    """A column's cells as names, "" where they are missing. 1.0 is 1: the same number, written by another program."""
    return cells.fillna("").str.strip().str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
