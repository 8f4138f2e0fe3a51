"""Train the tabular classifier.

Usage:
    python train.py              from the beginning
    python train.py --resume     from where the run stopped, to the same result
    python train.py --help       every setting
"""

import math
import os
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import nn
from tqdm import tqdm

from batches import evaluation_loader, training_loader
from checkpoint import load_weights, restore, save_checkpoint, saved_preprocessing
from config import Config
from data import Preprocessing, Rows
from diagnose import explain
from evaluate import evaluate, make_criterion, pos_weight
from metrics import Metrics, NonFiniteLoss, TrainLoss
from model import make_model
from run_folder import RunFolder, lasting_settings
from schedule import drawn, make_scheduler, planned_rates
from stopping import Stopped, StopSignals, end_with_the_reader


@dataclass
class Progress:
    """Where the run stands."""

    epoch: int = 0
    batch: int = 0  # within the epoch
    step: int = 0  # of the optimizer, over all epochs
    evaluated: int = 0  # the step of the last evaluation
    best_val_accuracy: float = -math.inf
    best_epoch: int = 0

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def train(config: Config) -> None:
    stop = StopSignals()  # from here on, Ctrl-C and the like wait until the running step is complete
    run = RunFolder(config)
    seed_all(config.seed)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")

    # What was fitted when the run began is kept: data that has changed since must not move it.
    preprocessing = saved_preprocessing(run.last, run.saved, Preprocessing) if run.saved else Preprocessing.fit(config)
    train_set = Rows(config, "train", preprocessing)
    val_set = Rows(config, "val", preprocessing)
    train_loader = training_loader(train_set, config)
    val_loader = evaluation_loader(val_set, config)
    steps_per_epoch = len(train_loader)

    # First the model is complete and where it trains, then the optimizer is made: it keeps the parameters that it is
    # given, and would go on updating those of a layer that is replaced later.
    model = make_model(preprocessing).to(device)
    criterion = make_criterion(pos_weight(train_set.labels)).to(device)
    optimizer = make_optimizer(model, config)
    # Before any state is loaded: making a scheduler sets the optimizer's learning rate to that of step 0.
    scheduler = make_scheduler(optimizer, config, steps_per_epoch)
    train_loss = TrainLoss()
    progress = Progress()

    # All that the next step depends on: what is missing here is lost when the run stops.
    state = {
        "model": model,
        "criterion": criterion,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "train_loss": train_loss,
        "progress": progress,
        "metrics_file": run.metrics,
    }
    about = {
        "config": lasting_settings(config),
        "preprocessing": asdict(preprocessing),
        "loss": "weighted-bce",
        "schedule": "one-cycle",
        "precision": "float32",
        "training_rows": len(train_set),
    }
    if run.saved:
        run.compare(state, about)
        restore(run.saved, state, run.last, new_settings=bool(run.changes))
        if finished(progress, config):
            report(progress, run)
            return  # every file stays as it is
        print(f"going on from epoch {progress.epoch + 1}, step {progress.step}")
    elif config.init_from:
        print(load_weights(config.init_from, model))
    run.begin(device)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        f"{n_parameters:,} parameters on {device} in float32:"
        f" {len(train_set):,} training and {len(val_set):,} validation rows,"
        f" {config.epochs} epochs of {steps_per_epoch:,} steps"
    )

    def validate() -> None:
        """Evaluate, report, and keep the weights if they are the best so far."""
        values = {"train_loss": train_loss.of_epoch()}
        metrics = evaluate(model, stop.watch(val_loader), criterion, Metrics(preprocessing, device), device)
        model.train()  # evaluate() has switched dropout to evaluation
        values |= {f"val_{name}": value for name, value in metrics.items()}
        run.metrics.write(epoch=progress.epoch + 1, step=progress.step, **values)
        listed = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        tqdm.write(f"epoch {progress.epoch + 1:3}  {listed}")
        progress.evaluated = progress.step
        # "best" is decided on data that the model has not seen: the training loss falls almost whatever happens.
        if values["val_accuracy"] > progress.best_val_accuracy:
            progress.best_val_accuracy = values["val_accuracy"]
            progress.best_epoch = progress.epoch + 1
            save_checkpoint(run.best, {"model": model, "criterion": criterion, "progress": progress}, **about)  # to use

    try:
        while not finished(progress, config):
            stop.check()  # for a signal in the preparations, or while the last epoch was saved
            model.train()
            train_loader.sampler.start_at(progress.epoch, progress.batch)
            if evaluation_due(progress, config):
                validate()  # the one that a stop signal broke off

            for features, labels in bar(train_loader, progress, steps_per_epoch):
                features = features.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)

                optimizer.zero_grad()  # backward() adds to .grad: the last step's gradients go first
                logits = model(features)
                loss_sum = criterion(logits, labels)
                (loss_sum / len(labels)).backward()
                lr = optimizer.param_groups[0]["lr"]  # of this step: scheduler.step() sets that of the next
                optimizer.step()
                scheduler.step()  # here and not once an epoch: the schedule counts optimizer steps

                train_loss.add(loss_sum, len(labels))
                progress.batch += 1
                progress.step += 1
                if progress.step % config.log_every == 0:
                    grad_norm = nn.utils.get_total_norm(gradients(model))
                    run.metrics.write(
                        epoch=progress.epoch + 1,
                        step=progress.step,
                        loss=train_loss.of_interval(),
                        lr=lr,
                        grad_norm=grad_norm.item(),
                    )
                if evaluation_due(progress, config):
                    validate()
                if config.checkpoint_every and progress.step % config.checkpoint_every == 0:
                    save_checkpoint(run.last, state, **about)
                if stop.received is not None:
                    train_loss.read()  # raises if a loss was not finite: such a state is not saved
                    stop.check()

            if progress.evaluated != progress.step:
                validate()
            train_loss.start_epoch()
            progress.epoch += 1
            progress.batch = 0
            save_checkpoint(run.last, state, **about)  # to go on from
    except Stopped as stopped:
        save_checkpoint(run.last, state, **about)
        print(f"{stopped}: stopped in epoch {progress.epoch + 1} after step {progress.step}; go on with --resume")
        raise SystemExit(128 + stopped.signum) from None
    except NonFiniteLoss as bad:
        step = progress.step - bad.steps_ago
        batch = step - 1 - progress.epoch * steps_per_epoch
        train_loader.sampler.start_at(progress.epoch, batch)
        raise SystemExit(explain(step, run, train_loader, preprocessing, model, criterion, device)) from None
    except torch.OutOfMemoryError:
        raise SystemExit(
            f"{device} is out of memory at step {progress.step + 1}: lower --batch-size {config.batch_size}"
        ) from None

    report(progress, run)


def make_optimizer(model: nn.Module, config: Config) -> torch.optim.Optimizer:
    """Weight decay shrinks matrices and kernels; biases and the scales of norms are not what overfits."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=config.momentum > 0, fused=True)


def finished(progress: Progress, config: Config) -> bool:
    return progress.epoch >= config.epochs


def report(progress: Progress, run: RunFolder) -> None:
    """Say how the run has ended."""
    if not progress.best_epoch:
        raise SystemExit("val_accuracy was never finite, so there is no best.pt: look at the validation data")
    best = f"best val_accuracy {progress.best_val_accuracy:.4f}, of epoch {progress.best_epoch}"
    print(f"finished after {progress.epoch} epochs; {best}")
    print(f"next: python evaluate.py --checkpoint {run.best}")


def evaluation_due(progress: Progress, config: Config) -> bool:
    return config.eval_every > 0 and progress.step % config.eval_every == 0 and progress.evaluated != progress.step


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def bar(batches: Iterable[Any], progress: Progress, steps_per_epoch: int) -> Iterable[Any]:
    """A progress bar on a terminal, nothing elsewhere."""
    done = progress.step - progress.epoch * steps_per_epoch
    return tqdm(batches, f"epoch {progress.epoch + 1}", total=steps_per_epoch, initial=done, leave=False, disable=None)


def seed_all(seed: int) -> None:
    """Each generator that anything may draw from; torch's reaches all devices."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def show_schedule(config: Config) -> None:
    """Print the learning rate of the run that these settings make; the data say how many steps it has."""
    train_set = Rows(config, "train", Preprocessing.fit(config))
    train_loader = training_loader(train_set, config)
    steps_per_epoch = len(train_loader)
    print(drawn(planned_rates(config, steps_per_epoch), steps_per_epoch))


if __name__ == "__main__":
    config = tyro.cli(Config)
    if config.show_schedule:
        end_with_the_reader()
        show_schedule(config)
    else:
        train(config)
