//! A study small enough for a test: a data set that is quickly learnt, a configuration, and the program run on it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::noise;

/// Writes a Fashion-MNIST-shaped data set of `training` + `test` examples under `folder`/fashion-mnist: each class has its own bright
/// rows, under noise.
pub fn write_data(folder: &Path, training: usize, test: usize) {
    let place = folder.join("fashion-mnist");
    std::fs::create_dir_all(&place).unwrap();
    for (name, count, seed) in [("train", training, 21), ("t10k", test, 22)] {
        let labels: Vec<u8> = noise::labels(seed, count).into_iter().map(|label| label as u8).collect();
        let mut images = noise::image_bytes(seed, count * 784);
        for (image, &label) in images.chunks_exact_mut(784).zip(&labels) {
            for (i, pixel) in image.iter_mut().enumerate() {
                let bright = i / 28 / 2 == usize::from(label) + 2;
                *pixel = *pixel / 2 + if bright { 100 } else { 0 };
            }
        }
        let count = (count as u32).to_be_bytes();
        let side = 28_u32.to_be_bytes();
        let header = [&[0, 0, 8, 3][..], &count, &side, &side].concat();
        std::fs::write(place.join(format!("{name}-images-idx3-ubyte")), [header, images].concat()).unwrap();
        std::fs::write(place.join(format!("{name}-labels-idx1-ubyte")), [&[0, 0, 8, 1][..], &count, &labels].concat()).unwrap();
    }
}

/// Writes a configuration of 4 cells of 5 trials; `changes` replace text in it.
pub fn write_config(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = r#"[workload]
dataset = "fashion-mnist"
network = "simple-cnn"
optimizer = "momentum"
goal_error = 0.3
max_steps = 40
evaluate_every = 4

[grid]
batch_sizes = [2, 37]
sparsities = [0, 0.9]
trials = 5

[pruning]
examples = 100

[data]
source = "own"

[search]
learning_rate = { min = 1e-3, max = 1e4, scale = "log" }
momentum = { min = 0.5, max = 0.95, scale = "reverse-log" }
"#
    .to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let path = folder.join("small.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The program without mpirun.
pub fn train() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dps-train"))
}

/// The program under mpirun; ranks may outnumber processors.
pub fn mpirun(ranks: usize) -> Command {
    // An mpirun that hangs should fail a test, not stop all of them.
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300"]);
    around(command, &mpirun_alone(ranks))
}

/// The program under mpirun without a time limit, which would not pass all signals on.
pub fn mpirun_alone(ranks: usize) -> Command {
    around(launcher(ranks), &train())
}

/// mpirun for a program on so many ranks.
pub fn launcher(ranks: usize) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]);
    // Tests run as root in containers; Open MPI asks to be told twice that this is meant.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command
}

/// A command that starts another one: `outer` with the words and the environment of `inner`.
pub fn around(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.envs(environment(inner));
    outer
}

/// The variables that a command sets.
pub fn environment(command: &Command) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    command.get_envs().filter_map(|(name, value)| Some((name, value?)))
}

/// The command at a terminal of its own: script (util-linux) makes one, passes its standard input on, and shows what is written there.
pub fn at_a_terminal(command: &Command) -> Command {
    let line: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    let mut script = Command::new("script");
    script.args(["-qefc", &format!("exec {}", line.join(" ")), "/dev/null"]).envs(environment(command));
    script
}

/// The program on so many ranks: under mpirun, or for 0 without it.
pub fn on(ranks: usize) -> Command {
    if ranks == 0 { train() } else { mpirun(ranks) }
}

/// The program that reports.
pub fn dps_report() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dps-report"))
}

/// The command's standard error, after checking that it succeeded.
pub fn succeed(command: &mut Command) -> String {
    fail(command, 0)
}

/// The command's standard error, after checking its exit code.
pub fn fail(command: &mut Command, code: i32) -> String {
    let Output { status, stderr, .. } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(code), "{command:?}: {status}\n{stderr}");
    stderr
}

/// Starts the command, and kills it after so many milliseconds.
pub fn kill(command: &mut Command, milliseconds: u64) {
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A folder with data and a configuration, and the result file that a study of them writes. Tests add what they do with it.
pub struct Study {
    pub folder: tempfile::TempDir,
    pub config: PathBuf,
    pub output: PathBuf,
}

impl Study {
    /// A study of 600 training examples; `changes` as for [`write_config`].
    pub fn new(changes: &[(&str, &str)]) -> Study {
        Study::with_data(600, 90, changes)
    }

    /// A study of so many examples for training and validation, and for testing.
    pub fn with_data(training: usize, test: usize, changes: &[(&str, &str)]) -> Study {
        let folder = tempfile::tempdir().unwrap();
        write_data(folder.path(), training, test);
        let config = write_config(folder.path(), changes);
        let output = folder.path().join("x.h5");
        Study { folder, config, output }
    }

    /// The file of that name in the study's folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that measures the study in one thread a rank.
    pub fn command(&self, command: Command) -> Command {
        self.measuring(command, "x.h5", &["--threads", "1"])
    }

    /// A command that measures the study into a file of the study's folder.
    pub fn measuring(&self, mut command: Command, output: &str, options: &[&str]) -> Command {
        command.arg(&self.config).arg("--data").arg(self.folder.path()).arg("--output").arg(self.at(output)).args(options);
        command
    }

    /// A subcommand on a file of the study's folder, with the study's data.
    pub fn subcommand(&self, name: &str, file: &str) -> Command {
        let mut command = train();
        command.arg(name).arg(self.at(file)).arg("--data").arg(self.folder.path());
        command
    }

    /// Measures the study into a file of the study's folder; the file.
    pub fn measure(&self, command: Command, output: &str, options: &[&str]) -> PathBuf {
        succeed(self.measuring(command, output, options).arg("--quiet"));
        self.at(output)
    }

    /// Processes of the study, however it was started: those that were given its output.
    pub fn ranks(&self) -> Vec<u32> {
        let found = Command::new("pgrep").args(["-f", &format!("^[^ ]*dps-train .*{}", self.output.display())]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// Sends a signal, which is named as for `kill`.
pub fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap().success());
}
