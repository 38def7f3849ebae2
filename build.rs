//! Tells the program which commit and compiler it was built from and with, for `--version` and the results.

use std::path::Path;
use std::process::Command;

fn main() {
    // Without a line of this kind cargo would run this script again for every changed file.
    println!("cargo:rerun-if-changed=build.rs");
    let (commit, tree) = commit().map_or(("unknown".to_owned(), "unknown"), |commit| {
        let tree = match changes().as_deref() {
            Some("") => "clean",
            Some(_) => "modified",
            None => "unknown",
        };
        (commit, tree)
    });
    println!("cargo:rustc-env=DPS_COMMIT={commit}");
    println!("cargo:rustc-env=DPS_SOURCE_TREE={tree}");
    println!("cargo:rustc-env=DPS_COMPILER={}", compiler().unwrap_or_else(|| "unknown".to_owned()));
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

/// What the program is made of.
const SOURCES: [&str; 6] = ["src", "kernels", "configs", "build.rs", "Cargo.toml", "Cargo.lock"];

/// Which of the files that the program is made of differ from the commit, a line each.
fn changes() -> Option<String> {
    for path in SOURCES {
        println!("cargo:rerun-if-changed={path}");
    }
    git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())
}

/// The compiler's name, version and date.
fn compiler() -> Option<String> {
    let output = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
