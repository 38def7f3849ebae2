//! The memory that `--plan` states, compared with what a study then takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::study::{dps_report, mpirun, train, write_config, write_data};

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
fn peak(command: &mut Command) -> f64 {
    let (code, megabytes, _) = taken(command);
    assert_eq!(code, 0, "{command:?}");
    megabytes
}

/// The exit code of a command, most megabytes of memory that it, or a process that it waited for, had at once, and its processor seconds.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it, and says what it took")]
fn taken(command: &mut Command) -> (i32, f64, i64) {
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    // SAFETY: plain numbers, for which zeros are values.
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    // SAFETY: status and usage outlive the call; the child has not been waited for.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    assert!(waited == child.id() as libc::pid_t && libc::WIFEXITED(status), "{command:?}: {status}");
    (libc::WEXITSTATUS(status), usage.ru_maxrss as f64 * 1024.0 / 1e6, usage.ru_utime.tv_sec)
}

/// Texts of a megabyte at most, each of which once took hundreds of megabytes, or time that grew with its square.
#[test]
fn texts_take_little_memory_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let cells = |study: &dyn Fn(u32) -> String, sparsity: &dyn Fn(u32) -> f64, size: &dyn Fn(u32) -> u32, count: u32| {
        let rows = (0..count).map(|i| format!("{},{},{},{},1\n", study(i), size(i), sparsity(i), 1 + i));
        format!("study,batch_size,sparsity,steps_to_result,goal\n{}", rows.collect::<String>())
    };
    let (one, dense, size) = (|_| "n".to_owned(), |_| 0.0, |i| 1 + i % 2);
    let lines = |line: &dyn Fn(u32) -> String, count: u32| (0..count).map(line).collect::<String>();
    let texts = [
        ("errors.toml", "=\n".repeat(1 << 19), 2),
        ("keys.toml", lines(&|i| format!("k{i}=1\n"), 100_000), 2),
        ("sections.toml", lines(&|i| format!("[k{i}]\n"), 100_000), 2),
        ("lists.toml", format!("a=[{}]\n", "[],".repeat(300_000)), 2),
        ("dots.toml", format!("{}=1\n", vec!["a"; 400_000].join(".")), 2),
        ("names.csv", cells(&|i| format!("n{}", i / 2), &dense, &size, 4_000), 4),
        ("sparsities.csv", cells(&one, &|i| f64::from(i / 2) / 2_000.0, &size, 4_000), 4),
        ("sizes.csv", cells(&one, &dense, &|i| 1 + i, 50_000), 4),
    ];
    for (name, text, code) in texts {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut command = if code == 2 { train() } else { dps_report() };
        command.current_dir(folder.path()).arg(&path).stderr(Stdio::null());
        let (found, megabytes, seconds) = taken(&mut command);
        assert!(found == code && megabytes < 200.0 && seconds < 5, "{name}: exit code {found}, {megabytes} MB, {seconds} s");
    }
}

/// A network of 79 million parameters: a plan takes no memory for each.
#[test]
fn a_plan_of_a_large_network_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 100, 10);
    for outputs in [100_000, 99_999] {
        let layers = format!(
            "network = [\n{{ layer = \"flatten\" }},\n{{ layer = \"dense\", outputs = {outputs} }},\n{{ layer = \"relu\" }},\n{{ layer = \"dense\", outputs = 10 }},\n]"
        );
        let config = write_config(folder.path(), &[("network = \"simple-cnn\"", &layers), ("examples = 100", "criterion = \"magnitude\"")]);
        let plan = || {
            let mut command = train();
            command.arg(&config).arg("--data").arg(folder.path()).args(["--device", "cpu", "--plan"]);
            command
        };
        let text = String::from_utf8(plan().output().unwrap().stdout).unwrap();
        assert!(text.contains("parameters)") && text.contains("logits of few classes"), "{text}");
        let megabytes = peak(&mut plan());
        assert!(megabytes < 200.0, "{megabytes} MB");
    }
}

/// A study of many trials of one step, with data and its configuration in `folder`; `changes` are further ones of the configuration.
fn one_step(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    // The data set is as large as the real one, whose size the plan assumes.
    write_data(folder, 60_000, 10_000);
    let shared = [
        ("goal_error = 0.3", "goal_error = 0.0001"),
        ("max_steps = 40", "max_steps = 1"),
        ("evaluate_every = 4", "evaluate_every = 1"),
        ("batch_sizes = [2, 37]", "batch_sizes = [2]"),
        // No trial diverges, so that all stay in memory to the end.
        ("{ min = 1e-3, max = 1e4, scale = \"log\" }", "0.001"),
    ];
    write_config(folder, &[&shared, changes].concat())
}

#[test]
fn a_study_takes_the_memory_that_its_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    let config = one_step(
        folder.path(),
        &[
            ("sparsities = [0, 0.9]", "sparsities = [0.9]"),
            ("trials = 5", "trials = 200"),
            // Masks by magnitude need no pass over the data, which would take long for 200 networks.
            ("examples = 100", "criterion = \"magnitude\""),
        ],
    );
    for (ranks, settings) in [(1, vec![]), (2, vec!["--set", "execution.data_parallel=2"])] {
        let command = || {
            let mut command = if ranks == 1 { train() } else { mpirun(ranks) };
            command.arg(&config).arg("--data").arg(folder.path()).args(["--device", "cpu", "--threads", "1", "--quiet"]);
            // Memory of a checkpoint is in the plan's other number.
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
    let config = one_step(folder.path(), &[("sparsities = [0, 0.9]", "sparsities = [0]"), ("trials = 5", "trials = 400")]);
    let program = |more: &str| {
        let mut command = Command::new("sh");
        let train = train();
        command.args(["-c", &format!("ulimit -v 1000000; exec \"$0\" \"$@\" {more}")]).arg(train.get_program()).args(train.get_args());
        command
            .arg(&config)
            .arg("--data")
            .arg(folder.path())
            .args(["--device", "cpu", "--threads", "1", "--quiet", "-o"])
            .arg(folder.path().join("a.h5"));
        command
    };
    let plan = String::from_utf8(program("--plan").output().unwrap().stdout).unwrap();
    assert!(plan.contains(" by ulimit -v\n"), "{plan}");
    let saving = megabytes(&plan, " on rank 0 while");
    assert!((200.0..750.0).contains(&saving), "{plan}");
    let lanes = plan.split("up to ").nth(1).unwrap().split(' ').next().unwrap().replace(',', "").parse::<u32>().unwrap();
    assert!((10..400).contains(&lanes), "{plan}");
    assert!(peak(&mut program("")) < 1000.0);
}
