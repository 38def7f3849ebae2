//! `dps-train replay`: one recorded trial or confirmation again.

use std::time::{Duration, Instant};

use dps::arguments::ReplayArguments;
use dps::backend::cpu::Cpu;
use dps::backend::{Chosen, choose};
use dps::comm::{self, Single};
use dps::config::Override;
use dps::data::Dataset;
use dps::readable::{count, first_line};
use dps::streams::{err, out};
use dps::version::VERSION_AND_COMMIT;
use dps::{Error, Result, journal, records, results, settings, study};

use crate::study::threads;

/// How often a replay says where it is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Trains a recorded trial again, prints its curve, and compares it with the record.
pub fn replay(arguments: &ReplayArguments) -> Result<()> {
    let path = &arguments.results;
    let refuse = |problem: String| Error::Results { path: path.clone(), problem };
    if let Some(csv) = arguments.csv.as_ref().filter(|csv| journal::overwrites(path, csv)) {
        let problem = "expected --csv to be another file than those of the study, found one of them; name another file".to_owned();
        return Err(Error::Results { path: csv.clone(), problem });
    }
    if let Some(csv) = arguments.csv.as_ref().filter(|csv| std::fs::symlink_metadata(csv).is_ok()) {
        let problem = "expected no such file for --csv, found one; name another, or move it away".to_owned();
        return Err(Error::Results { path: csv.clone(), problem });
    }
    let results = results::read(path)?;
    let key = records::CellKey { batch_size: arguments.batch_size, sparsity: arguments.sparsity };
    let (cell, trial) = study::find(path, &results.cells, key, arguments.trial)?;
    let confirmation = |number: u32| {
        let found = cell.confirmations_of(trial.index).find(|one| one.training.number == number);
        found.ok_or_else(|| {
            let there = cell.confirmations_of(trial.index).count();
            refuse(format!(
                "expected confirmation {number} of trial {}'s point, found {there} of them; choose --trial and --confirmation among those there are",
                trial.index
            ))
        })
    };
    let confirmation = arguments.confirmation.map(confirmation).transpose()?;
    let (recorded, training) = confirmation.map_or((trial, None), |found| (&found.run, Some(&found.training)));
    let parse = |overrides: &[Override]| settings::recorded(&path.display().to_string(), &results.configuration, overrides);
    let trials = match parse(&[]) {
        Ok(loaded) => loaded.study.trials(),
        Err(error) => {
            return Err(refuse(format!("its configuration is none that this program reads ({})", first_line(&error.to_string()))));
        }
    };
    if !trials.contains(&recorded.index) {
        return Err(refuse(format!(
            "expected trials {} to {}, as its configuration says, found trial {}; copy it again",
            trials.start,
            trials.end - 1,
            recorded.index
        )));
    }
    let loaded = parse(&arguments.execution.overrides().collect::<Vec<_>>())?;
    let dataset = Dataset::load(loaded.study.workload.dataset.clone(), &arguments.data.folder, &loaded.study.data)?;
    let digest = &results.environment.data_digest;
    if !dataset.has_digest(digest) {
        return Err(refuse(format!(
            "expected the data that the study was measured on, SHA-256 {digest}, found {}; name the folder that has them with --data",
            dataset.digest
        )));
    }
    let (chosen, _) = choose(&loaded.study, &Single)?;
    let threads = threads(&loaded.study, comm::threads(&Single));
    let (end, mut told) = (recorded.steps_run, Instant::now());
    let mut tell = |step: u32| {
        if told.elapsed() > TELL_EVERY {
            told = Instant::now();
            err(&format!("step {} of {}", count(step), count(end)));
        }
    };
    let replayed = match &chosen {
        Chosen::Cpu(unit) => {
            let cpu = Cpu { unit: *unit, threads, convolutions: loaded.study.execution.convolutions };
            study::replay(&loaded, &dataset, threads, &cpu, key, (recorded, training), &mut tell)
        }
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => study::replay(&loaded, &dataset, threads, &**cuda, key, (recorded, training), &mut tell),
    }?;
    out(&replayed.table(recorded));
    let written = arguments.csv.as_ref().map_or(Ok(()), |csv| results::publish(csv, replayed.csv().as_bytes()));
    let name = match training {
        Some(training) => format!("confirmation {} of trial {}'s point, {key}", training.number, recorded.index),
        None => format!("trial {} of {key}", recorded.index),
    };
    if replayed.differences.is_empty() {
        out(&format!("\n{name}: as recorded, {}\n", recorded.status.name()));
        return written;
    }
    let environment = &results.environment;
    Err(refuse(format!(
        "{name} does not come out as recorded: {}; it was measured by dps {} {} on {}, and trained again by dps {} on {}: records are \
         the same on the same kind of device by versions with the same first two numbers",
        replayed.differences.join("; "),
        environment.program_version,
        environment.commit,
        environment.device,
        VERSION_AND_COMMIT,
        chosen.name(),
    )))
}
