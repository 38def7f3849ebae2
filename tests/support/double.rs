//! The CUDA double (tests/cuda-double): built when it is first needed, and put in front of a command's libraries.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The name of its device; tests on a GPU check that they do not see it.
pub const DEVICE: &str = "CUDA-EMU host test double (not a GPU)";

/// Thread orders × streams: every one of them is a legal GPU's.
pub const ORDERS: [(&str, &str); 6] =
    [("fwd", "eager"), ("rev", "eager"), ("rand", "eager"), ("fwd", "lazy"), ("rev", "lazy"), ("rand", "lazy")];

/// The folder of the double's libraries.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("cuda-double");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda-double/build.sh");
        let output = Command::new(script).arg(&folder).output().expect("bash runs build.sh");
        assert!(
            output.status.success(),
            "the CUDA double needs g++ (build-essential) on x86-64:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        folder
    })
}

/// Lets the command find the double, with an order of threads (`fwd`, `rev`, `rand`) and a kind of streams (`eager`, `lazy`).
pub fn under<'a>(command: &'a mut Command, (order, streams): (&str, &str)) -> &'a mut Command {
    command
        .env("LD_LIBRARY_PATH", folder())
        .env("CUDA_EMU_CACHE", folder())
        .env("CUDA_EMU_HANG", "60")
        // The program keeps what NVRTC made; what the double's NVRTC made is a path, and the double may have changed since.
        .env("XDG_CACHE_HOME", "/dev/null")
        .env("CUDA_EMU_ORDER", order)
        .env("CUDA_EMU_STREAMS", streams)
}

/// A command that runs one of this test executable's ignored tests, and nothing else.
pub fn itself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"]);
    command
}

/// Runs one of this test executable's ignored tests under the double, after checking that it was one; what it printed on standard error.
pub fn run(test: &str, order: (&str, &str)) -> (Output, String) {
    run_command(test, under(&mut itself(test), order))
}

/// Runs a command of an ignored test, after the settings of [`under`] and others.
pub fn run_command(test: &str, command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("running 1 test"), "{test}: {printed}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

/// Runs an ignored test in all orders; it must pass in each.
pub fn passes_in_all_orders(test: &str) {
    for order in ORDERS {
        let (output, errors) = run(test, order);
        assert!(output.status.success(), "{test} in {order:?}: {}\n{errors}{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
}
