//! Results are the same on any number of ranks, groups, threads and lanes, under a real mpirun.

use crate::support::records::complete;
use crate::support::study::{Study, around, fail, launcher, mpirun, on, train, write_config, write_data};
use dps::pruning::CriterionName;
use dps::records::Status;

#[test]
fn every_record_is_the_same_on_any_ranks_groups_and_threads() {
    // Steps that are measured are not those that are evaluated, and some trials are not measured at all.
    let smoothness = "[smoothness]\nevery = 14\ntrials = 2\npoints = 2\nexamples = 30\n\n[search]";
    let study = Study::new(&[("[search]", smoothness)]);
    // Each run has files of its own, or it would find that all is done.
    let mut runs = 0;
    let mut run = |ranks: usize, options: &[&str]| {
        runs += 1;
        complete(&study.measure(on(ranks), &format!("{runs}.h5"), options))
    };
    let expected = run(0, &["--threads", "1"]);
    assert_eq!(expected.len(), 4);
    let all = || expected.iter().flat_map(|cell| &cell.trials);
    for status in [Status::Complete, Status::Infeasible, Status::Censored] {
        assert!(all().any(|trial| trial.status == status), "the small study must have a trial that is {}", status.name());
    }
    assert!(all().map(|trial| trial.curve.len()).sum::<usize>() > 20);
    assert!(all().map(|trial| trial.measurements.len()).sum::<usize>() > 10);
    // Measuring smoothness changes no step.
    let mut bare = expected.clone();
    bare.iter_mut().flat_map(|cell| &mut cell.trials).for_each(|trial| trial.measurements.clear());
    assert_eq!(run(0, &["--set", "smoothness="]), bare);
    assert_eq!(run(0, &["--threads", "3"]), expected, "3 threads");
    for lanes in [1, 3] {
        let setting = format!("execution.lanes={lanes}");
        assert_eq!(run(0, &["--set", &setting]), expected, "{lanes} lanes at once");
    }
    assert_eq!(run(3, &["--set", "execution.lanes=2", "--set", "execution.data_parallel=1"]), expected, "waves shared by groups");
    // Other kernels have bits of their own, which are the same everywhere too.
    let direct = ["--set", "execution.convolutions=direct"];
    let by_direct = run(0, &[&direct[..], &["--threads", "1"]].concat());
    assert_ne!(by_direct, expected, "a convolution of 5 × 5 is rounded otherwise");
    assert_eq!(run(0, &[&direct[..], &["--threads", "3", "--set", "execution.lanes=2"]].concat()), by_direct, "3 threads");
    assert_eq!(run(3, &[&direct[..], &["--threads", "2", "--set", "execution.data_parallel=3"]].concat()), by_direct, "3 ranks");
    for ranks in 2..=4 {
        for size in (1..=ranks).filter(|size| ranks % size == 0) {
            let setting = format!("execution.data_parallel={size}");
            let found = run(ranks, &["--threads", "2", "--set", &setting]);
            assert_eq!(found, expected, "{ranks} ranks in groups of {size}");
        }
    }
}

/// Every criterion's masks, which all ranks and threads make together.
#[test]
fn masks_are_the_same_on_any_ranks_and_threads() {
    let study = Study::new(&[
        ("batch_sizes = [2, 37]", "batch_sizes = [37]"),
        ("sparsities = [0, 0.9]", "sparsities = [0.9]"),
        ("max_steps = 40", "max_steps = 4"),
        ("trials = 5", "trials = 3"),
    ]);
    let mut hashes = std::collections::BTreeSet::new();
    // Masks are shuffled after they are made: of scores, as SNIP's, or of rounds, as SynFlow's.
    let shuffled = [CriterionName::Snip, CriterionName::Synflow].map(|criterion| (criterion.name(), "true"));
    let criteria = CriterionName::NAMES.iter().map(|&criterion| (criterion, "false")).chain(shuffled);
    for (criterion, shuffle) in criteria.clone() {
        let masks = |ranks: usize, threads: &str| {
            let [criterion, shuffle] = [format!("pruning.criterion={criterion}"), format!("pruning.shuffle={shuffle}")];
            let options = ["--fresh", "--threads", threads, "--set", &criterion, "--set", &shuffle];
            complete(&study.measure(on(ranks), "x.h5", &options))
        };
        let expected = masks(0, "1");
        assert_eq!(masks(3, "2"), expected, "{criterion}, 3 ranks of 2 threads");
        if shuffle == "false" {
            assert_eq!(masks(0, "3"), expected, "{criterion}, 3 threads");
            assert_eq!(masks(2, "1"), expected, "{criterion}, 2 ranks");
        }
        hashes.extend(expected[0].trials.iter().map(|trial| trial.mask_hash));
    }
    assert_eq!(hashes.len(), criteria.count() * 3, "every criterion and seed has a mask of its own, and so has each shuffled one");
}

#[test]
fn a_race_of_any_length_finds_what_a_full_run_does_until_it_ends() {
    let study = Study::new(&[("trials = 5", "trials = 8")]);
    let run = |race: &str, lanes: u32| {
        let [race, lanes] = [format!("execution.race={race}"), format!("execution.lanes={lanes}")];
        complete(&study.measure(train(), "x.h5", &["--fresh", "--set", &race, "--set", &lanes]))
    };
    let full = run("false", 0);
    let (every, budget) = (4, 40);
    let mut others_complete = Vec::new();
    for (race, factor) in [("true", 1.0), ("1.4", 1.4), ("3", 3.0)] {
        let raced = run(race, 0);
        assert_eq!(run(race, 3), raced, "in waves of three, to {race} K*");
        let (mut cut, mut complete) = (0, 0);
        for (raced, full) in raced.iter().zip(&full) {
            assert_eq!(raced.test_errors, full.test_errors);
            let best = full.steps_to_result().expect("a cell that reaches the goal");
            let end = ((factor * f64::from(best) / f64::from(every)).ceil() as u32 * every).min(budget);
            for (raced, full) in raced.trials.iter().zip(&full.trials) {
                let has_ended = match full.status {
                    Status::Complete => full.steps_run <= end,
                    Status::Infeasible => full.steps_run < end,
                    Status::Incomplete | Status::Censored => end == budget,
                };
                if has_ended {
                    assert_eq!(raced, full);
                } else {
                    assert_eq!((raced.status, raced.steps, raced.steps_run), (Status::Censored, None, end));
                    assert_eq!(raced.curve[..], full.curve[..raced.curve.len()]);
                    cut += 1;
                }
                complete += usize::from(raced.status == Status::Complete);
            }
        }
        assert!(cut > 0, "a race to {race} K* ended nothing early");
        others_complete.push(complete);
    }
    assert!(others_complete.is_sorted() && others_complete[0] < others_complete[2], "{others_complete:?}");
}

#[test]
fn a_rank_without_its_data_ends_all_of_them_with_its_sentence() {
    let folder = tempfile::tempdir().unwrap();
    // Fashion-MNIST might be installed on this machine.
    let config = write_config(folder.path(), &[("dataset = \"fashion-mnist\"", "dataset = \"mnist\"")]);
    let stderr = fail(mpirun(3).arg(&config).arg("--data").arg(folder.path().join("nowhere")), 3);
    assert_eq!(stderr.matches("dps-train data fetch mnist").count(), 1, "{stderr}");
}

/// Two ranks with different words after the program's name: a shell puts the rank's number in place of RANK.
fn unequal(words: &str) -> std::process::Command {
    let script = format!("exec \"$0\" {}", words.replace("RANK", "$OMPI_COMM_WORLD_RANK"));
    let mut command = launcher(2);
    command.args(["sh", "-c", &script]);
    around(command, &train())
}

#[test]
fn ranks_with_different_data_or_configurations_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (config, place) = (write_config(folder.path(), &[]), folder.path().display());
    let config = config.display();
    for (name, examples) in [("0", 600), ("1", 601)] {
        write_data(&folder.path().join(name), examples, 90);
    }
    for (what, words) in [
        ("data", format!("{config} --data {place}/RANK --output {place}/x.h5")),
        ("configuration", format!("{config} --data {place}/0 --trials 1RANK --output {place}/x.h5")),
    ] {
        let stderr = fail(&mut unequal(&words), 5);
        assert_eq!(stderr.matches(&format!("rank 1: expected the same {what} as rank 0")).count(), 1, "{stderr}");
    }
}
