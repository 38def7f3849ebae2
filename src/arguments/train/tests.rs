//! Tests of command lines: their meaning, and refusals.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::options::Line;
use super::{DataCommand, DataFolder, StudyArguments, Train, supervised};
use crate::arguments::{ReportArguments, completions, manual_pages};
use crate::data::DatasetName;
use crate::init::Given;
use crate::optimizer::OptimizerName;
use crate::pilot::Asked;
use crate::progress::ProgressForm;
use crate::settings;
use crate::version::VERSION_AND_COMMIT;

fn read(line: &str) -> Result<Train, clap::Error> {
    Train::read(format!("dps-train {line}").split_whitespace().map(OsString::from))
}

fn study(line: &str) -> StudyArguments {
    match read(line) {
        Ok(Train::Study(study)) => study,
        other => panic!("{line}: {other:?}"),
    }
}

fn quickstart(line: &str) -> Result<settings::Study, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/quickstart.toml");
    let loaded = settings::load(&path, &study(&format!("quickstart.toml {line}")).overrides());
    loaded.map(|loaded| loaded.study).map_err(|error| error.to_string())
}

#[test]
fn the_command_line_is_consistent() {
    Line::command().debug_assert();
    ReportArguments::command().debug_assert();
}

#[test]
fn a_configuration_alone_has_defaults() {
    let config = "configs/fashion-mnist-goal-0.12.toml";
    let expected = StudyArguments { config: config.into(), data: DataFolder { folder: "data".into() }, ..StudyArguments::default() };
    assert_eq!(study(config), expected);
    assert_eq!(study(config).output(), Path::new("results/fashion-mnist-goal-0.12.h5"));
    assert!(matches!(read("confirm a.h5"), Ok(Train::Confirm(confirm)) if confirm.clone().study().output() == Path::new("a.h5")));
}

#[test]
fn options_reach_the_study() {
    let study = quickstart(
        "--batch-size 16,64 --batch-size 8 --sparsity 0,.5 --trials 2 --device cpu --threads 3 --set workload.optimizer=nesterov",
    )
    .unwrap();
    assert_eq!(study.grid, settings::Grid { batch_sizes: vec![16, 64, 8], sparsities: vec![0.0, 0.5], trials: 2 });
    assert_eq!((study.execution.device, study.execution.threads), (settings::DeviceName::Cpu, 3));
    assert_eq!(study.workload.optimizer, OptimizerName::Nesterov);
    assert_eq!(quickstart("--trials 2 --set grid.trials=3").unwrap().grid.trials, 2);
}

#[test]
fn wrong_values_are_refused_by_option() {
    for (line, expected) in [
        ("--batch-size 16,big", "--batch-size 16,big: grid.batch_sizes: expected a list of batch sizes"),
        ("--batch-size 0", "--batch-size 0: grid.batch_sizes"),
        ("--batch-size 4,", "--batch-size 4,: grid.batch_sizes"),
        ("--sparsity -0.5", "--sparsity -0.5: grid.sparsities"),
        ("--sparsity nan", "--sparsity nan: grid.sparsities"),
        ("--trials many", "--trials many: grid.trials: expected a whole number from 1 to 100000, found \"many\""),
        ("--device gpu", "--device gpu: execution.device: expected one of auto, cpu, cuda, found \"gpu\"; did you mean \"cuda\"?"),
        ("--threads -1", "--threads -1: execution.threads"),
    ] {
        let error = quickstart(line).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn data_sets_are_fetched_and_listed() {
    let fetch = |name, folder: &str| Train::Data(DataCommand::Fetch { name, data: DataFolder { folder: folder.into() } });
    assert_eq!(read("data fetch cifar-10 --data d").unwrap(), fetch(Some(DatasetName::Cifar10), "d"));
    assert_eq!(read("data fetch").unwrap(), fetch(None, "data"));
    let error = read("data fetch cifar").unwrap_err().to_string();
    assert!(error.contains("cifar-10"), "{error}");
}

#[test]
fn parts_are_merged_and_studies_looked_at() {
    let merge = Train::Merge { parts: vec!["a.h5".into(), "b.h5".into()], output: "c.h5".into(), force: true };
    assert_eq!(read("merge a.h5 b.h5 -o c.h5 --force").unwrap(), merge);
    for (line, json, progress) in [("a.h5", false, false), ("a.h5 --json", true, false), ("a.h5 --progress", false, true)] {
        assert_eq!(read(&format!("status {line}")).unwrap(), Train::Status { results: vec!["a.h5".into()], json, progress });
    }
    assert_eq!(read("doctor --data d --gpu").unwrap(), Train::Doctor { data: DataFolder { folder: "d".into() }, gpu: true });
    let cells = study("a.toml --cells --sparsity 0");
    assert!(cells.cells && cells.overrides().len() == 1);
}

#[test]
fn a_supervised_command_says_its_result_file() {
    let output = |line: &str| supervised(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
    assert_eq!(output("mpirun -n 2 bin/dps-train a.toml").unwrap(), Path::new("results/a.h5"));
    assert_eq!(output("dps-train confirm a.h5").unwrap(), Path::new("a.h5"));
    for refused in ["true", "dps-train a.toml --fresh", "dps-train a.toml --cells", "dps-train a.toml --bogus", "dps-train status a.h5"] {
        assert_eq!(output(refused).unwrap_err().exit_code(), 2, "{refused}");
    }
}

#[test]
fn usage_errors_end_with_two_and_help_with_zero() {
    for line in [
        "",
        "--plan",
        "a.toml b.toml",
        "a.toml --sett x=1",
        "a.toml --set x",
        "a.toml --quiet --progress bar",
        "a.toml data fetch",
        "a.toml --progress loud",
        "data",
        "--plan data fetch",
        "merge -o c.h5",
        "merge a.h5",
        "status",
        "status a.h5 --json --progress",
        "a.toml --cells --plan",
        "a.toml --quiet --verbose",
        "init",
        "init a.toml --dataset mnits",
        "configs a b",
        "keys a b",
        "keys grid --markdown",
    ] {
        let error = read(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}: {error}");
    }
    let help = read("--help").unwrap_err();
    assert_eq!(help.exit_code(), 0);
    assert!(help.to_string().contains("Examples, exit codes"));
    let version = read("--version").unwrap_err();
    assert_eq!((version.exit_code(), version.to_string()), (0, format!("dps-train {VERSION_AND_COMMIT}\n")));
}

#[test]
fn configurations_are_made_and_listed() {
    let given = Given { dataset: Some(DatasetName::Mnist), optimizer: Some(OptimizerName::Sgd), ..Given::default() };
    assert_eq!(
        read("init a.toml --dataset mnist --optimizer sgd").unwrap(),
        Train::Init { path: "a.toml".into(), given, data: DataFolder { folder: "data".into() } }
    );
    let own = read("init a.toml --path x.npz --listed --optimizer sgd").unwrap();
    let is_own = |given: &Given| given.listed && given.path.as_deref() == Some("x.npz") && given.dataset.is_none();
    assert!(matches!(&own, Train::Init { given, .. } if is_own(given)), "{own:?}");
    assert!(read("init a.toml --path x.npz --dataset mnist").is_err());
    assert_eq!(read("configs").unwrap(), Train::Configs { name: None });
    assert_eq!(read("configs quickstart").unwrap(), Train::Configs { name: Some("quickstart".into()) });
    let two = read("a.toml b.toml").unwrap_err().to_string();
    assert!(two.contains("expected one configuration file, found 2; start dps-train once for each"), "{two}");
    assert!(study("a.toml --verbose").shown.verbose);
}

#[test]
fn a_pilot_keeps_the_changes_of_the_configuration_alone() {
    let words = "pilot a/goal-0.1.toml --set grid.trials=3 --threads 2 --steps 40";
    let Train::Pilot(pilot) = read(words).unwrap() else { panic!("no pilot") };
    let study = pilot.study();
    assert_eq!((study.output(), study.overrides().len(), pilot.set.len()), ("a/goal-0.1-pilot.toml".into(), 2, 1));
    assert_eq!(pilot.asked, Asked { trials: None, steps: Some(40) });
    assert!(read("pilot a.toml --trials 0").is_err() && read("pilot").is_err());
}

#[test]
fn completions_and_manual_pages_are_of_both_programs() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let text = completions(shell);
        assert!(["dps-train", "dps-report", "doctor", "strict"].iter().all(|word| text.contains(word)), "{shell}");
    }
    let pages = manual_pages();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["dps-train.1", "dps-train-merge.1", "dps-train-data-fetch.1", "dps-report.1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // The pages have commands and options that the help leaves out.
    assert!(names.contains(&"dps-train-ended.1"), "{names:?}");
    assert!(["\\-\\-cells", "\\-\\-fresh", "Examples"].iter().all(|word| pages[0].1.contains(word)), "{}", pages[0].1);
    let text = &pages[0].1;
    assert!(text.contains(".TH dps-train 1") && text.contains("Exit codes"), "{text}");
}

/// Help is one screen of 80 columns, with the commands in the order of use; `-h` is shorter.
#[test]
fn help_is_one_screen() {
    let help = |line: &str| read(line).unwrap_err().to_string();
    let report = |option: &str| ReportArguments::read(["dps-report", option].map(OsString::from)).unwrap_err().to_string();
    for (text, most) in [(help("--help"), 45), (help("-h"), 24), (report("--help"), 36), (report("-h"), 24)] {
        assert!(text.lines().count() <= most && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let text = help("--help");
    let places: Vec<usize> = ["init", "configs", "data", "pilot", "status", "confirm", "replay", "merge", "supervise", "doctor"]
        .iter()
        .map(|name| text.find(&format!("\n  {name} ")).unwrap_or_else(|| panic!("no {name} in\n{text}")))
        .collect();
    assert!(places.is_sorted() && !text.contains("\n  ended "), "{text}");
    assert!(help("pilot -h").contains("--steps"), "the help of a command is its own");
}

#[test]
fn quiet_shows_no_progress() {
    let quiet = study("a.toml -q --plan");
    assert_eq!((quiet.shown.quiet, quiet.plan, quiet.shown.form()), (true, true, ProgressForm::None));
    assert_eq!(study("a.toml --progress json").shown.form(), ProgressForm::Json);
}

/// bash itself completes: after every command, its options.
#[test]
fn bash_completes_after_every_command() {
    let mut wanted = Vec::new();
    for mut program in [Line::command(), ReportArguments::command()] {
        program.build();
        collect(&program, program.get_name().to_owned(), &mut wanted);
    }
    assert!(wanted.iter().any(|(words, _)| words == "dps-train data fetch") && wanted.len() > 12, "{wanted:?}");
    let mut script = completions(Shell::Bash);
    for (words, _) in &wanted {
        let count = words.split(' ').count();
        let (program, last) = (words.split(' ').next().unwrap(), words.split(' ').next_back().unwrap());
        script += &format!(
            "COMP_WORDS=({words} --) COMP_CWORD={count} COMPREPLY=()\n_{} {program} -- {last}\necho \"{words}:${{COMPREPLY[*]}}\"\n",
            program.replace('-', "__")
        );
    }
    let output = std::process::Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for (line, (words, options)) in lines.into_iter().zip(wanted) {
        let (of, found) = line.split_once(':').unwrap();
        let found: Vec<&str> = found.split(' ').collect();
        assert!(of == words && options.iter().all(|option| found.contains(&option.as_str())), "{line}, and not {options:?}");
    }
}

/// Each command as it is typed, with its long options.
fn collect(command: &clap::Command, words: String, found: &mut Vec<(String, Vec<String>)>) {
    let options = command.get_opts().chain(command.get_arguments().filter(|argument| !argument.is_positional()));
    let options = options.filter(|option| !option.is_hide_set()).filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        collect(inner, format!("{words} {}", inner.get_name()), found);
    }
    found.push((words, options));
}

#[test]
fn what_was_meant_is_said() {
    let said = |line: &str| read(line).unwrap_err().render().to_string();
    for option in ["--resume", "--resume=x", "--continue", "--restart"] {
        let said = said(&format!("study.toml {option}"));
        assert!(said.contains("the command that began a study goes on with it") && !said.contains("--fresh"), "{said}");
    }
    assert!(said("study.toml --frehs").contains("--fresh"), "clap's own words");
    for (line, command) in
        [("stauts x", "status"), ("stauts", "status"), ("merg a b -o c", "merge"), ("docter", "doctor"), ("reply x 2 0 1", "replay")]
    {
        let said = said(line);
        assert!(said.contains("which is neither") && said.contains(&format!("did you mean dps-train {command}?")), "{said}");
    }
    assert!(said("--data . status").contains("write dps-train status, then its options"));
    assert!(said("a.toml b.toml").contains("expected one configuration file, found 2"));
    // Whatever looks like a path is one.
    for config in ["status.toml", "./stauts", "quickstart"] {
        assert_eq!(study(config).config, Path::new(config));
    }
}
