"""The runs of studies as a list of jobs, most important first, made by many processes.

A job is one run: a combination of a search (`search`), a look on held-back training records for a
promise (`look`), or a run on the test records (`report`). Every finished job is one line of a file
at once, so that a batch that was cut off goes on where it stopped; a line counts for a job only as
long as the study still has that very trial.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from judging import sign
from trials import SEARCH_SEED, Figures, Study, Trial, candidates, trained

STAGES = ("search", "look", "report")
HOW = ("grid", "accelerated", "note")
"""The fields of a trial that change nothing about a run."""

MEMORY = 0.8
"""Of a GPU's memory, for all processes together; each needs some beside it."""

LOOKS = (1001, 1002, 1003)
"""The seeds of a promise: neither a search nor a report has them."""


@dataclass(frozen=True)
class Job:
    """One run of a trial; in a search with these values in place of its settings."""

    stage: str
    paper: str
    trial: Trial
    seed: int
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> str:
        """What a line of a file must say to be about this very job."""
        return json.dumps([self.stage, self.paper, told(self.trial), self.seed], sort_keys=True)


Plan = Callable[[Mapping[str, Figures]], Sequence[Job]]
"""All jobs that can be known from the lines there are, most important first."""


def told(trial: Trial) -> Figures:
    """What a run of the trial depends on, as JSON says it, and its name."""
    fields: Figures = json.loads(json.dumps(asdict(trial)))
    return {name: value for name, value in fields.items() if name not in HOW}


def jobs_of(study: Study, stage: str) -> list[Job]:
    """All runs of a stage: every trial with its first seeds, then the further ones of orderings."""
    if stage == "search":
        return [job for one in study.trials for job in combinations(study, one)]
    if stage == "look":
        return [Job(stage, study.paper, one, seed) for seed in LOOKS for one in study.trials]
    compared = {name for o in study.orderings for name in (o.better, o.worse)}
    first = [Job(stage, study.paper, one, seed) for seed in study.seeds for one in study.trials]
    more = [
        Job(stage, study.paper, one, seed)
        for seed in study.further
        for one in study.trials
        if one.name in compared
    ]
    return first + more


def in_order(jobs: Iterable[Job], studies: Sequence[Study]) -> list[Job]:
    """Searches, then trial by trial what makes and tests its promise, then the further seeds."""
    order = {(s.paper, one.name): (n, m) for n, s in enumerate(studies)
             for m, one in enumerate(s.trials)}  # fmt: skip
    seeds = {one.paper: {*LOOKS, *one.seeds} for one in studies}

    def rank(job: Job) -> tuple[int, int, int]:
        place = order[job.paper, job.trial.name]
        if job.stage == "search":
            return 0, *place
        return (1, *place) if job.seed in seeds[job.paper] else (2, job.seed, place[0])

    return sorted(jobs, key=rank)


def combinations(study: Study, trial: Trial) -> list[Job]:
    """The runs of a trial's search."""
    return [
        Job("search", study.paper, replace(trial, settings={**trial.settings, **v}), SEARCH_SEED, v)
        for v in (candidates(trial.grid) if trial.grid else ())
    ]


def best(study: Study, trial: Trial, lines: Mapping[str, Figures]) -> Figures | None:
    """What a search found best; None before it is over."""
    found = [(job.values, lines.get(job.key)) for job in combinations(study, trial)]
    ended = [(dict(v), one["figures"]) for v, one in found if one is not None]
    scored = [(sign(f["metric"]) * f["score"], v) for v, f in ended if f is not None]
    if len(ended) < len(found) or (found and not scored):
        return None
    return max(scored, key=lambda one: one[0])[1] if scored else {}


def settled(study: Study, lines: Mapping[str, Figures]) -> Study:
    """The study with what its searches found, and only the trials whose search is over.

    Trials without a grid take over what was found for `study.like`, if it names a trial.
    """
    leader = next((one for one in study.trials if one.name == study.like), None)
    shared = {} if leader is None else best(study, leader, lines)
    trials: list[Trial] = []
    for one in study.trials:
        values = best(study, one, lines) if one.grid else shared
        if values is not None:
            trials.append(replace(one, settings={**one.settings, **values}))
    names = {one.name for one in trials}
    kept = [o for o in study.orderings if o.better in names and o.worse in names]
    return replace(study, trials=trials, orderings=kept, like="")


def lines_of(paths: Iterable[Path]) -> dict[str, Figures]:
    """The finished jobs of these files, by key; a line that was cut off is not one."""
    found: dict[str, Figures] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            try:
                one: Figures = json.loads(line)
            except json.JSONDecodeError:
                continue
            found[one["key"]] = one
    return found


def serve(pipe: Connection, share: float) -> None:
    """A process that makes one run after the other, on one core, with this share of a GPU."""
    import torch

    torch.set_num_threads(1)
    if share:
        torch.cuda.set_per_process_memory_fraction(share)
    while True:
        try:
            job: Job = pipe.recv()
        except EOFError:
            return
        place = "cuda" if share and job.trial.accelerated else "cpu"
        try:
            answer = trained(job.trial, job.seed, place, 1, searching=job.stage != "report")
            pipe.send({"figures": answer, "accelerated": place != "cpu"})
        except Exception as why:  # a run that fails is told, and the others go on
            pipe.send({"failed": f"{type(why).__name__}: {why}"})


class Worker:
    """A process and the job that it has."""

    def __init__(self, share: float) -> None:
        """Start it with a share of a GPU's memory, or with none."""
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, share))
        self.process.start()
        other.close()
        self.share = share
        self.job: Job | None = None

    def give(self, job: Job) -> None:
        """Begin a run."""
        self.job = job
        self.pipe.send(job)

    def take(self) -> Figures:
        """The answer, or that there is none because the process has died."""
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            return {"failed": f"its process ended with {self.process.exitcode}"}


def work(plan: Plan, out: Path, processes: int, gpu: int, seconds: float, machine: Figures) -> int:
    """Make the runs that `out` does not have yet, until the time is over; how many are left.

    `gpu` of the processes take the runs that a GPU is for first, and then the others; without any,
    every run is made on the CPU. What is left grows when a search is over.
    """
    end = time.monotonic() + seconds
    known = lines_of([out]) if out.exists() else {}
    made = {key for key, one in known.items() if one["figures"] or one["stage"] == "search"}
    waiting = [job for job in plan(known) if job.key not in made]
    idle = [Worker(MEMORY / gpu if n < gpu else 0.0) for n in range(processes)]
    busy: list[Worker] = []
    with out.open("a") as file:
        while time.monotonic() < end:
            for worker in list(idle):
                job = chosen(waiting, worker.share > 0, gpu > 0)
                if job is not None:
                    waiting.remove(job)
                    made.add(job.key)
                    worker.give(job)
                    idle.remove(worker)
                    busy.append(worker)
            if not busy:
                break
            ready = wait([worker.pipe for worker in busy], max(0.0, end - time.monotonic()))
            for worker in [one for one in busy if one.pipe in ready]:
                busy.remove(worker)
                job, answer = worker.job, worker.take()
                assert job is not None
                known[job.key] = line(job, answer, machine, processes)
                file.write(json.dumps(known[job.key]) + "\n")
                file.flush()
                print(f"{end - time.monotonic():.0f} s; {glance(job, answer)}", flush=True)
                if job.stage == "search":
                    waiting = [one for one in plan(known) if one.key not in made]
                idle.append(worker if worker.process.is_alive() else Worker(worker.share))
    for worker in idle + busy:
        worker.process.kill()
    return len(waiting) + len(busy)


def chosen(waiting: Sequence[Job], with_gpu: bool, any_gpu: bool) -> Job | None:
    """The next job for a process with or without a GPU, which is kept for what it is for."""
    mine = [job for job in waiting if not any_gpu or job.trial.accelerated == with_gpu]
    if mine:
        return mine[0]
    return waiting[0] if waiting and with_gpu else None


def line(job: Job, answer: Figures, machine: Figures, processes: int) -> Figures:
    """What is kept of a run."""
    place = {**machine, "runs at once": str(processes)}
    if not answer.get("accelerated"):
        place.pop("accelerator", None)
    return {
        "key": job.key, "stage": job.stage, "paper": job.paper, "name": job.trial.name,
        "values": dict(job.values), "machine": place, "figures": answer.get("figures"),
        "failed": answer.get("failed"),
    }  # fmt: skip


def glance(job: Job, answer: Figures) -> str:
    """A run at a glance."""
    head = f"{job.stage} {job.paper}, {job.trial.name}, seed {job.seed}"
    if job.values:
        head += f" {dict(job.values)}"
    one = answer.get("figures")
    if one is None:
        return f"{head}: FAILED, {answer['failed']}"
    rows = ", ".join(
        f"{c['row']} {c['epsilon']:.4g}" for c in one["proved"] if c["row"].endswith("update")
    )
    return (
        f"{head}: {one['metric']} {one['score']:.4f}, {one['rounds']} rounds, "
        f"{one['seconds']:.1f} s; {rows or 'nothing is proved'}"
    )
