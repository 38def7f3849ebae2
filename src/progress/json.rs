//! One JSON object a line on standard error, for programs that read logs.

use serde_json::json;

use super::event::{Event, Nearness, Observer};
use crate::records::{Confirmation, Status};
use crate::streams;

/// Keeps how near its goal the cell under way is.
#[derive(Default)]
pub(super) struct Json(Nearness);

impl Observer for Json {
    fn event(&mut self, event: &Event) {
        self.0.notice(event);
        let (best, is_bound) = self.0.best.map(|(errors, counted)| (errors, !counted)).unzip();
        let line = match event {
            Event::Study { name, device, ranks, cells, done, trials, threshold, validation_examples } => json!({
                "event": "study", "name": name, "device": device, "ranks": ranks, "cells": cells, "done": done, "trials": trials,
                "goal_threshold": threshold, "validation_examples": validation_examples,
            }),
            Event::CellStarted { key, index, max_steps, ranks_a_batch } => json!({
                "event": "cell_started", "cell": index, "batch_size": key.batch_size, "sparsity": key.sparsity, "max_steps": max_steps,
                "ranks_a_batch": ranks_a_batch,
            }),
            Event::Resumed { key, step, ended, trials } => json!({
                "event": "resumed", "batch_size": key.batch_size, "sparsity": key.sparsity, "step": step, "ended": ended, "trials": trials,
            }),
            Event::Scored { seed, all, .. } => json!({ "event": "scored", "trial": seed, "trials": all }),
            Event::Moment { moment, .. } if !moment.evaluated => return,
            Event::Moment { key, moment, left } => json!({
                "event": "evaluated", "batch_size": key.batch_size, "sparsity": key.sparsity, "step": moment.step, "alive": moment.alive,
                "last_step": moment.last_step, "best_errors": best, "best_is_bound": is_bound, "loss": moment.loss,
                "example_gradients": moment.examples, "seconds": moment.seconds, "left": left,
            }),
            Event::Detail(line) => json!({ "event": "detail", "line": line }),
            Event::Note(line) => json!({ "event": "note", "line": line }),
            Event::Lost(line) => json!({ "event": "lost", "line": line }),
            Event::Confirming { key, points, trainings, done, step, last_step } => json!({
                "event": "confirming", "batch_size": key.batch_size, "sparsity": key.sparsity, "points": points, "trainings": trainings,
                "done": done, "step": step, "last_step": last_step,
            }),
            Event::Confirmed { cell, last_step, left } => json!({
                "event": "confirmed", "batch_size": cell.key.batch_size, "sparsity": cell.key.sparsity, "last_step": last_step, "left": left,
                "trainings": cell.confirmations.iter().map(|Confirmation { training, run }| json!({
                    "point": training.point, "number": training.number, "steps": run.steps, "status": run.status.name(),
                })).collect::<Vec<_>>(),
            }),
            Event::CellFinished { cell, left } => json!({
                "event": "cell_finished", "batch_size": cell.key.batch_size, "sparsity": cell.key.sparsity,
                "steps_to_result": cell.steps_to_result(), "best_trial": cell.best().map(|trial| trial.index),
                "complete": cell.count(Status::Complete), "incomplete": cell.count(Status::Incomplete),
                "infeasible": cell.count(Status::Infeasible), "censored": cell.count(Status::Censored), "seconds": cell.seconds, "left": left,
                "best_errors": best, "best_is_bound": is_bound,
            }),
        };
        streams::err(&line.to_string());
    }
}
