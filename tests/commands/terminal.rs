//! Progress through mpirun: a terminal shows the bar, a log gets lines.

use std::process::Command;

use crate::support::study::{mpirun, succeed, write_config, write_data};

#[test]
fn the_bar_reaches_the_terminal_of_mpirun_and_no_log() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let config = write_config(folder.path(), &[]);
    let study = |output: &str| {
        let mut command = mpirun(2);
        command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(folder.path().join(output));
        command
    };

    let command = study("seen.h5");
    let line: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    // script (util-linux) gives a command a terminal, and shows what was written there.
    let mut script = Command::new("script");
    script.args(["-qefc", &line.join(" "), "/dev/null"]).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let shown = script.output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("trials left") && shown.contains("[4/4] ") && shown.contains("Steps-to-result"), "{shown}");

    let log = succeed(&mut study("logged.h5"));
    assert!(log.contains("[4/4] ") && !log.contains("trials left"), "{log}");
}
