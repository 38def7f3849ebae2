//! Parts of the pages that are made: from the source the keys of a configuration and the exit codes, from the measured data the paper's claims with
//! their figures. A page that is not up to date fails here; `DPS_WRITE_PAGES=1 cargo test --test pages` writes those parts anew.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use dps::analysis::{self, Style};
use dps::exit::CODES;
use dps::readable::{digits, wrapped};
use dps::results;
use dps::settings::{IGNORED_KEYS, markdown_of_keys};
use tempfile::TempDir;

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
    let text = markdown_of_keys();
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

/// Each table and group of attributes of a result file is declared once, in `src/results`.
#[test]
fn the_page_of_results_has_every_column_and_attribute() {
    for (name, table) in results::described() {
        compare("docs/results.md", name, &format!("\n{table}\n"));
    }
}

/// The report, and its folder, of the files in docs/experiments/data whose names begin with one of `prefixes`, in their order.
fn report_of(prefixes: &[&str], style: Style) -> (analysis::Report, TempDir) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments");
    let mut all: Vec<String> =
        fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    let of_prefix =
        |prefix: &&str| all.iter().filter(|name| name.starts_with(*prefix) && name.ends_with(".h5")).cloned().collect::<Vec<_>>();
    let names: Vec<String> = prefixes.iter().flat_map(of_prefix).collect();
    assert!(!names.is_empty(), "{prefixes:?}");
    let files = names.into_iter().map(|name| (name.clone(), results::read(&folder.join("data").join(name)).unwrap())).collect();
    let made = tempfile::tempdir().unwrap();
    let options = analysis::Options { style, ..analysis::Options::default() };
    (analysis::report(files, made.path(), &options).unwrap(), made)
}

/// Compares a page of docs/experiments with the report of the files in `data` whose names begin with one of `prefixes`, in their order, and its
/// figures, of a style, with those of the report; or writes them. The page does not repeat the report's first studies, `beside` of them, which pages
/// of their own have. Figures are named by what the report calls them, and by what the page does.
/// Gives the sentences that answer the first study.
fn compare_report((page, style): (&str, Style), prefixes: &[&str], beside: usize, figures: &[(&str, &str)]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments");
    let (report, made) = report_of(prefixes, style);
    let parts: Vec<&str> = report.summary.split("\n## ").skip(beside).collect();
    let heading = if beside == 0 { "" } else { "## " };
    compare(&format!("docs/experiments/{page}"), "claims", &format!("\n{heading}{}\n", parts.join("\n## ")));
    // A page that begins with an answer has the first study's, which stands below the study's name; a page of controls has what each of them says.
    let answer = match beside {
        0 => format!("{}\n", report.summary.split("\n\n").nth(1).unwrap()),
        _ => parts.iter().filter_map(|part| said_of_control(part)).collect(),
    };
    assert!(answer.starts_with("- "), "{answer}");
    if fs::read_to_string(folder.join(page)).unwrap().contains("<!-- answer: ") {
        compare(&format!("docs/experiments/{page}"), "answer", &format!("\n{answer}\n"));
    }
    for (name, name_here) in figures {
        compare_figure(&format!("docs/experiments/{name_here}"), &made.path().join(name));
    }
    answer
}

/// The sentences in which the section of a study says what it takes beside the study that it is a control of, as items of a list; none of no control.
fn said_of_control(section: &str) -> Option<String> {
    let (_, rest) = section.split_once("### Beside the study")?;
    let name = section.lines().next()?.rsplit_once("learning rate, ")?.1;
    Some(
        rest.lines()
            .take_while(|line| !line.starts_with('|'))
            .filter_map(|line| line.strip_prefix("- "))
            .map(|line| format!("- {name}: {line}\n"))
            .collect(),
    )
}

/// Compares a figure of a page with the one that was made, or writes it.
fn compare_figure(page: &str, made: &Path) {
    let (path, expected) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(page), fs::read(made).unwrap());
    if fs::read(&path).ok().as_ref() != Some(&expected) {
        assert!(writes(), "{page} is not what the data say; run: make paper");
        fs::write(&path, expected).unwrap();
    }
}

/// Verdicts of the measured cells of the paper's studies on its claims.
#[test]
fn the_page_of_the_paper_says_what_the_data_say() {
    let figures = ["answer", "steps-to-result", "normalised", "rates"]
        .map(|name| (format!("mnist-simple-cnn-momentum-{name}.svg"), format!("paper-{name}.svg")));
    let figures = figures.each_ref().map(|(name, here)| (name.as_str(), here.as_str()));
    let answer = compare_report(("paper.md", Style::Paper), &["mnist-simple-cnn-", "fashion-mnist-simple-cnn-"], 0, &figures);
    let found: String = answer.lines().filter(|line| !line.starts_with("- The weakest point")).map(|line| format!("{line}\n")).collect();
    compare("README.md", "answer", &format!("\n{found}\n"));
}

/// The study of two optimizers.
#[test]
fn the_page_of_two_optimizers_says_what_the_data_say() {
    let figures = [
        ("optimizers.svg", "optimizers.svg"),
        ("mnist-simple-cnn-momentum-metaparameters.svg", "optimizers-momentum-metaparameters.svg"),
        ("mnist-simple-cnn-sgd-metaparameters.svg", "optimizers-sgd-metaparameters.svg"),
    ];
    compare_report(("optimizers.md", Style::Screen), &["optimizers-"], 0, &figures);
}

/// The controls of the paper's study: masks shuffled within their layers, and weights drawn anew.
#[test]
fn the_page_of_the_controls_says_what_the_data_say() {
    compare_report(("controls.md", Style::Screen), &["mnist-simple-cnn-momentum", "controls-"], 1, &[("optimizers.svg", "controls.svg")]);
}

/// The rows of a table of a report, each by its columns' names.
fn rows(folder: &Path, table: &str) -> Vec<HashMap<String, String>> {
    csv::Reader::from_path(folder.join(table)).unwrap().deserialize().map(Result::unwrap).collect()
}

/// The theory's predictions of sparsity 0.9 over dense, by measurements along trainings of three batch sizes, stand beside the fitted ratios.
#[test]
fn the_page_of_the_theory_says_what_the_data_say() {
    const OVER_DENSE: [&str; 3] = ["c1_over_dense", "c2_over_dense", "critical_over_dense"];
    let (_, made) = report_of(&["mnist-simple-cnn-momentum", "theory-"], Style::Screen);
    let estimate = |row: &HashMap<String, String>, name: &str| {
        let number = |end: &str| row.get(&format!("{name}{end}"))?.parse().ok().map(|number| digits(number, 2));
        let [value, low, high] = ["", "_low", "_high"].map(number);
        format!(" {} |", value.zip(low.zip(high)).map_or(String::new(), |(value, (low, high))| format!("{value} ({low} to {high})")))
    };
    let measured = ["decrease", "along_variance", "along_lipschitz", "along_squared_gradient"].map(|name| format!("{name}_ratio"));
    let predicted =
        ["predicted_c1", "predicted_c1_by_gradient", "predicted_c2_by_gradient", "predicted_critical"].map(|name| format!("{name}_ratio"));
    let mut theory = rows(made.path(), "theory.csv");
    theory.sort_by_key(|row| row["batch_size"].parse::<u32>().unwrap());
    let mut text = format!(
        "\n| batch size | along training | trainings | Δ | β | L | ε | c1 by Δ·L·β | c1 by Δ·L·β/ε² | c2 by Δ/(η·ε) | c1/c2 by L·β·η/ε |\n{}\n",
        "|---".repeat(11) + "|"
    );
    for row in theory.iter().filter(|row| row["sparsity"] == "0.9") {
        let numbers: String = measured.iter().chain(&predicted).map(|name| estimate(row, name)).collect();
        text += &format!("| {} | {} | {} |{numbers}\n", row["batch_size"], row["along_training"], row["trials"]);
    }
    let fits = [("theory.csv", "K\\*", ["fitted_c1_ratio", "fitted_c2_ratio", ""]), ("confirmed-fits.csv", "confirmed steps", OVER_DENSE)];
    let fitted = fits.map(|(table, what, names)| {
        let rows = rows(made.path(), table);
        let sparse = rows.iter().find(|row| row["sparsity"] == "0.9").unwrap();
        format!("| {what} |{}\n", names.map(|name| estimate(sparse, name)).concat())
    });
    text += &format!("\n| fitted to | c1 | c2 | c1/c2 |\n|---|---|---|---|\n{}", fitted.concat());
    let mut scales = "\n| batch size | sparsity | noise scale at the start | median along the training | at the last measurement |\n|---|---|---|---|---|\n".to_owned();
    for row in theory.iter().filter(|row| row["along_training"] == "median") {
        let numbers = ["start", "median", "last"].map(|name| estimate(row, &format!("{name}_noise_scale"))).concat();
        scales += &format!("| {} | {} |{numbers}\n", row["batch_size"], row["sparsity"]);
    }
    compare("docs/experiments/theory.md", "ratios", &format!("{text}\n"));
    compare("docs/experiments/theory.md", "noise scales", &format!("{scales}\n"));
}

/// Whether a text is what a page shows, where "…" stands for any text.
fn is_shown(shown: &str, text: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        (rest, last) = (&rest[at + part.len()..], part);
    }
    rest.is_empty() || (shown.contains('…') && rest.ends_with(last))
}

/// Each command of the tutorial prints what the page shows, and the pilot draws the page's figure.
#[test]
fn the_page_of_the_tutorial_shows_what_its_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/tutorial.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root.join("tests/fixtures/data/digits.npz"), folder.path().join("digits.npz")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_dps-train")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for block in page.split("```console\n$ ").skip(1) {
        let (command, shown) = block.split_once("```").unwrap().0.split_once('\n').unwrap();
        let run =
            Command::new("sh").args(["-c", command]).current_dir(folder.path()).env("PATH", &path).stdin(Stdio::null()).output().unwrap();
        let printed = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
        assert!(is_shown(shown, &printed), "{command}\n--- the page shows\n{shown}\n--- the command prints\n{printed}");
        commands += 1;
    }
    assert_eq!(commands, page.matches("$ dps-").count());
    compare_figure("docs/tutorial-pilot.svg", &folder.path().join("digits-pilot.svg"));
}
