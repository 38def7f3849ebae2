"""Summary of all runs, which is printed."""

import collections
import dataclasses

from .rules import Run


@dataclasses.dataclass
class Outcome:
    """How a case went."""

    kind: str
    number: int
    run: Run
    offences: list
    # Command that runs the input again, where it failed.
    command: str
    # All that it took, with making its input and looking at its results.
    seconds: float


def summary(outcomes, unharmed, again):
    """The text, and whether anything failed.

    `unharmed`: no run has changed the files that all start from. `again`: begins a command that repeats a case."""
    failures = [outcome for outcome in outcomes if outcome.offences]
    lines = [*table(outcomes), *extremes(outcomes)]
    for outcome in failures:
        lines += explanation(outcome, again)
    if not unharmed:
        lines.append("FAILED: a run has changed the files of the studies that all start from")
    # The undamaged inputs, each kind's case 0, are no bad ones.
    bad = sum(outcome.number > 0 for outcome in outcomes)
    count = len(failures) + (not unharmed)
    return "\n".join([*lines, f"{bad} bad inputs, {count} failures"]), count > 0


def table(outcomes):
    """Runs, failures, seconds and exit codes of each kind."""
    kinds = collections.defaultdict(list)
    for outcome in outcomes:
        kinds[outcome.kind].append(outcome)
    width = max(map(len, kinds))
    yield f"{'kind':{width}}  runs  failures  seconds  exit codes"
    for name, those in kinds.items():
        bad = [outcome for outcome in those if outcome.number > 0]
        codes = collections.Counter(outcome.run.code for outcome in bad)
        seen = ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
        failures, seconds = sum(bool(outcome.offences) for outcome in those), sum(outcome.seconds for outcome in those)
        yield f"{name:{width}}  {len(bad):4}  {failures:8}  {seconds:7.1f}  {seen}"


def extremes(outcomes):
    """The slowest run, and the one that took most memory."""
    slowest = max(outcomes, key=lambda outcome: outcome.run.wall_seconds)
    largest = max(outcomes, key=lambda outcome: outcome.run.megabytes)
    yield f"Slowest: {slowest.kind} {slowest.number}, {slowest.run.wall_seconds:.1f} s"
    yield f"Largest: {largest.kind} {largest.number}, {largest.run.megabytes:.0f} MB"


def explanation(outcome, again):
    """Describes a failure, and two ways to see it again."""
    yield f"FAILED {outcome.kind} {outcome.number}: {'; '.join(outcome.offences)}"
    yield f"  {outcome.command}"
    yield f"  {again} --only {outcome.kind} --case {outcome.number}"
    for line in outcome.run.stderr.decode(errors="replace").splitlines()[:8]:
        yield f"  | {line[:300]!r}"
