//! Studies of networks that the program has no special kernels for, of optimizers beside the paper's and of data that it has never seen, from their
//! configurations alone: configs/examples, each cut to a few steps, on made-up data unless it is of data in tests/fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::records::complete;
use crate::support::study::{fail, mpirun, succeed, train, write_data};
use dps::analysis::{self, Options};
use dps::network::Network;
use dps::results;
use dps::settings;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/examples");
    let mut examples: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    examples.sort();
    examples
}

/// The study of an example on few examples and steps: every kind of trial ends, at the goal or without it.
fn small(mut command: Command, example: &Path, data: &Path, output: &Path) -> Command {
    command.arg(example).arg("--data").arg(data).arg("--output").arg(output);
    command.args(["--batch-size", "3,17", "--trials", "4", "--threads", "1", "--device", "cpu", "--quiet"]);
    for set in ["data.source=own", "pruning.examples=50", "workload.max_steps=24", "workload.evaluate_every=8", "workload.goal_error=0.5"] {
        command.args(["--set", set]);
    }
    command
}

#[test]
fn a_configuration_is_enough_and_ranks_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    assert_eq!(examples().len(), 8);
    for example in examples() {
        let is_own = example.file_name().unwrap().to_string_lossy().starts_with("own-data-");
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data");
        let data = if is_own { &fixtures } else { folder.path() };
        assert!(fs::read_to_string(&example).unwrap().lines().count() <= 40, "{}", example.display());
        let [one, three] = ["one.h5", "three.h5"].map(|name| folder.path().join(example.file_stem().unwrap()).with_extension(name));
        // Of two classes half are right by chance.
        let goal = format!("workload.goal_error={}", if is_own { 0.2 } else { 0.5 });
        succeed(small(train(), &example, data, &one).args(["--set", &goal]));
        succeed(small(mpirun(3), &example, data, &three).args(["--set", &goal]));
        let (one, three) = (complete(&one), complete(&three));
        assert_eq!(one.len(), 4, "{}", example.display());
        assert!(one.iter().flat_map(|cell| &cell.trials).any(|trial| trial.curve.len() > 1), "{}", example.display());
        assert_eq!(one, three, "{}", example.display());
    }
}

/// The two studies of data of one's own as their files have them, and their report.
#[test]
fn studies_of_own_data_run_whole_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data");
    let mut files = Vec::new();
    for example in examples().into_iter().filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("own-data-")) {
        let output = folder.path().join(example.file_stem().unwrap()).with_extension("h5");
        succeed(train().arg(&example).arg("--data").arg(&fixtures).arg("--output").arg(&output).args(["--device", "cpu", "--quiet"]));
        let results = results::read(&output).unwrap();
        assert!(results.complete && results.cells.iter().any(|cell| cell.best().is_some()), "{}", example.display());
        files.push((output.file_name().unwrap().to_string_lossy().into_owned(), results));
    }
    let report = analysis::report(files, &folder.path().join("report"), &Options::default()).unwrap();
    let page = fs::read_to_string(report.page).unwrap();
    for words in ["digits.npz", "Steps-to-result against batch size", "K ≈ c1/B + c2"] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(report.studies.len(), 2);
}

#[test]
fn the_papers_networks_as_lists_are_those_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 300, 30);
    let listed = r#"[
        { layer = "convolution", channels = 32, kernel = 5 }, { layer = "relu" }, { layer = "max-pool", size = 2 },
        { layer = "convolution", channels = 64, kernel = 5 }, { layer = "relu" }, { layer = "max-pool", size = 2 },
        { layer = "flatten" }, { layer = "dense", outputs = 10 } ]"#;
    let residual = r#"[
        { layer = "convolution", channels = 16, kernel = 3, padding = "same" }, { layer = "residual", channels = 16 },
        { layer = "residual", channels = 32, stride = 2 }, { layer = "residual", channels = 64, stride = 2 },
        { layer = "relu" }, { layer = "global-mean" }, { layer = "dense", outputs = 10 } ]"#;
    let named = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/examples/lenet-5-caffe.toml")).unwrap();
    let config = folder.path().join("study.toml");
    let written = |network: &str| fs::write(&config, named.replace("\"lenet-5-caffe\"", network)).unwrap();
    for networks in [["\"simple-cnn\"", listed], ["\"resnet-8\"", residual]] {
        let [by_name, by_list] = networks.map(|network| {
            written(network);
            let study = settings::load(&config, &[]).unwrap().study;
            Network::listed(&study.workload.network.layers(10), [28, 28, 1], 10).unwrap()
        });
        assert_eq!(by_name, by_list, "{}", networks[0]);
    }
    // Equal networks train alike.
    let cells = [("name.h5", "\"simple-cnn\""), ("list.h5", listed)].map(|(output, network)| {
        written(network);
        let output = folder.path().join(output);
        succeed(&mut small(train(), &config, folder.path(), &output));
        complete(&output)
    });
    assert_eq!(cells[0], cells[1]);
}

#[test]
fn a_list_that_does_not_fit_is_refused_with_the_layer() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |network: &str| {
        let text = fs::read_to_string(examples().iter().find(|path| path.ends_with("lenet-5-caffe.toml")).unwrap()).unwrap();
        let config = folder.path().join("study.toml");
        fs::write(&config, text.replace("\"lenet-5-caffe\"", network)).unwrap();
        fail(train().arg(&config).arg("--plan"), 2)
    };
    let cases = [
        ("[]", "workload.network: expected from 1 to 1000 layers, found 0"),
        ("[\"relu\"]", "workload.network[1]: expected a layer, found \"relu\"; write for example { layer = \"relu\" }"),
        ("[{ layer = \"dens\", outputs = 10 }]", "did you mean \"dense\"?"),
        ("[{ layer = \"dense\" }]", "workload.network[1].outputs: expected a whole number from 1 to 1000000, found nothing"),
        (
            "[{ layer = \"dense\", outputs = 10 }]",
            "workload.network: layer 1 (dense): gets 28 × 28 × 1, needs 1 × 1 × inputs; put \"flatten\"",
        ),
        ("[{ layer = \"convolution\", channels = 4, kernel = 29 }]", "layer 1 (convolution): gets 28 × 28 × 1, needs at least 29 × 29"),
        ("[{ layer = \"flatten\" }, { layer = \"dense\", outputs = 11 }]", "expected 10 outputs, one for each class, found 11"),
        (
            "[{ layer = \"flatten\" }, { layer = \"dense\", outputs = 10, bias = 0 }]",
            "workload.network[2].bias: expected true or false, found 0",
        ),
        (
            "[{ layer = \"flatten\" }, { layer = \"dense\", outputs = 10, initialisation = \"hee\" }]",
            "workload.network[2].initialisation: expected one of variance-scaling, he, found \"hee\"; did you mean \"he\"?",
        ),
        ("[{ layer = \"residual\", channels = 8, bias = false }]", "unknown key \"workload.network[1].bias\""),
        (
            "[{ layer = \"convolution\", channels = 6, kernel = 3 }, { layer = \"group-norm\", groups = 4 }]",
            "workload.network: layer 2 (group-norm): gets 26 × 26 × 6, needs channels that its 4 groups divide",
        ),
        ("[{ layer = \"group-norm\" }]", "workload.network[1].groups: expected a whole number from 1 to 1000000, found nothing"),
        ("[{ layer = \"relu\", size = 2 }]", "unknown key \"workload.network[1].size\""),
    ];
    for (network, sentence) in cases {
        let found = refused(network);
        assert!(found.contains(sentence), "{network}: {found}");
    }
    // Within the limit of parameters, and beyond it where kernels widen the layers; and more text than a result file has room for.
    let end = "{ layer = \"global-mean\" }, { layer = \"dense\", outputs = 10 }]";
    for (layer, count, sentence) in [
        ("{ layer = \"convolution\", channels = 1, kernel = 1000, padding = \"same\" }, ", 18, "as kernels compute vectors of channels"),
        (
            "{ layer = \"convolution\", channels = 1, kernel = 1 }, { layer = \"relu\" }, ",
            400,
            "expected a configuration of at most 32768 bytes",
        ),
    ] {
        let found = refused(&format!("[{}{end}", layer.repeat(count)));
        assert!(found.contains(sentence), "{found}");
    }
}
