#!/usr/bin/env python3
"""Logs a running study to TensorBoard or Weights & Biases, by `pip install tensorboard` or `wandb`:

    dps-train study.toml --progress json 2> >(python3 examples/log_events.py tensorboard runs)
    dps-train study.toml --progress json 2> >(python3 examples/log_events.py wandb PROJECT)

Each cell is a run of its own: the best validation error of its trials (or a bound below it, where no trial was counted to the end), the goal, the
loss and the trials left, against steps; its steps-to-result at the end. docs/how-it-works.md lists the events.
"""

import contextlib
import json
import signal
import sys


def scalars(lines):
    """Gives (run, step, values) for each evaluation and each finished cell; passes what a person should read on to standard error."""
    study, part = None, ""
    for line in lines:
        try:
            event = json.loads(line) if line.startswith("{") else {}
        except ValueError:  # a line that its program could not end
            event = {}
        event = event if "event" in event else {"event": "note", "line": line.rstrip()}
        kind = event["event"]
        if kind == "study":
            study = event
        elif kind in ("cell_started", "resumed", "confirming"):
            part = "-confirmation" if kind == "confirming" else ""
        elif kind in ("evaluated", "cell_finished") and study:
            name = f"{study['name']}-b{event['batch_size']}-s{event['sparsity']:g}"
            if kind == "evaluated":
                errors = {"best_error": event["best_errors"], "goal_error": study["goal_threshold"]}
                values = {tag: count / study["validation_examples"] for tag, count in errors.items() if count is not None}
                values |= {"loss": event["loss"], "trials_left": event["alive"]}
                yield name + part, event["step"], {tag: value for tag, value in values.items() if value is not None}
            elif event["steps_to_result"] is not None:
                yield name, event["steps_to_result"], {"steps_to_result": event["steps_to_result"]}
        elif kind in ("note", "lost", "error"):
            print(event.get("line") or event["message"], file=sys.stderr)


def to_tensorboard(records, folder):
    from tensorboard.summary import Writer

    with contextlib.ExitStack() as stack:
        writers = {}
        for name, step, values in records:
            if name not in writers:
                writers[name] = stack.enter_context(contextlib.closing(Writer(f"{folder}/{name}")))
            for tag, value in values.items():
                writers[name].add_scalar(tag, value, step)
            writers[name].flush()


def to_wandb(records, project):
    import wandb

    current = None
    for name, step, values in records:
        if current is None or current.name != name:
            current = wandb.init(project=project, name=name, reinit="finish_previous")
        current.log({"step": step, **values})
    wandb.finish()


if __name__ == "__main__":
    sinks = {"tensorboard": to_tensorboard, "wandb": to_wandb}
    if len(sys.argv) != 3 or sys.argv[1] not in sinks:
        sys.exit(__doc__)
    # Ctrl-C is for the study, which then saves and says so.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    records = scalars(sys.stdin)
    try:
        sinks[sys.argv[1]](records, sys.argv[2])
    except Exception as error:
        print(f"{sys.argv[0]}: {sys.argv[1]} logs no more ({error}); see that it is installed. The study goes on:", file=sys.stderr)
        # Sentences for a person come through here alone.
        for _ in records:
            pass
        sys.stderr.writelines(sys.stdin)
        sys.exit(1)
