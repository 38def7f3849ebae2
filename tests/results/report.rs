//! dps-report as a program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::synthetic::Synthetic;
use dps::journal;
use dps::results::{self, Results};

#[test]
fn files_are_reported_and_what_is_none_is_named() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let report = || {
        let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
        report.current_dir(folder.path());
        report
    };
    let mut unfinished = Synthetic { optimizer: "sgd", ..Synthetic::small() }.results();
    unfinished.cells.truncate(3);
    unfinished.complete = false;
    results::write(&folder.path().join("a/study.h5"), &Synthetic::small().results()).unwrap();
    results::write(&folder.path().join("b/study.h5"), &unfinished).unwrap();

    let output = report().args(["a/study.h5", "b/study.h5", "-o", "figures"]).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("The study is not finished") && text.ends_with("Report: figures/index.html\n"), "{text}");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.lines().all(|line| line.chars().count() <= 80), "{warned}");
    let warned = warned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        warned.starts_with(
            "Warning: fashion-mnist, simple-cnn, sgd, constant learning rate: Not measured yet: batch size 128 at sparsity 0,"
        ),
        "{warned}"
    );
    for name in ["momentum-steps-to-result.svg", "sgd-steps-to-result.png"] {
        assert!(folder.path().join("figures/fashion-mnist-simple-cnn-".to_owned() + name).is_file(), "{name}");
    }

    // The files that a report is made of, and the page of claims beside it, are not written over.
    for name in ["own", "claimed"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let table = "study,batch_size,sparsity,steps_to_result,goal\nx,2,0,100,0.1\nx,4,0,60,0.1\n";
    fs::write(folder.path().join("own/cells.csv"), table).unwrap();
    let claimed = |page| ["a/study.h5", "-o", "claimed", "--claims", page];
    for arguments in [&["own/cells.csv", "-o", "own"][..], &claimed("claimed/../claimed/index.html"), &claimed("claimed/dps-report.txt")] {
        let refused = report().args(arguments).assert().code(4).get_output().clone();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("expected to write this file of the report, found that it is one that"), "{said}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("own/cells.csv")).unwrap(), table);

    // Nor is a file that no report wrote: one of the report's names, or the place of the page of claims. Then nothing is written.
    fs::create_dir(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join("mine/trials.csv"), "mine").unwrap();
    let study = fs::read(folder.path().join("b/study.h5")).unwrap();
    std::os::unix::fs::symlink("/proc/self/fd/1", folder.path().join("link.md")).unwrap();
    for arguments in [
        &["a/study.h5", "-o", "mine"][..],
        &["a/study.h5", "-o", "new", "--claims", "b/study.h5"],
        &["a/study.h5", "-o", "new", "--claims", "link.md"],
    ] {
        let refused = report().args(arguments).assert().code(4).get_output().clone();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("or move it away"), "{said}");
    }
    assert_eq!(fs::read(folder.path().join("b/study.h5")).unwrap(), study);
    assert_eq!(fs::read_dir(folder.path().join("mine")).unwrap().count(), 1);
    assert!(!folder.path().join("new").exists());

    // But for its table of claims, whose place the page may take: in a new folder, in an old one, and once more without it.
    for (arguments, is_page) in
        [(&["--claims", "paged/claims.md"][..], true), (&["--claims", "paged/../paged/claims.md"], true), (&[], false)]
    {
        report().args(["a/study.h5", "-o", "paged"]).args(arguments).assert().success();
        let page = fs::read_to_string(folder.path().join("paged/claims.md")).unwrap();
        assert_eq!(page.contains("### Steps-to-result"), is_page, "{page}");
        assert!(fs::read_to_string(folder.path().join("paged/dps-report.txt")).unwrap().contains("claims.md\n"));
    }

    // Warnings fail a strict report, once it is written.
    report().args(["a/study.h5", "--strict"]).assert().success();
    assert!(fs::read_to_string(folder.path().join("report/index.html")).unwrap().contains("<summary>No warnings</summary>"));
    report().args(["b/study.h5", "--strict", "-o", "strict"]).assert().code(8);
    assert!(folder.path().join("strict/index.html").is_file());

    // Nobody reads what it prints, as behind `| head`: the page and the export are written all the same.
    let program = assert_cmd::cargo::cargo_bin("dps-report");
    let mut unread = Command::new(program)
        .current_dir(folder.path())
        .args(["a/study.h5", "-o", "unread", "--shallue", "export"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(unread.stdout.take());
    assert!(unread.wait().unwrap().success());
    assert!(folder.path().join("unread/index.html").is_file() && folder.path().join("export").is_dir());

    // Beside a study that runs: it waits for the first cell, and the page loads itself anew until the last one is there.
    let path = folder.path().join("live.h5");
    let program = assert_cmd::cargo::cargo_bin("dps-report");
    let mut live = Command::new(program)
        .current_dir(folder.path())
        .args(["live.h5", "--live", "-o", "live"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(live.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let expected = "live.h5: no such file, and no study that has begun to write it; ";
    assert!(said.starts_with(expected) && said.ends_with("; waiting for it, Ctrl-C ends\n"), "{said}");
    let publish = |results: &Results| {
        results::write(&folder.path().join("other.h5"), results).unwrap();
        fs::rename(folder.path().join("other.h5"), &path).unwrap();
    };
    let mut unfinished = Synthetic::small().results();
    (unfinished.cells, unfinished.complete) = (unfinished.cells[..5].to_vec(), false);
    publish(&unfinished);
    let page = || fs::read_to_string(folder.path().join("live/index.html")).unwrap_or_default();
    let begun = Instant::now();
    while page().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60) && live.try_wait().unwrap().is_none(), "no first page");
        thread::sleep(Duration::from_millis(50));
    }
    let refresh = "<meta http-equiv=\"refresh\" content=\"10\">";
    assert!(page().contains(refresh) && page().contains("<dt>To come</dt><dd>3 cells: about "), "{}", page());
    // A program that works on the study may confirm its cells.
    let lock = journal::Lock::take(&journal::lock_path(&path)).unwrap();
    publish(&Synthetic::small().results());
    while page().contains("To come") {
        assert!(begun.elapsed() < Duration::from_secs(120) && live.try_wait().unwrap().is_none(), "no page of all cells");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(page().contains(refresh), "{}", page());
    drop(lock);
    while live.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not end with the study");
        thread::sleep(Duration::from_millis(50));
    }
    let output = live.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.starts_with("Report: live/index.html (5 cells so far)\n"), "{text}");
    assert!(text.ends_with("Report: live/index.html\n") && !page().contains(refresh) && !page().contains("To come"));

    // A complete study may grow: it waits until somebody asks it to end, as it does for a file that never comes.
    for (name, words, code) in
        [("live.h5", "complete: waiting for a study to grow, Ctrl-C ends", 0), ("lvie.h5", "; did you mean ./live.h5?; waiting", 4)]
    {
        let own = folder.path().join(format!("own-{code}"));
        fs::create_dir(&own).unwrap();
        fs::copy(&path, own.join("live.h5")).unwrap();
        let mut live = Command::new(assert_cmd::cargo::cargo_bin("dps-report"));
        let mut live = live.current_dir(&own).args([name, "--live"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        match code {
            0 => BufReader::new(live.stdout.as_mut().unwrap()).read_line(&mut said).unwrap(),
            _ => BufReader::new(live.stderr.as_mut().unwrap()).read_line(&mut said).unwrap(),
        };
        assert!(said.contains(words), "{said}");
        // SAFETY: kill touches no memory, and the process has not been waited for, so its number is nobody else's.
        let sent = unsafe { libc::kill(live.id() as libc::pid_t, libc::SIGINT) };
        assert_eq!(sent, 0);
        assert_eq!(live.wait().unwrap().code(), Some(code));
    }

    fs::write(folder.path().join("notes.h5"), "no HDF5").unwrap();
    let error = report().arg("notes.h5").assert().code(4).get_output().stderr.clone();
    assert_eq!(String::from_utf8(error).unwrap(), "dps-report: notes.h5: expected a result file of dps-train, found no HDF5 file\n");
}
