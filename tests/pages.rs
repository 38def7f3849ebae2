//! Parts of the pages that are made: from the source the keys of a configuration and the exit codes, from the measured data the paper's claims with
//! their figures. A page that is not up to date fails here; `DPS_WRITE_PAGES=1 cargo test --test pages` writes those parts anew.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use dps::arguments::Train;
use dps::config::IGNORED_KEYS;
use dps::exit::CODES;
use dps::readable::wrapped;
use dps::{analysis, results};

/// Whether parts that differ are written, not refused.
fn writes() -> bool {
    std::env::var_os("DPS_WRITE_PAGES").is_some()
}

/// Compares the part of a page between the comments `<!-- NAME: … -->` and `<!-- end of NAME -->` with what it should be, or writes it.
fn compare(page: &str, name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(&path).unwrap();
    let begin = text.find(&format!("<!-- {name}: ")).unwrap_or_else(|| panic!("{page} has no part \"{name}\""));
    let begin = begin + text[begin..].find("-->\n").unwrap() + 4;
    let end = text.find(&format!("<!-- end of {name} -->")).unwrap_or_else(|| panic!("{page}: the part \"{name}\" has no end"));
    if text[begin..end] == *expected {
        return;
    }
    assert!(writes(), "{page}: its part \"{name}\" is not what is made; run: DPS_WRITE_PAGES=1 cargo test --test pages");
    fs::write(&path, format!("{}{expected}{}", &text[..begin], &text[end..])).unwrap();
}

#[test]
fn the_page_of_the_configuration_has_every_key() {
    let Train::Print { text } = Train::read(["dps-train", "keys", "--markdown"].map(OsString::from)).unwrap() else { panic!("no text") };
    assert!(text.lines().count() > 60, "{text}");
    compare("docs/configuration.md", "keys", &format!("\n{text}\n"));
}

#[test]
fn the_page_names_the_keys_that_may_change() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-it-works.md")).unwrap();
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = words.split_once("These keys of `execution` may change: ").expect("the page says which keys may change");
    let (list, _) = rest.split_once('.').unwrap();
    let names: Vec<String> = list.split('`').skip(1).step_by(2).map(|name| format!("execution.{name}")).collect();
    assert_eq!(names, IGNORED_KEYS);
}

#[test]
fn the_pages_have_every_exit_code() {
    let rows: String = CODES.iter().map(|(code, meaning)| format!("| {code} | {} |\n", meaning.trim())).collect();
    compare("docs/how-it-works.md", "exit codes", &format!("\n| code | meaning |\n|---|---|\n{rows}\n"));
    let sentences: Vec<String> = CODES.iter().map(|(code, meaning)| format!("{code}: {}.", meaning.trim())).collect();
    let lines: String = wrapped(&sentences.join(" "), 150).iter().map(|line| format!("{line}\n")).collect();
    compare("README.md", "exit codes", &format!("\n{lines}\n"));
}

/// What the measured cells of the paper's studies say of its claims, and their figures.
#[test]
fn the_page_of_the_paper_says_what_the_data_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments");
    let mut names: Vec<String> =
        fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("mnist-simple-cnn-") && name.ends_with(".h5"));
    names.sort();
    assert!(names.len() > 1, "{names:?}");
    let files = names.into_iter().map(|name| (name.clone(), results::read(&folder.join("data").join(name)).unwrap())).collect();
    let made = tempfile::tempdir().unwrap();
    let report = analysis::report(files, made.path(), &analysis::Options::default()).unwrap();
    let [study] = &report.studies[..] else { panic!("{} studies", report.studies.len()) };
    compare("docs/experiments/paper.md", "claims", &format!("\n{}\n", report.summary));
    for figure in ["panels", "ratio", "rates"] {
        let expected = fs::read(made.path().join(format!("{}-{figure}.svg", study.slug))).unwrap();
        let path = folder.join(format!("paper-{figure}.svg"));
        if fs::read(&path).ok().as_ref() != Some(&expected) {
            assert!(writes(), "{} is not what the data say; run: make paper", path.display());
            fs::write(&path, expected).unwrap();
        }
    }
}
