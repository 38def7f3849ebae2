//! Loading, refusing and overriding studies.

use std::path::Path;

use proptest::prelude::*;

use super::difference::GROWING_KEYS;
use super::*;
use crate::Error;
use crate::config::Override;
use crate::optimizer::{ByMetaparameter, Metaparameter, Range, Scale, Setting};
use crate::pruning::Pruning;

const VALID: &str = r#"
[workload]
dataset = "cifar-10"
network = "resnet-8"
optimizer = "nesterov"
schedule = "linear-decay"
goal_error = 0.4
goal_comparison = "integers"
max_steps = 1000
evaluate_every = 32

[grid]
batch_sizes = [2, 16]
sparsities = [0, 0.9]
trials = 5

[pruning]
criterion = "snip"
biases = "prunable"
shuffle = false
examples = 100

[search]
sobol = "joe-kuo"
learning_rate = { min = 1e-4, max = 1, scale = "log" }
momentum = { min = 0.9, max = 0.9999, scale = "reverse-log" }
decay_steps = 300
end_learning_rate_factor = { min = 1e-4, max = 0.1, scale = "log" }

[data]
validation_fraction = 0.1
split_seed = 7
order = "per-trial"
source = "original"

[execution]
device = "cpu"
threads = 2
data_parallel = 1
products = "fused"
tf32 = false
reduction = "reproducible"
share_gpu = false
lanes = 0
checkpoint_seconds = 60
deadline_seconds = 1800
race = true
full_evaluation = false
"#;

fn set(setting: &str) -> Override {
    Override::parse(setting).unwrap()
}

fn problems(text: &str, overrides: &[Override]) -> Vec<String> {
    match parse("study", text, overrides) {
        Err(Error::Configuration { problems, .. }) => problems,
        Err(other) => panic!("not a configuration error: {other}"),
        Ok(_) => Vec::new(),
    }
}

/// The one problem of `VALID` with one setting changed.
fn problem(setting: &str) -> String {
    let found = problems(VALID, &[set(setting)]);
    assert_eq!(found.len(), 1, "{setting}: {found:#?}");
    found.into_iter().next().unwrap()
}

/// The configuration of this name among those that come with the program.
fn shipped(name: &str) -> Study {
    let found = SHIPPED.iter().find(|shipped| shipped.name.strip_suffix(".toml") == Some(name)).unwrap();
    parse(name, found.text, &[]).unwrap_or_else(|error| panic!("{error}")).study
}

#[test]
fn the_workloads_of_the_paper_are_all_there() {
    let mut names = Vec::new();
    let all = &["momentum", "nesterov", "sgd"][..];
    for (dataset, schedule, goal, optimizers) in [
        ("cifar-10", "constant", "0.4", &["momentum", "sgd"][..]),
        ("cifar-10", "linear-decay", "0.4", all),
        ("fashion-mnist", "constant", "0.12", all),
        ("fashion-mnist", "constant", "0.14", all),
        ("mnist", "constant", "0.02", all),
    ] {
        for &optimizer in optimizers {
            let (network, most, every, ending) = match dataset {
                "cifar-10" => ("resnet-8", 100_000, 32, format!("-{schedule}")),
                "fashion-mnist" => ("simple-cnn", 40_000, 16, format!("-goal-{goal}")),
                _ => ("simple-cnn", 40_000, 16, String::new()),
            };
            // The paper shows the trials of these (figures 3, 5 and 13 to 18). A race that ends at K* leaves one point to confirm.
            let shows_trials = dataset == "mnist" || dataset == "cifar-10" && (schedule == "constant" || optimizer == "nesterov");
            let race = if shows_trials { 3 } else { 1 };
            let momentum = if optimizer == "sgd" { "" } else { "momentum = { min = 0.9, max = 0.9999, scale = \"reverse-log\" }" };
            let decay = match schedule {
                "constant" => "",
                _ => {
                    "decay_steps = { min = 30_000, max = 60_000, scale = \"integer\" }\n\
                     end_learning_rate_factor = { min = 1e-4, max = 0.1, scale = \"log\" }"
                }
            };
            let text = format!(
                "[workload]\ndataset = \"{dataset}\"\nnetwork = \"{network}\"\noptimizer = \"{optimizer}\"\nschedule = \"{schedule}\"\n\
                 goal_error = {goal}\nmax_steps = {most}\nevaluate_every = {every}\n[grid]\nbatch_sizes = {:?}\n\
                 sparsities = [0, 0.5, 0.7, 0.9]\ntrials = 100\n[pruning]\ncriterion = \"snip\"\nbiases = \"prunable\"\nexamples = 0\n\
                 [search]\nsobol = \"bratley-fox\"\nlearning_rate = {{ min = 1e-4, max = 1.0, scale = \"log\" }}\n{momentum}\n{decay}\n\
                 [execution]\nrace = {race}\n[confirm]\npoints = {race}\nseeds = 16\nlimit = 4\nevaluate_every = 0\n",
                (1..=14).map(|power| 1 << power).collect::<Vec<u32>>()
            );
            names.push(format!("{dataset}-{network}-{optimizer}{ending}"));
            let name = names.last().unwrap();
            assert_eq!(shipped(name), parse(name, &text, &[]).unwrap_or_else(|error| panic!("{error}")).study, "{name}");
        }
    }
    let others = |name: &&str| *name == "quickstart" || name.ends_with("-small") || name.starts_with("smoothness-") || name.contains('/');
    let stems = SHIPPED.iter().filter_map(|shipped| shipped.name.strip_suffix(".toml"));
    let mut found: Vec<&str> = stems.filter(|name| !others(name)).collect();
    found.sort_unstable();
    names.sort();
    assert_eq!(found, names);
}

#[test]
fn smoothness_is_measured_as_in_the_paper_and_along_whole_trainings() {
    for (name, max_steps) in [("mnist-simple-cnn", 40_000), ("fashion-mnist-simple-cnn", 40_000), ("cifar-10-resnet-8", 100_000)] {
        let study = shipped(&format!("smoothness-{name}"));
        let measured = Smoothness { every: 100, start: true, trials: 0, points: 10, whole_step: true, examples: 0 };
        assert_eq!((study.smoothness, study.grid.sparsities), (Some(measured), vec![0.0, 0.5, 0.7, 0.9]), "{name}");
        assert_eq!((study.workload.goal_threshold(6_000), study.workload.max_steps), (0, max_steps), "{name}");
        assert!(study.execution.full_evaluation && study.pruning == Pruning::default(), "{name}");
        assert_eq!(name, format!("{}-{}", study.workload.dataset, study.workload.network));
    }
}

/// `VALID` with another optimizer and schedule, and these settings of the search.
fn searched(optimizer: &str, schedule: &str, settings: &str) -> Result<Study, Vec<String>> {
    let (before, after) = (VALID.split_once("[search]").unwrap().0, VALID.split_once("[data]").unwrap().1);
    let text = format!("{before}[search]\nlearning_rate = 0.1\n{settings}\n[data]{after}");
    let text = text.replace("\"nesterov\"", &format!("\"{optimizer}\"")).replace("\"linear-decay\"", &format!("\"{schedule}\""));
    match parse("s", &text, &[]) {
        Ok(loaded) => Ok(loaded.study),
        Err(Error::Configuration { problems, .. }) => Err(problems),
        Err(other) => panic!("not a configuration error: {other}"),
    }
}

#[test]
fn what_an_optimizer_or_schedule_needs_is_asked_for_and_nothing_else() {
    let adam = searched("adam", "constant", "").unwrap().search.settings;
    let fixed = [(Metaparameter::Beta1, 0.9), (Metaparameter::Beta2, 0.999), (Metaparameter::Epsilon, 1e-8)];
    let expected: ByMetaparameter<f64> = [(Metaparameter::LearningRate, 0.1)].into_iter().chain(fixed).collect();
    assert_eq!(adam, expected.map(Setting::Fixed));
    let found = searched("adamw", "constant", "").unwrap_err();
    assert!(
        found.len() == 1 && found[0].contains("weight_decay: expected a value or a range for optimizer \"adamw\", found nothing"),
        "{found:?}"
    );
    assert!(searched("adamw", "constant", "weight_decay = 0.1\nbeta1 = 0\nepsilon = 1e-3").is_ok());
    for (optimizer, schedule, settings, sentence) in [
        ("adam", "constant", "momentum = 0.9", "search.momentum: expected nothing for optimizer \"adam\", found a value"),
        ("sgd", "constant", "beta2 = 0.9", "search.beta2: expected nothing for optimizer \"sgd\", found a value"),
        ("adam", "constant", "beta2 = 1", "search.beta2: expected a number from 0 to below 1 or a range, found 1"),
        ("adam", "constant", "epsilon = 0", "search.epsilon: expected a finite number above 0 or a range, found 0"),
        ("sgd", "cosine", "decay_steps = 9", "search.end_learning_rate_factor: expected a value or a range for schedule \"cosine\""),
        ("sgd", "step-decay", "decay_every = 9", "search.decay_factor: expected a value or a range for schedule \"step-decay\""),
        ("sgd", "constant", "decay_every = 9", "search.decay_every: expected nothing for schedule \"constant\", found a value"),
        ("sgd", "constant", "warm_up_steps = 9", "unknown key \"search.warm_up_steps\"; did you mean \"search.warmup_steps\"?"),
    ] {
        let found = searched(optimizer, schedule, settings).unwrap_err();
        assert!(found.len() == 1 && found[0].contains(sentence), "{optimizer}, {schedule}, {settings}: {found:?}");
    }
    for (schedule, settings) in
        [("cosine", "decay_steps = 9\nend_learning_rate_factor = 0"), ("step-decay", "decay_every = 9\ndecay_factor = 0.1")]
    {
        assert!(searched("sgd", schedule, &format!("{settings}\nwarmup_steps = 3\naverage_decay = 0.9")).is_ok(), "{schedule}");
    }
}

#[test]
fn grasp_has_its_authors_temperature_unless_told_otherwise() {
    let of = |setting: &str| parse("s", VALID, &[set(setting)]).unwrap().study.pruning.temperature;
    assert_eq!(of("pruning.criterion=snip"), None);
    assert_eq!(of("pruning.criterion=grasp"), Some(200.0));
    assert_eq!(of("pruning={ criterion = \"grasp\", temperature = 1 }"), Some(1.0));
    assert!(
        problem("pruning.temperature=200")
            .contains("pruning.temperature: expected nothing for criterion \"snip\", found a value; remove it")
    );
}

/// The report sets the loss surface beside the sample study only if both have the same workload, pruning and data.
#[test]
fn the_small_loss_surface_is_that_of_the_sample_study() {
    let [steps, surface] = ["study-small", "smoothness-small"].map(shipped);
    let of =
        |study: &Study| (study.workload.dataset.clone(), study.workload.network.clone(), study.workload.optimizer, study.workload.schedule);
    assert_eq!(of(&steps), of(&surface));
    assert_eq!((&steps.pruning, &steps.data), (&surface.pruning, &surface.data));
    assert!(surface.grid.batch_sizes.iter().all(|size| steps.grid.batch_sizes.contains(size)));
    assert_eq!(surface.workload.goal_threshold(6_000), 0);
    let smoothness = surface.smoothness.unwrap();
    assert!((smoothness.every, smoothness.points) == (100, 10) && smoothness.examples > 0 && surface.execution.full_evaluation);
}

#[test]
fn the_quickstart_is_small() {
    let study = shipped("quickstart");
    let steps =
        study.grid.batch_sizes.len() as u64 * study.grid.sparsities.len() as u64 * u64::from(study.grid.trials * study.workload.max_steps);
    assert!(steps <= 13_000, "{steps} trial-steps");
    assert_ne!(study.pruning.examples, 0);
}

#[test]
fn canonical_text_reads_back_as_itself() {
    let mut texts: Vec<String> = SHIPPED.iter().map(|shipped| shipped.text.to_owned()).collect();
    texts.push(VALID.to_owned());
    // Fixed and ranged metaparameters mixed: TOML wants values before tables.
    texts.push(VALID.replace("momentum = { min = 0.9, max = 0.9999, scale = \"reverse-log\" }", "momentum = 0.95"));
    for text in texts {
        let first = parse("study", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let second = recorded("study", &first.text, &[]).unwrap_or_else(|error| panic!("{error}\n{}", first.text));
        assert_eq!(first, second);
    }
}

/// The valid configuration with a list of layers for its network.
fn listed(layers: &str) -> Configuration {
    parse("study", &VALID.replace("\"resnet-8\"", layers), &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_layers_usual_initialisation_and_bias_are_not_written() {
    let dense = |keys: &str| listed(&format!("[{{ layer = \"flatten\" }}, {{ layer = \"dense\", outputs = 10{keys} }}]"));
    let plain = dense("");
    assert!(!plain.text.contains("bias =") && !plain.text.contains("initialisation"), "{}", plain.text);
    assert_eq!(dense(", bias = true, initialisation = \"variance-scaling\"").digest, plain.digest);
    let mut digests = vec![plain.digest];
    for keys in [", bias = false", ", initialisation = \"he\"", ", initialisation = \"he\", bias = false"] {
        let loaded = dense(keys);
        assert_eq!(recorded("study", &loaded.text, &[]).unwrap(), loaded, "{keys}");
        assert!(!digests.contains(&loaded.digest), "{keys}");
        digests.push(loaded.digest);
    }

    let block = |keys: &str| {
        listed(&format!(
            "[{{ layer = \"convolution\", channels = 8, kernel = 3, padding = \"same\" }}, {{ layer = \"residual\", channels = 8{keys} }}, \
             {{ layer = \"relu\" }}, {{ layer = \"global-mean\" }}, {{ layer = \"dense\", outputs = 10 }}]"
        ))
    };
    assert_eq!(block(", initialisation = \"variance-scaling\"").digest, block("").digest);
    let he = block(", initialisation = \"he\"");
    assert_ne!(he.digest, block("").digest);
    assert_eq!(recorded("study", &he.text, &[]).unwrap(), he);
}

#[test]
fn the_digest_follows_what_decides_a_record() {
    let digest = |settings: &[&str]| parse("s", VALID, &settings.iter().map(|text| set(text)).collect::<Vec<_>>()).unwrap().digest;
    assert_eq!(digest(&[]).len(), 64);
    assert_eq!(digest(&[]), digest(&["execution.device=auto", "execution.threads=9", "execution.data_parallel=0"]));
    // A study may get more cells and trials.
    assert_eq!(digest(&[]), digest(&["grid.trials=6", "grid.batch_sizes=[2, 16, 32]", "grid.sparsities=[0.5]"]));
    assert_eq!(digest(&[]), digest(&["execution.race=1", "execution.convolutions=winograd"]));
    for setting in [
        "execution.race=false",
        "execution.race=3",
        "execution.convolutions=direct",
        "execution.products=cublas",
        "execution.tf32=true",
        "data.split_seed=8",
        "search.momentum=0.9",
        "workload.goal_error=0.41",
        "workload.goal_comparison=float32",
        "data.order=shared",
        "pruning.shuffle=true",
        "pruning.reinitialise=true",
        "search.first_trial=100",
    ] {
        assert_ne!(digest(&[]), digest(&[setting]), "{setting}");
    }
}

#[test]
fn a_kept_configuration_without_convolutions_is_of_direct_ones() {
    let direct = parse("study", VALID, &[set("execution.convolutions=direct")]).unwrap();
    assert!(!direct.text.contains("convolutions"), "a text of dps 0.2:\n{}", direct.text);
    assert_eq!(recorded("study", &direct.text, &[]).unwrap(), direct);
    assert_eq!(recorded("study", VALID, &[]).unwrap(), direct);
    let (sections, _) = VALID.split_once("[execution]").unwrap_or((VALID, ""));
    let damaged = recorded("study", &format!("execution = 3\n{sections}"), &[]).unwrap_err().to_string();
    assert!(damaged.contains("execution"), "a number in place of the section: {damaged}");
    let winograd = parse("study", VALID, &[]).unwrap();
    assert_eq!(winograd.study.execution.convolutions, Convolutions::Winograd);
    assert_eq!(recorded("study", &winograd.text, &[]).unwrap(), winograd);
    assert_eq!(recorded("study", &direct.text, &[set("execution.convolutions=winograd")]).unwrap(), winograd);
}

#[test]
fn every_problem_is_reported_at_once_with_its_line() {
    let text = "goal_error = 0.2\n[workload]\ndataset = \"mnits\"\nnetwork = \"resnet-8\"\noptimiser = \"sgd\"\nmax_steps = 10\nevaluate_every = 0\n\
                [grid]\nbatch_sizes = [0, 4,\n  4]\nsparsities = [1.0]\n[search]\nmomentum = \"high\"\n[exection]\n";
    let mut found = problems(text, &[]);
    found.sort();
    // A key that is absent is reported where its section begins.
    let expected = [
        "line 10: grid.batch_sizes: expected each value once, found 4 again; remove the duplicate",
        "line 11: grid.sparsities: expected a list of sparsities, each a fraction from 0 to below 1, found 1.0; write for example [0, 0.5, 0.9]",
        "line 13: search.momentum: expected a number from 0 to below 1 or a range, found \"high\"; write for example { min = 0.9, max = 0.9999, scale = \"reverse-log\" }",
        "line 14: unknown key \"exection\"; did you mean \"execution\"?",
        "line 1: unknown key \"goal_error\"; did you mean \"workload.goal_error\"?",
        "line 3: workload.dataset: expected one of mnist, fashion-mnist, cifar-10, found \"mnits\"; did you mean \"mnist\"?",
        "line 5: unknown key \"workload.optimiser\"; did you mean \"workload.optimizer\"?",
        "line 7: workload.evaluate_every: expected a whole number from 1 to 4294967295, found 0; write for example 16",
        "line 8: grid.trials: expected a whole number from 1 to 100000, found nothing; add for example trials = 100",
        "line 9: grid.batch_sizes: expected a list of batch sizes, each a whole number from 1 to 16777216, found 0; write for example [16, 64, 256]",
    ];
    assert_eq!(found, expected);
}

#[test]
fn syntax_errors_name_their_lines() {
    let found = problems("[workload]\ndataset = mnist\n[grid\n", &[]);
    assert!(found[0].starts_with("line 2: expected TOML, found a syntax error: "), "{found:?}");
    assert!(found[1].starts_with("line 3: "), "{found:?}");
}

#[test]
fn an_absent_section_is_one_problem() {
    let found = problems("", &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("grid: expected a section, found none; add [grid] with "), "{found:?}");
    // Without a workload nothing is known of what the search needs.
    assert!(found[1].starts_with("workload: expected a section"), "{found:?}");
    let found = problems(&VALID.replace("[workload]", "[wrokload]"), &[]);
    assert_eq!(found, ["line 2: unknown key \"wrokload\"; did you mean \"workload\"?"]);
}

#[test]
fn an_unreadable_file_says_what_to_do() {
    let error = load(Path::new("no-such.toml"), &[]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().starts_with("no-such.toml: expected a readable configuration file, found none ("), "{error}");
    for name in ["fashion-mnist-simple-cnn-momentum-goal-0.14", "lenet-5-caffe.toml"] {
        let error = load(&Path::new("no-such-folder").join(name), &[]).unwrap_err().to_string();
        let shipped = Shipped::named(name).unwrap().name;
        assert!(
            error.ends_with(&format!("; dps-train configs {shipped} > study.toml writes the one that comes with the program")),
            "{error}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1.toml");
    std::fs::write(&path, b"[workload]\n# caf\xe9\n").unwrap();
    let error = load(&path, &[]).unwrap_err().to_string();
    assert!(error.ends_with("line 2: expected text in UTF-8, found other bytes; save the file as UTF-8"), "{error}");
    for (bytes, words) in [
        (&b"\x89HDF\r\n\x1a\n\x00\xff"[..], "found an HDF5 file; give the TOML file of the study"),
        (b"\x1f\x8b\x08\x00\xff", "found a file of another kind; give the path of a TOML file"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = load(&path, &[]).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = load(folder.path(), &[]).unwrap_err().to_string();
    assert!(error.ends_with("expected a configuration file, found a folder; name a file in it"), "{error}");
    // A name that leads to the open end of a pipe, as the shell's <(…) is one.
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let error = load(Path::new(&pipe), &[]).unwrap_err().to_string();
    assert!(error.contains("found a pipe, which every rank would have to read; write it to a file and name that"), "{error}");
}

#[test]
fn every_range_is_held() {
    for (key, allowed, refused) in [
        ("workload.goal_error", &["1e-9", "0.999"][..], &["0", "1", "-0.1", "nan", "inf", "\"0.1\"", "true", "[0.1]", "2024-01-01"][..]),
        (
            "workload.max_steps",
            &["32", "4294967295"],
            &["-1", "4294967296", "1e3", "0x1_0000_0000", "99999999999999999999999999999999999999999"],
        ),
        ("workload.evaluate_every", &["1", "1000"], &["0", "1001"]),
        ("grid.batch_sizes", &["[1]", "[16777216, 3]"], &["[]", "[0]", "[2, 2]", "2", "[1.5]", "[[2]]"]),
        ("grid.sparsities", &["[0.999999]", "[0, 0.5]", "[-0.0]"], &["[]", "[1]", "[-0.1]", "[nan]", "[0, 0.0]", "[0.0, -0.0]"]),
        ("grid.trials", &["1", "100000"], &["0", "100001", "1000000000"]),
        ("pruning.criterion", &["random", "magnitude", "\"snip\""], &["snipp", "1"]),
        ("pruning.biases", &["exempt"], &["never"]),
        ("pruning.examples", &["0", "45000"], &["-1", "0.5"]),
        ("search.sobol", &["bratley-fox"], &["sobol"]),
        ("search.learning_rate", &["0.1", "3", "{ min = 0.1, max = 0.5, scale = \"linear\" }"], &["0", "-1", "nan", "inf", "1e999"]),
        ("search.learning_rate.scale", &["log", "linear"], &["integer", "logs"]),
        ("search.learning_rate.min", &["0.5"], &["0", "1", "2"]),
        ("search.learning_rate.max", &["7"], &["inf", "1e-4"]),
        ("search.momentum", &["0", "0.9"], &["1", "-0.1", "1.5", ""]),
        ("search.momentum.min", &["0", "0.5"], &["0.9999", "-1"]),
        ("search.momentum.max", &["0.95"], &["1", "0.9", ""]),
        ("search.momentum.scale", &["linear", "log"], &["integer", ""]),
        ("search.decay_steps", &["1", "2.0", "{ min = 3, max = 4, scale = \"integer\" }"], &["0", "1.5", "-3", ""]),
        ("search.end_learning_rate_factor", &["1", "1e-300", "0"], &["-0.1", "1.01", ""]),
        ("search.end_learning_rate_factor.min", &["0.01"], &["0", "0.2"]),
        ("search.weight_decay", &["0", "0.1", "3", "", "{ min = 1e-5, max = 0.1, scale = \"log\" }"], &["-0.1", "inf"]),
        ("search.warmup_steps", &["1", "100", ""], &["0", "1.5", "-1", "4294967296"]),
        ("search.average_decay", &["0", "0.999", ""], &["1", "-0.1"]),
        ("search.beta1", &[""], &["0.9"]),
        ("search.decay_every", &[""], &["10"]),
        (
            "pruning",
            &["{ criterion = \"grasp\", temperature = 1 }"],
            &["{ criterion = \"grasp\", temperature = 0 }", "{ temperature = 200 }"],
        ),
        ("data.validation_fraction", &["0.5", "1e-6"], &["0", "1", "1e-300", "0.9999999"]),
        ("data.order", &["shared", "per-trial"], &["trial", "0"]),
        ("data.source", &["own", "original"], &["mine", "0"]),
        ("workload.goal_comparison", &["float32", "integers"], &["float", "32"]),
        ("data.split_seed", &["0", "9223372036854775807"], &["-1", "9223372036854775808"]),
        ("smoothness.every", &["1", "100"], &["0", "-1", "0.5"]),
        ("confirm.points", &["1", "1000"], &["0", "1001", "1.5", "-1"]),
        ("confirm.seeds", &["1", "10000"], &["0", "10001", "many"]),
        ("confirm.precision", &["0", "0.05", "10"], &["-0.1", "10.1", "nan"]),
        ("confirm.mean_error", &["true", "false"], &["1", "\"yes\""]),
        ("confirm.limit", &["1", "1.5", "1000000"], &["0.9", "-4", "inf", "nan"]),
        ("confirm.evaluate_every", &["0", "16"], &["-1", "0.5"]),
        (
            "confirm.vary",
            &["[\"weights\"]", "[\"order\"]", "[\"order\", \"weights\"]"],
            &["[]", "weights", "[\"mask\"]", "[\"order\", \"order\"]", "[1]"],
        ),
        ("confirm", &["{}", "{ points = 2 }"], &["true", "{ points = 0 }"]),
        (
            "smoothness",
            &["{ every = 7 }", "{ every = 1, start = true, points = 2, whole_step = false }"],
            &[
                "{ every = 7, start = 1 }",
                "{ every = 7, points = 1, whole_step = false }",
                "{ every = 7, points = 0 }",
                "{ every = 7, points = 1001 }",
                "{ every = 7, trials = -1 }",
                "{ points = 3 }",
            ],
        ),
        ("execution.device", &["cuda", "auto"], &["gpu"]),
        ("execution.threads", &["0", "1024"], &["-1", "1025", "100000"]),
        ("execution.data_parallel", &["0", "8"], &["-1"]),
        ("execution.convolutions", &["direct", "winograd"], &["fft", "true"]),
        ("execution.products", &["fused", "cublas"], &["cudnn", "true"]),
        ("execution.tf32", &["true"], &["1"]),
        ("execution.reduction", &["nccl", "reproducible"], &["mpi"]),
        ("execution.share_gpu", &["true"], &["1"]),
        ("execution.checkpoint_seconds", &["0", "600"], &["-1", "0.5"]),
        ("execution.lanes", &["0", "5"], &["-1"]),
        ("execution.deadline_seconds", &["0", "5"], &["-1"]),
        ("execution.race", &["false", "1", "3", "1.5"], &["0", "0.99", "-3", "nan", "1e7", "\"no\""]),
        ("execution.full_evaluation", &["true"], &["1"]),
    ] {
        for value in allowed {
            let found = problems(VALID, &[set(&format!("{key}={value}"))]);
            assert!(found.is_empty(), "{key}={value}: {found:?}");
        }
        for value in refused {
            let found = problem(&format!("{key}={value}"));
            assert!(found.contains(key) && found.contains("expected") && found.contains("found") && found.contains(';'), "{found}");
        }
    }
    let reverse = problem("search.learning_rate.scale=reverse-log");
    assert!(reverse.contains("search.learning_rate.max: expected a number below 1 on the scale \"reverse-log\", found 1"), "{reverse}");
    assert!(!problems(VALID, &[set("search.momentum={ min = 0, max = 0.5, scale = \"log\" }")]).is_empty());
}

#[test]
fn parts_that_disagree_are_named() {
    let limits = problem("search.learning_rate.max=1e-4");
    assert!(
        limits.starts_with("--set search.learning_rate.max=1e-4: search.learning_rate.min: expected less than max = 0.0001, found 0.0001"),
        "{limits}"
    );
    let steps = problem("workload.max_steps=31");
    assert!(steps.starts_with("--set workload.max_steps=31: workload.evaluate_every: expected at most workload.max_steps = 31"), "{steps}");
    let momentum = problem("workload.optimizer=sgd");
    assert!(momentum.contains("search.momentum: expected nothing for optimizer \"sgd\", found a value; remove it"), "{momentum}");
    let schedule = problems(VALID, &[set("workload.schedule=constant")]);
    assert_eq!(schedule.len(), 2, "{schedule:?}");
    let removed = problem("search.momentum=");
    assert!(removed.contains("search.momentum: expected a value or a range for optimizer \"nesterov\", found nothing; add"), "{removed}");
    assert!(problems(VALID, &[set("workload.optimizer=sgd"), set("search.momentum=")]).is_empty());
}

#[test]
fn overrides_replace_the_file_and_errors_name_the_option() {
    let batch_sizes = |value: &str| Override::new("--batch-size 8,8", "grid.batch_sizes", value);
    let changes = [
        batch_sizes("[8]"),
        set("search.momentum=0.5"),
        set("search.momentum.min = 0.1"),
        set("search.momentum.max=0.2"),
        set("search.momentum.scale=linear"),
    ];
    let study = parse("study", VALID, &changes).unwrap().study;
    assert_eq!(study.grid.batch_sizes, [8]);
    assert_eq!(
        study.search.settings.get(Metaparameter::Momentum),
        Some(Setting::Range(Range { min: 0.1, max: 0.2, scale: Scale::Linear }))
    );
    let found = problems(VALID, &[batch_sizes("[8, 8]")]);
    assert_eq!(found, ["--batch-size 8,8: grid.batch_sizes: expected each value once, found 8 again; remove the duplicate"]);
    assert_eq!(
        problem("workload.goal_eror=0.1"),
        "--set workload.goal_eror=0.1: unknown key \"workload.goal_eror\"; did you mean \"workload.goal_error\"?"
    );
    assert!(problem("grid.trials=[1").starts_with("--set grid.trials=[1: expected a TOML value, found \"[1\"; "));
    assert!(problem("a.b.c.d=1").contains("expected a dotted key of at most 3 words, found 4"));
    assert!(problem("grid=1").contains("grid: expected a section, found 1; write [grid]"));
    for setting in ["", "grid.trials", "=3", " = 3"] {
        assert!(Override::parse(setting).unwrap_err().starts_with("expected key=value, found "), "{setting}");
    }
}

#[test]
fn deep_nesting_is_refused_in_words() {
    for text in [
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{ b = ".repeat(100_000)),
        "a.".repeat(100_000) + "b = 1",
    ] {
        assert!(!problems(&text, &[]).is_empty());
    }
    assert!(!problems(VALID, &[set(&format!("grid.trials={}", "[".repeat(100_000)))]).is_empty());
    assert!(!problems(VALID, &[set(&format!("{}=1", "a.".repeat(100_000)))]).is_empty());
    assert!(!problems(VALID, &[set(&format!("{}=1", "a".repeat(1_000_000)))]).is_empty());
}

#[test]
fn keys_that_are_listed_by_name_are_keys() {
    let all: Vec<String> = super::study::sections().iter().flat_map(|section| &section.keys).map(|key| key.path()).collect();
    for key in [&IGNORED_KEYS[..], &CELL_KEYS, &GROWING_KEYS].concat() {
        assert!(all.iter().any(|path| path == key), "{key}");
    }
}

/// Every dotted key of `VALID` with its line's text.
fn keys() -> Vec<(&'static str, &'static str)> {
    VALID.lines().filter_map(|line| line.split_once(" = ").map(|(key, _)| (key, line))).collect()
}

/// One slip of the kind `kind` at `place` of a word.
fn slip(word: &str, place: usize, kind: u8, letter: char) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let place = place % letters.len();
    match kind {
        0 => letters.insert(place, letter),
        1 => letters[place] = letter,
        2 => drop(letters.remove(place)),
        _ => letters.swap(place, place.saturating_sub(1)),
    }
    letters.into_iter().collect()
}

/// A removal names a key, of the file or of any configuration; that of a key in a section that is not there does not begin the section.
#[test]
fn a_removal_names_a_key() {
    for removal in ["confirm=", "confirm.points=", "search.momentum.scale=", "smoothness="] {
        let study = parse("study", VALID, &[set("search.momentum=0.9"), set(removal)]);
        assert!(study.is_ok_and(|study| study.study.confirm.is_none()), "{removal}");
    }
    assert!(Override::parse("=x=").is_err());
    for removal in ["confrim=", "confirm.point=", "momentum=", "grid.batch_sizes.min="] {
        let found = problems(VALID, &[set(removal)]);
        assert!(found.len() == 1 && found[0].contains("expected a key of a configuration to remove"), "{removal}: {found:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = parse("study", &text, &[]);
    }

    #[test]
    fn arbitrary_settings_never_panic(text in r#"([a-z_\[\]{}=., "'#\n0-9-]|goal_error|\[grid\]\n|workload|search\.|min){0,40}"#, key in "[a-z._]{0,20}", value in "[a-z0-9{}=.,\\[\\]\"-]{0,20}") {
        let changes = [Override { option: "--set".to_owned(), key, value }];
        let _ = parse("study", &text, &changes);
        let _ = parse("study", VALID, &changes);
        let _ = parse("study", &format!("{VALID}{text}"), &changes);
    }

    #[test]
    fn a_misspelled_key_is_refused_and_the_right_one_suggested(index in any::<prop::sample::Index>(), place: usize, kind in 0u8..4, letter in "[a-z_]") {
        let known = keys();
        let (key, line) = known[index.index(known.len())];
        let wrong = slip(key, place, kind, letter.chars().next().unwrap());
        prop_assume!(!wrong.is_empty() && !known.iter().any(|(name, _)| *name == wrong));
        let found = problems(&VALID.replacen(line, &line.replacen(key, &wrong, 1), 1), &[]);
        prop_assert_eq!(found.len(), 1, "{:?}", found);
        prop_assert!(found[0].contains(&format!(".{wrong}\"; did you mean")) && found[0].ends_with(&format!(".{key}\"?")), "{:?}", found);
    }

    #[test]
    fn a_misspelled_value_is_refused_and_the_right_one_suggested(place in 1usize..20, kind in 0u8..4, letter in "[a-z]", name in prop::sample::select(
        [("workload.dataset", "cifar-10"), ("workload.network", "resnet-8"), ("workload.optimizer", "nesterov"), ("workload.schedule", "linear-decay"), ("pruning.criterion", "magnitude"), ("pruning.biases", "prunable")].to_vec(),
    )) {
        let wrong = slip(name.1, place, kind, letter.chars().next().unwrap());
        prop_assume!(wrong != name.1);
        let found = problems(VALID, &[set(&format!("{}=\"{wrong}\"", name.0))]);
        prop_assert!(found[0].contains(&format!("did you mean \"{}\"?", name.1)), "{:?}", found);
    }
}
