//! The memory that `--plan` states, compared with what a study then takes.
#![cfg(target_os = "linux")]

mod support;

use std::process::{Command, Stdio};

use support::study::{mpirun, train, write_config, write_data};

/// The number before `words` in megabytes, as the plan prints it.
fn megabytes(plan: &str, words: &str) -> f64 {
    let (before, _) = plan.split_once(words).unwrap_or_else(|| panic!("{words:?} in {plan}"));
    let mut last = before.split_whitespace().rev();
    let (unit, number) = (last.next().unwrap(), last.next().unwrap());
    let scale = match unit {
        "MB" => 1.0,
        "GB" => 1e3,
        other => panic!("{other}: {plan}"),
    };
    scale * number.replace(',', "").parse::<f64>().unwrap()
}

/// Most megabytes of memory that the command, or a process that it waited for, had at once.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it, and says what it took")]
fn peak(command: &mut Command) -> f64 {
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    // Both outlive the call; the child has not been waited for.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    assert!(waited == child.id() as libc::pid_t && status == 0, "{command:?}: {status}");
    usage.ru_maxrss as f64 * 1024.0 / 1e6
}

#[test]
fn a_study_takes_the_memory_that_its_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    // As large as the real data set, whose size the plan assumes.
    write_data(folder.path(), 60_000, 10_000);
    let config = write_config(
        folder.path(),
        &[
            ("goal_error = 0.3", "goal_error = 0.0001"),
            ("max_steps = 40", "max_steps = 1"),
            ("evaluate_every = 4", "evaluate_every = 1"),
            ("batch_sizes = [2, 37]", "batch_sizes = [2]"),
            ("sparsities = [0, 0.9]", "sparsities = [0.9]"),
            // No trial diverges, so that all stay in memory to the end.
            ("{ min = 1e-3, max = 1e4, scale = \"log\" }", "0.001"),
            ("trials = 5", "trials = 200"),
            // Random masks need no pass over the data, which would take long for 200 networks.
            ("examples = 100", "criterion = \"magnitude\""),
        ],
    );
    for (ranks, settings) in [(1, vec![]), (2, vec!["--set", "execution.data_parallel=2"])] {
        let command = || {
            let mut command = if ranks == 1 { train() } else { mpirun(ranks) };
            command.arg(&config).arg("--data").arg(folder.path()).args(["--device", "cpu", "--threads", "1", "--quiet"]);
            // What a checkpoint takes is in the plan's other number.
            command
                .args(["--set", "execution.checkpoint_seconds=0"])
                .args(&settings)
                .arg("--output")
                .arg(folder.path().join(format!("{ranks}.h5")));
            command
        };
        let plan = command().arg("--plan").output().unwrap();
        let plan = String::from_utf8(plan.stdout).unwrap();
        let (planned, saving) = (megabytes(&plan, " of memory on each rank"), megabytes(&plan, " on rank 0 while"));
        assert!(planned > 200.0 && saving > planned + 200.0 && saving < planned + 400.0, "{plan}");
        let seen = peak(&mut command());
        assert!((planned / seen - 1.0).abs() < 0.35, "{ranks} ranks: {planned} MB planned, {seen} MB seen");
    }
}

/// A process that may have so many addresses: the study trains fewer trials at once, and ends.
#[test]
fn a_study_keeps_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 60_000, 10_000);
    let config = write_config(
        folder.path(),
        &[
            ("goal_error = 0.3", "goal_error = 0.0001"),
            ("max_steps = 40", "max_steps = 1"),
            ("evaluate_every = 4", "evaluate_every = 1"),
            ("batch_sizes = [2, 37]", "batch_sizes = [2]"),
            ("sparsities = [0, 0.9]", "sparsities = [0]"),
            ("{ min = 1e-3, max = 1e4, scale = \"log\" }", "0.001"),
            ("trials = 5", "trials = 2000"),
        ],
    );
    let program = |more: &str| {
        let mut command = Command::new("sh");
        let train = train();
        command.args(["-c", &format!("ulimit -v 1000000; exec \"$0\" \"$@\" {more}")]).arg(train.get_program()).args(train.get_args());
        command.arg(&config).arg("--data").arg(folder.path()).args(["--device", "cpu", "--threads", "1", "--quiet"]);
        command
    };
    let plan = String::from_utf8(program("--plan").output().unwrap().stdout).unwrap();
    assert!(plan.contains(" by ulimit -v\n"), "{plan}");
    let saving = megabytes(&plan, " on rank 0 while");
    assert!((200.0..750.0).contains(&saving), "{plan}");
    let lanes = plan.split("up to ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "").parse::<u32>().unwrap();
    assert!((10..2000).contains(&lanes), "{plan}");
    assert!(peak(&mut program("")) < 1000.0);
}
