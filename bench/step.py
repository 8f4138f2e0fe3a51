"""What a step costs: the default tabular project, as it is generated, beside the bare five lines.

Both train the same model on the same rows with the same batch size in one process, with one thread and no workers. The
bare loop has torch's default loader and collate and a default AdamW, and no schedule, clipping, logging, evaluation or
checkpoint. The rounds are interleaved, so that a noisy machine treats both alike. A step is what passes from one
forward pass to the next within an epoch; the median over all steps of a round is taken.

    python bench/step.py [--rounds 7] [KEY=VALUE …]
"""

import argparse
import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from plainloop.render import render


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1500, help="of each loop in a round, about")
    parser.add_argument("answers", nargs="*", metavar="KEY=VALUE", help="other answers than the defaults")
    arguments = parser.parse_args()
    answers = {"task": "tabular-classification"} | dict(answer.split("=", 1) for answer in arguments.answers)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in render(answers).items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        sys.path.insert(0, folder)
        os.chdir(folder)
        compare(arguments.rounds, arguments.steps)


def compare(rounds: int, steps: int) -> None:
    import train as project
    from config import Config
    from sample_data import write_sample

    write_sample(Path("data"))
    config = Config(num_workers=0)
    preprocessing = project.Preprocessing.fit(config)
    rows = project.Rows(config, "train", preprocessing)
    config = Config(num_workers=0, epochs=max(steps * config.batch_size // len(rows), 2), overwrite=True)
    features, labels = rows[0, list(range(len(rows)))]

    ours, bare, ratios = [], [], []
    for _ in range(rounds):
        with stamps() as times, contextlib.redirect_stdout(None):
            project.train(config)
        ours.append(typical(times, len(rows), config.batch_size))
        with stamps() as times:
            five_lines(project.make_model(preprocessing), features, labels, config)
        bare.append(typical(times, len(rows), config.batch_size))
        ratios.append(ours[-1] / bare[-1])
    print(
        f"{len(rows)} rows, batches of {config.batch_size}, {rounds} rounds of {config.epochs} epochs,"
        f" torch {torch.__version__}, one thread"
    )
    print(f"bare five lines    {statistics.median(bare):7.0f} µs a step   1.00")
    print(f"generated project  {statistics.median(ours):7.0f} µs a step   {statistics.median(ratios):.2f}", end="")
    print(f"  (from {min(ratios):.2f} to {max(ratios):.2f}), with schedule, clipping, sums, log, stop signals")


def five_lines(model: nn.Module, features: torch.Tensor, labels: torch.Tensor, config) -> None:
    loader = DataLoader(TensorDataset(features, labels), batch_size=config.batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    loss_function = nn.CrossEntropyLoss()
    for _ in range(config.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()


@contextlib.contextmanager
def stamps():
    """The time of every forward pass of a model in training."""
    times: list[float] = []

    def stamp(module: nn.Module, _) -> None:
        if type(module).__name__ == "Model" and module.training:
            times.append(time.perf_counter())

    hook = nn.modules.module.register_module_forward_pre_hook(stamp)
    yield times
    hook.remove()


def typical(times: list[float], n: int, batch_size: int) -> float:
    """Median over the steps within epochs, in microseconds; the first two epochs warm up."""
    steps = -(-n // batch_size)
    within = [b - a for i, (a, b) in enumerate(itertools.pairwise(times), 1) if i % steps and i > 2 * steps]
    return statistics.median(within) * 1e6


if __name__ == "__main__":
    main()
