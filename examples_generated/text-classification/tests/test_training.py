"""What comes out of a run: it learns, keeps the best, and evaluates right."""

import itertools
import json
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from conftest import Few, differences, load, run_to_end
from torch import nn

import evaluate as evaluation
import train as training
from batches import EpochBatches
from model import Model

TOLERANCE = 2e-2  # float16 rounds differently in a batch of another size


def rows(config) -> list[dict]:
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


def evaluations(config) -> list[dict]:
    return [row for row in rows(config) if "val_loss" in row]


def test_it_learns_a_few_by_heart(config, monkeypatch):
    loader = training.training_loader  # its own Few takes 53 of the 8: seven batches an epoch of the same few
    monkeypatch.setattr(training, "training_loader", lambda data, config: loader(Few(data, 8), config))
    run_to_end(config, epochs=60, batch_size=8, lr_decay=0.99)
    losses = [row["train_loss"] for row in evaluations(config)]
    assert min(losses) < 0.5 * losses[0]


@dataclass
class Sums:
    """The losses of a step, or of an evaluation."""

    given_back: list[float] = field(default_factory=list)  # to backward()
    loss_sums: list[float] = field(default_factory=list)  # from the criterion
    counts: list[int] = field(default_factory=list)  # of how many texts each of them is the sum


def mean(*parts: Sums) -> float:
    return sum(sum(part.loss_sums) for part in parts) / sum(sum(part.counts) for part in parts)


def test_losses_are_sums_divided_once(config, monkeypatch):
    """Each step by the number of its own texts, the small last one too; and so are the losses that are logged."""
    steps: list[Sums] = []
    evaluated = Sums()

    class Watched(nn.Module):
        def __init__(self, criterion):
            super().__init__()
            self.criterion = criterion

        def forward(self, outputs, labels):
            loss_sum = self.criterion(outputs, labels)
            seen = steps[-1] if outputs.requires_grad else evaluated
            seen.loss_sums.append(loss_sum.item())
            seen.counts.append(len(labels))
            halves = zip(outputs.detach().chunk(2), labels.chunk(2), strict=True)
            assert sum(self.criterion(*half).item() for half in halves) == pytest.approx(loss_sum.item(), rel=1e-3)
            return loss_sum

    make_criterion, zero_grad = training.make_criterion, torch.optim.Optimizer.zero_grad
    scale = torch.amp.GradScaler.scale

    def step_begins(optimizer, *arguments):
        steps.append(Sums())
        zero_grad(optimizer, *arguments)

    def noted(scaler, loss):
        steps[-1].given_back.append(loss.item())
        return scale(scaler, loss)

    monkeypatch.setattr(torch.amp.GradScaler, "scale", noted)
    monkeypatch.setattr(training, "make_criterion", lambda *weights: Watched(make_criterion(*weights)))
    monkeypatch.setattr(torch.optim.Optimizer, "zero_grad", step_begins)
    run_to_end(config, epochs=1, log_every=2)
    assert len(steps) == 5
    for step in steps:
        assert sum(step.given_back) == pytest.approx(mean(step), rel=1e-4)
    assert next(row["loss"] for row in rows(config) if "loss" in row) == pytest.approx(mean(*steps[:2]), rel=1e-4)
    assert evaluations(config)[0]["train_loss"] == pytest.approx(mean(*steps), rel=1e-4)
    assert evaluations(config)[0]["val_loss"] == pytest.approx(mean(evaluated), rel=1e-6)


def test_the_loss_is_given_logits(config, monkeypatch):
    """Not what a softmax or a sigmoid makes of them, which lies between 0 and 1: the loss has its own."""
    extremes = {True: [], False: []}  # in training, and in evaluation
    make_model, make_criterion = training.make_model, training.make_criterion

    def with_a_large_head(*arguments, **options):
        model = make_model(*arguments, **options)
        with torch.no_grad():
            for weights in list(model.parameters())[-2:]:
                weights.mul_(100)  # so that logits are far from 0, on both sides
        return model

    def note(_, given):
        logits, _ = given
        extremes[logits.requires_grad].extend(logits.detach().aminmax())

    def watched(*weights):
        criterion = make_criterion(*weights)
        criterion.register_forward_pre_hook(note)
        return criterion

    monkeypatch.setattr(training, "make_model", with_a_large_head)
    monkeypatch.setattr(training, "make_criterion", watched)
    run_to_end(config, epochs=1)
    for values in extremes.values():
        assert min(values) < 0 or max(values) > 1


def test_the_same_seed_gives_the_same_run(config, tmp_path):
    one = run_to_end(config)
    assert differences(one, run_to_end(config, run_dir=tmp_path / "again")) == []
    other = run_to_end(config, run_dir=tmp_path / "other", seed=1)
    assert differences(one["model"], other["model"]) != []


def test_every_epoch_takes_every_sample_once_in_a_new_order(config, monkeypatch):
    taken = []

    class Watched(Few):
        def __getitem__(self, key):
            taken.append(key)
            return super().__getitem__(key)

    loader = training.training_loader  # its own Few takes all of the 53
    monkeypatch.setattr(training, "training_loader", lambda data, config: loader(Watched(data, 53), config))
    run_to_end(config, epochs=3)
    size = len(taken) // 3
    epochs = [taken[:size], taken[size : 2 * size], taken[2 * size :]]
    orders = [[index for _, indices in epoch for index in indices] for epoch in epochs]
    for order in orders:
        assert sorted(order) == list(range(53))
    assert orders[0] != orders[1] != orders[2]
    assert len({seed for seed, _ in taken}) == len(taken)  # what is random in a batch differs from all others
    batches = EpochBatches(53, len(taken[0][1]), config.seed)
    batches.start_at(epoch=1, batch=2)
    assert list(batches) == epochs[1][2:]


def test_validation_data_decide_nothing(config, tmp_path):
    """Without them, all that is fitted and all that is trained on is the same; and validation holds other data."""
    folder = Path(shutil.copytree(config.data_dir, tmp_path / "data"))
    config = replace(config, data_dir=folder)
    preprocessing = training.Preprocessing.fit(config)
    train_set, val_set = (training.Texts(config, split, preprocessing) for split in ("train", "val"))
    indices = list(range(12))
    assert differences(train_set[0, indices][0], val_set[0, indices][0]) != []
    next(folder.glob("val.*")).unlink()
    assert training.Preprocessing.fit(config) == preprocessing
    alone = training.Texts(config, "train", preprocessing)
    assert len(alone) == len(train_set)
    assert differences(alone[0, indices], train_set[0, indices]) == []


def test_the_best_checkpoint_is_the_best(config, stop_after, monkeypatch):
    scores = iter([0.5, 0.9, 0.7, 0.2, 0.8])
    weights = []
    evaluate = training.evaluate

    def scripted(model, *rest):
        values = evaluate(model, *rest) | {"accuracy": next(scores)}
        weights.append({name: value.clone() for name, value in model.state_dict().items()})
        return values

    monkeypatch.setattr(training, "evaluate", scripted)
    stop_after(17)  # in the fourth of five epochs: what was best is remembered
    with pytest.raises(SystemExit):
        run_to_end(config, epochs=5)
    run_to_end(config, epochs=5, resume=True)
    best = load(config.run_dir / "best.pt")
    assert best["progress"]["best_epoch"] == 2
    assert differences(best["model"], weights[1]) == []
    assert differences(best["model"], weights[-1]) != []


def test_evaluating_a_checkpoint_gives_what_the_run_logged(config, capsys, monkeypatch):
    loader = evaluation.evaluation_loader
    monkeypatch.setattr(evaluation, "evaluation_loader", lambda data, config: loader(Few(data, 60), config))
    run_to_end(config)
    epoch = load(config.run_dir / "best.pt")["progress"]["best_epoch"]
    logged = next(row for row in evaluations(config) if row["epoch"] == epoch)
    printed = []
    for _ in range(2):
        capsys.readouterr()
        evaluation.main(evaluation.Arguments(checkpoint=config.run_dir / "best.pt", data_dir=config.data_dir))
        printed.append(dict(re.findall(r"^(val_\w+) (\S+)$", capsys.readouterr().out, re.MULTILINE)))
    assert printed[0] == printed[1]
    expected = {name: value for name, value in logged.items() if name.startswith("val_")}
    assert {name: float(value) for name, value in printed[0].items()} == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_evaluation_does_not_depend_on_the_batches(config):
    preprocessing = training.Preprocessing.fit(config)
    data = Few(training.Texts(config, "val", preprocessing), 60)
    torch.manual_seed(0)
    model = training.make_model(preprocessing)
    criterion = training.make_criterion()
    results = []
    for batch_size in (4, 8, 16):  # of 60 texts: each time the last batch is another
        loader = training.evaluation_loader(data, replace(config, batch_size=batch_size))
        assert sum(len(labels) for _, labels in loader) == 60
        metrics = training.Metrics(preprocessing, torch.device("cpu"))
        results.append(evaluation.evaluate(model, loader, criterion, metrics, torch.device("cpu")))
        of_all_batches = {**results[-1], **metrics.compute()}
        assert results[-1] == pytest.approx(of_all_batches, nan_ok=True)
    for other in results[1:]:
        assert other == pytest.approx(results[0], rel=TOLERANCE, abs=TOLERANCE, nan_ok=True)


def test_evaluation_disturbs_nothing(config, tmp_path):
    seldom = run_to_end(config)
    often = run_to_end(config, run_dir=tmp_path / "often", eval_every=1)
    for part in ("model", "optimizer", "random"):
        assert differences(seldom[part], often[part]) == []


def test_the_learning_rate_follows_its_schedule(config, rates):
    run_to_end(config, epochs=4, lr_step_epochs=2)
    steps = 5
    assert rates == pytest.approx([config.lr * config.lr_decay ** (step // steps // 2) for step in range(4 * steps)])


def test_the_schedule_that_is_shown_is_that_of_the_run(config, rates, monkeypatch, capsys):
    config = replace(config, epochs=4)
    shown = []
    drawn = training.drawn
    monkeypatch.setattr(training, "drawn", lambda planned, steps: shown.extend(planned) or drawn(planned, steps))
    training.show_schedule(config)
    assert not config.run_dir.exists()
    run_to_end(config)
    assert shown == rates
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["last", str(len(rates)), "4", f"{rates[-1]:.4g}"] in table


def test_a_loss_that_is_not_finite_ends_the_run(config):
    forward_passes = itertools.count(1)

    def spoil(module, _, outputs):
        if isinstance(module, Model) and module.training and next(forward_passes) >= 7:
            return outputs * float("nan")
        return outputs

    hook = nn.modules.module.register_module_forward_hook(spoil)
    try:
        with pytest.raises(SystemExit, match="the loss of step 7 is not finite"):
            run_to_end(config)
    finally:
        hook.remove()
    last = load(config.run_dir / "last.pt")  # as the first epoch left it
    assert last["progress"]["epoch"] == 1
    assert all(weights.isfinite().all() for weights in last["model"].values())


def test_metrics_are_their_formulas(config):
    preprocessing = replace(training.Preprocessing.fit(config), classes=["a", "b", "c"])
    metrics = training.Metrics(preprocessing, torch.device("cpu"))
    labels, predicted = torch.tensor([0, 0, 0, 1, 1, 1, 0]), torch.tensor([0, 0, 1, 1, 1, 0, 0])
    for batch in (slice(0, 5), slice(5, 7)):
        metrics.update(nn.functional.one_hot(predicted[batch], 3).float(), labels[batch])
    # Of class a 3 of 4 were found, of b 2 of 3, each with one that is not; c is nowhere.
    assert metrics.compute() == pytest.approx({"accuracy": 5 / 7, "macro_f1": (6 / 8 + 4 / 6) / 2})


def test_a_text_is_read_as_if_it_stood_alone(config):
    """What it is filled up with, to the length of the longest, changes nothing."""
    preprocessing = training.Preprocessing.fit(config)
    data = training.Texts(config, "val", preprocessing)
    torch.manual_seed(0)
    model = training.make_model(preprocessing).eval()
    together = model(**data[0, list(range(12))][0])
    assert len({len(ids) for ids in data.token_ids[:12]}) > 1
    alone = torch.cat([model(**data[0, [i]][0]) for i in range(12)])
    assert together.allclose(alone, rtol=1e-4, atol=1e-6)
