#!/usr/bin/env python3
"""HighSpeed TCP's four parameters: utilisation of 10 Gbit/s x 100 ms against harm to a Reno flow.

    highspeed_search.py [--trials N] [--out DIR]     # needs optuna and matplotlib

Harm is the part of its goodput that one Reno flow loses on 100 Mbit/s x 100 ms when the flow beside
it is HighSpeed TCP and not Reno. Both are means over seeds that differ in when the flows start and
in rare random losses; DIR gets front.csv, all trials, and front.pdf with RFC 3649's choice.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import fullpipe as fp
import optuna

RFC_3649 = {"low_window": 38.0, "high_window": 83000.0, "high_p": 1e-7, "high_decrease": 0.1}
FAST = fp.Scenario(
    {
        "name": "fast",
        "duration": "60s",
        "seeds": 2,
        "path": {
            "rate": "10Gbit/s",
            "rtt": "100ms",
            "buffer": "0.1BDP",
            "mtu": 9000,
            "loss": 2e-6,
        },
        "flow": [{"name": "main", "stack": "highspeed"}],
        "measure": {"warmup": "20s", "trace": "off"},
    }
)
BESIDE = fp.Scenario(
    {
        "name": "beside",
        "duration": "120s",
        "seeds": 3,
        "path": {"rate": "100Mbit/s", "rtt": "100ms", "buffer": "0.5BDP"},
        "flow": [
            {"name": "main", "stack": "highspeed", "start_spread": "1s"},
            {"name": "other", "stack": "reno", "start_spread": "1s"},
        ],
        "measure": {"warmup": "30s", "trace": "off"},
    }
)


def goodput(scenario: fp.Scenario, stack: str, flow: str) -> float:
    runs = fp.run(scenario, set={"flow.main.stack": stack}, progress=False).runs
    return float(runs["goodput_mbps"][runs["flow"] == flow].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("fullpipe-out/highspeed-search"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    reno = goodput(BESIDE, "reno", "other")

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        parameters = {
            "low_window": trial.suggest_float("low_window", 10, 1000, log=True),
            "high_window": trial.suggest_float("high_window", 5e3, 5e5, log=True),
            "high_p": trial.suggest_float("high_p", 1e-9, 1e-6, log=True),
            "high_decrease": trial.suggest_float("high_decrease", 0.05, 0.5),
        }
        stack = "highspeed(" + ",".join(f"{k}={v:.6g}" for k, v in parameters.items()) + ")"
        utilisation = goodput(FAST, stack, "main") / 10_000
        return utilisation, 1 - goodput(BESIDE, stack, "other") / reno

    sampler = optuna.samplers.NSGAIISampler(seed=1, population_size=20)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.enqueue_trial(RFC_3649)
    begin = time.monotonic()
    # Contradicting parameters are refused, with a reason.
    study.optimize(objective, n_trials=given.trials, catch=(fp.ScenarioError,))
    best = set(trial.number for trial in study.best_trials)
    done = [trial for trial in study.trials if trial.values]
    with (given.out / "front.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["trial", "utilisation", "harm", "front", *RFC_3649])
        for t in sorted(done, key=lambda t: -t.values[0]):
            rows.writerow([t.number, *t.values, t.number in best, *t.params.values()])
    for t in sorted((t for t in done if t.number in best), key=lambda t: -t.values[0]):
        print(f"utilisation {t.values[0]:.4f}  harm {t.values[1]:+.3f}  {t.params}")
    rfc = done[0]
    ahead = [t for t in done if t.values[0] >= rfc.values[0] and t.values[1] <= rfc.values[1]]
    print(f"RFC 3649: {rfc.values[0]:.4f}, {rfc.values[1]:+.3f}; {len(ahead) - 1} trials dominate it")
    print(f"{len(done)} trials in {time.monotonic() - begin:.0f} s, all in {given.out}")

    from matplotlib import pyplot

    with fp.plot.style():
        fig, axes = pyplot.subplots(figsize=(84 / 25.4, 60 / 25.4), layout="constrained")
        for label, of, style in (
            ("tried", [t for t in done if t.number not in best], "."),
            ("Pareto front", [t for t in done if t.number in best], "o"),
            ("RFC 3649", [rfc], "*"),
        ):
            xs, ys = [t.values[0] for t in of], [t.values[1] for t in of]
            axes.plot(xs, ys, style, label=label)
        axes.set(xlabel="utilisation of 10 Gbit/s x 100 ms", ylabel="harm to one Reno flow")
        axes.legend()
        fig.savefig(given.out / "front.pdf")


if __name__ == "__main__":
    main()
