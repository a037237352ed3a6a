"""A model of a build on more machines: replays the recorded tasks of a real run.

A trace has, job by job, the time of the driver before it, and the seconds and shuffled bytes of the
tasks of each stage. `simulated` schedules them, in the order in which they were recorded, on the
cores of some executors: a task starts on the first free core, and a stage after the one before. The
part of the shuffled bytes that comes from other executors passes their network. `scaled` gives the
trace of more data: the pipeline makes tasks of about the same size, so there are more of them, and
the driver's time grows only with the number of tasks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

NETWORK = 1.25e9  # bytes a second of an executor: 10 Gbit/s
_SCHEDULED = 100  # tasks of each core that are scheduled one by one
TASK_OVERHEAD = 0.002  # seconds of the driver to launch a task, beyond those recorded


@dataclass(frozen=True)
class Task:
    """The seconds of a task, and the bytes that it fetched from the tasks of earlier stages."""

    seconds: float
    fetched: int


@dataclass(frozen=True)
class Job:
    """The driver's seconds before a job, and the tasks of its stages, in order.

    A stage of several tasks runs `factor` times as many, which repeat those that were recorded.
    """

    driver: float
    stages: Sequence[Sequence[Task]]
    factor: float = 1.0

    def count(self, tasks: Sequence[Task]) -> int:
        """The number of tasks of a stage."""
        return max(1, round(len(tasks) * self.factor)) if len(tasks) > 1 else len(tasks)


Trace = Sequence[Job]


def simulated(trace: Trace, executors: int, cores: int, network: float = NETWORK) -> float:
    """The seconds of a trace on executors with some cores each.

    >>> trace = [Job(1.0, [[Task(2.0, 0)] * 4, [Task(1.0, 0)]])]
    >>> simulated(trace, 1, 1), simulated(trace, 1, 2), simulated(trace, 2, 2)
    (10.0, 6.0, 4.0)

    Half of what two executors shuffle comes from the other one:

    >>> simulated([Job(0.0, [[Task(1.0, 1000)]])], 2, 1, network=100.0)
    6.0
    """
    elsewhere = (executors - 1) / executors
    total = 0.0
    for job in trace:
        total += job.driver
        for tasks in job.stages:
            # The cores of an executor share its network.
            seconds = [t.seconds + t.fetched * elsewhere / (network / cores) for t in tasks]
            total += _scheduled(seconds, job.count(tasks), executors * cores)
    return total


def _scheduled(seconds: Sequence[float], count: int, cores: int) -> float:
    """The time of `count` tasks, which repeat some, on the first free of some cores.

    Of very many tasks, only the last are scheduled one by one. Those before them keep all cores
    busy, whatever their order.

    >>> _scheduled([2.0, 1.0], 3, 2), _scheduled([1.0], 3_000_000_000, 2)
    (3.0, 1500000000.0)
    """
    if not seconds:
        return 0.0
    skipped = max(0, count - _SCHEDULED * cores - len(seconds)) // len(seconds)
    skipped -= skipped % cores  # as many for each core
    free = [0.0] * cores
    for at in range(count - skipped * len(seconds)):
        heapq.heapreplace(free, free[0] + seconds[at % len(seconds)])
    return skipped * sum(seconds) / cores + max(free)


def scaled(trace: Trace, factor: float) -> Trace:
    """Scale a trace to a multiple of the data; stages of one task stay as they are.

    >>> [job] = scaled([Job(1.0, [[Task(2.0, 0)] * 4, [Task(1.0, 0)]])], 10)
    >>> [job.count(tasks) for tasks in job.stages], round(job.driver, 3)
    ([40, 1], 1.072)
    """
    found = []
    for job in trace:
        more = replace(job, factor=job.factor * factor)
        added = sum(more.count(tasks) - job.count(tasks) for tasks in job.stages)
        found.append(replace(more, driver=job.driver + max(0, added) * TASK_OVERHEAD))
    return found


def driver_share(trace: Trace) -> float:
    """The driver's part of the time on one core.

    >>> driver_share([Job(1.0, [[Task(2.0, 0), Task(1.0, 0)]])])
    0.25
    """
    whole = simulated(trace, 1, 1)
    return sum(job.driver for job in trace) / whole if whole else 0.0


def to_json(trace: Trace) -> list[Any]:
    """A trace as plain lists."""
    return [
        [job.driver, [[[t.seconds, t.fetched] for t in tasks] for tasks in job.stages]]
        for job in trace
    ]


def from_json(found: Sequence[Any]) -> Trace:
    """The trace of `to_json`.

    >>> trace = [Job(1.0, [[Task(2.0, 3)]])]
    >>> from_json(to_json(trace)) == trace
    True
    """
    return [
        Job(driver, [[Task(*t) for t in tasks] for tasks in stages]) for driver, stages in found
    ]


def recorded(session: Any, began: float) -> Trace:
    """The trace of the jobs of a session since a time, from Spark's status store."""
    context = session.sparkContext
    store, gateway = context._jsc.sc().statusStore(), context._gateway
    stages: dict[int, list[Task]] = {}
    arrays = gateway.new_array(gateway.jvm.double, 0)
    found = store.stageList(None, False, False, arrays, gateway.jvm.java.util.ArrayList())
    for stage in _each(found):
        if str(stage.status()) == "COMPLETE":
            tasks = store.taskList(stage.stageId(), stage.attemptId(), 1_000_000)
            stages[stage.stageId()] = [_task(task) for task in _each(tasks)]
    trace, at = [], began
    for begin, end, numbers in sorted(_jobs(store)):
        if begin >= began:
            own = [stages.pop(number) for number in sorted(numbers) if number in stages]
            trace.append(Job(max(0.0, begin - at), own))
            at = max(at, end)
    return trace


def _jobs(store: Any) -> Iterator[tuple[float, float, list[int]]]:
    for job in _each(store.jobsList(None)):
        begin, end = job.submissionTime(), job.completionTime()
        if begin.isDefined() and end.isDefined():
            times = (value.get().getTime() / 1000 for value in (begin, end))
            yield *times, [*_each(job.stageIds())]


def _task(task: Any) -> Task:
    metrics = task.taskMetrics()
    seconds = task.duration().get() / 1000 if task.duration().isDefined() else 0.0
    if not metrics.isDefined():
        return Task(seconds, 0)
    read = metrics.get().shuffleReadMetrics()
    return Task(seconds, int(read.localBytesRead() + read.remoteBytesRead()))


def _each(sequence: Any) -> Iterator[Any]:
    for at in range(sequence.size()):
        yield sequence.apply(at)
