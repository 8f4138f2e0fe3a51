"""The learning rate over the run."""

import math

import torch

from config import Config


def make_scheduler(
    optimizer: torch.optim.Optimizer, config: Config, steps_per_epoch: int
) -> torch.optim.lr_scheduler.LRScheduler:
    total_steps = config.epochs * steps_per_epoch
    warmup_steps = total_steps // 20 if config.warmup_steps is None else config.warmup_steps
    if warmup_steps >= total_steps:
        raise SystemExit(f"--warmup-steps {warmup_steps} leaves nothing of the run's {total_steps} steps")
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps))


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Factor on the peak learning rate: a line up to 1, then half a cosine down to 0."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    decayed = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return 0.5 * (1 + math.cos(math.pi * decayed))


def planned_rates(config: Config, steps_per_epoch: int) -> list[float]:
    """The learning rate of each step of the run: of the scheduler itself, with an optimizer that has nothing to do."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=config.lr)
    scheduler = make_scheduler(optimizer, config, steps_per_epoch)
    rates = []
    for _ in range(config.epochs * steps_per_epoch):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def drawn(rates: list[float], steps_per_epoch: int) -> str:
    """The rates over the steps as a picture of 64 by 11 characters, and its notable ones in numbers."""
    peak = max(rates)
    columns = []
    for column in range(64):
        first, end = column * len(rates) // 64, (column + 1) * len(rates) // 64
        within = rates[first : max(end, first + 1)]
        columns.append(range(round(10 * min(within) / peak), round(10 * max(within) / peak) + 1))
    lines = ["learning rate"]
    for height in range(10, -1, -1):
        label = f"{peak * height / 10:.3g}" if height % 5 == 0 else ""
        lines.append(f"{label:>10} |" + "".join("*" if height in column else " " for column in columns).rstrip())
    lines.append(" " * 11 + "+" + "-" * 64)
    lines.append(f"{'':12}step 1{f'step {len(rates):,}, epoch {len(rates) // steps_per_epoch:,}':>58}")
    lines.append(f"\n{'':8}{'step':>10}{'epoch':>8}  learning rate")
    for name, step in {"first": 0, "highest": rates.index(peak), "last": len(rates) - 1}.items():
        lines.append(f"{name:8}{step + 1:>10,}{step // steps_per_epoch + 1:>8,}  {rates[step]:.4g}")
    return "\n".join(lines)
