//! Tells the program which commit it was built from, for `--version` and the results, and whether this HDF5 can write without a lock.

use std::path::Path;
use std::process::Command;

fn main() {
    // Without a line of this kind cargo would run this script again for every changed file.
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=DPS_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));

    let hdf5_is = |version: &str| std::env::var_os(format!("DEP_HDF5_VERSION_{version}")).is_some();
    println!("cargo:rustc-check-cfg=cfg(hdf5_locks_are_optional)");
    if hdf5_is("1_12_1") || (hdf5_is("1_10_7") && !hdf5_is("1_12_0")) {
        println!("cargo:rustc-cfg=hdf5_locks_are_optional");
    }
}

/// The commit of this checkout; `None` outside one, or without git.
fn commit() -> Option<String> {
    // A source archive unpacked inside another repository is not that repository's commit.
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // A commit or a checkout writes HEAD or its log. A path that does not exist would mean "always changed".
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
