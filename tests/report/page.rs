//! The page, its tables and its warnings, of studies in every state.

use std::fs;

use super::coverage::{DENSE, confirmed_study};
use crate::support::synthetic::Synthetic;
use dps::analysis::{self, Options, Report, Style, confirmed_cells, fits, gather, warnings};
use dps::optimizer::Metaparameter;
use dps::records::{Confirmation, Ending, Start, Status, Training, Trial, Wanted};
use dps::results::Results;
use dps::settings::{self, Race};
use svg2pdf::usvg;

/// Figures of the page that has them all.
const FIGURES: usize = 14;

/// The report of some results, named 0.h5, 1.h5 …, and its folder.
fn report(results: Vec<Results>) -> (Report, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let files = results.into_iter().enumerate().map(|(number, results)| (format!("{number}.h5"), results)).collect();
    (analysis::report(files, folder.path(), &Options::default()).unwrap(), folder)
}

/// The page of a report, after the checks that every page must pass.
fn page(report: &Report) -> String {
    let page = fs::read_to_string(&report.page).unwrap();
    for outside in ["<script", "<link", "<img", "src=", "url(", "@import", "https:"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    // A link leads to a part of the page or to a file of the report, such as the table that a figure names.
    let mut links = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).peekable();
    assert!(links.peek().is_some(), "no link");
    for link in links {
        let is_there = match link.strip_prefix('#') {
            Some(part) => page.contains(&format!("id=\"{part}\"")),
            None => report.page.with_file_name(link).is_file(),
        };
        assert!(is_there, "a link to {link}, which is not there");
    }
    assert_eq!(page.matches("http://").count(), page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    for tag in ["figure", "table", "dl", "ul", "svg", "h2", "h3", "pre", "p", "li", "td", "text"] {
        let (opened, closed) = (
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count(),
            page.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(opened, closed, "<{tag}>");
    }
    page
}

#[test]
fn a_finished_study_is_told_from_its_workload_to_its_configuration() {
    let (report, folder) = report(vec![Synthetic::small().results()]);
    let page = page(&report);
    let told = [
        "fashion-mnist, simple-cnn, momentum, constant learning rate",
        "By K*, the critical batch size c1/c2 is ",
        "<code>dps-train replay 0.h5 --batch-size 2 --sparsity 0.9</code>",
        "By the fits, the network of sparsity 0.9 takes",
        "The weakest point: ",
        "dps-train confirm would measure how much, in about ",
        "<code>dps-report 0.h5 --strict</code>",
        "<svg",
        "Contents",
        "<summary>What was run</summary>",
        "validation error ≤ 0.14: at most 840 of 6,000 examples wrong",
        "every 16 steps, up to 40,000",
        "<td>2</td><td>4,592</td><td>8,736</td>",
        "next multiple of 16 steps",
        "linear scaling at 2, diminishing returns from 8 to 128",
        "<th>definition</th><th>sparsity 0</th><th>sparsity 0.9</th>",
        "What it says of the paper's claims",
        "<td>holds</td>",
        "The rules",
        "fewest steps any trial",
        "The best learning rates",
        "2 ranks of 1 thread",
        "momentum = { min = 0.9",
        "trials.csv",
    ];
    let mut from = 0;
    for words in told {
        let at = page[from..].find(words).unwrap_or_else(|| panic!("no \"{words}\" after {from} in the page"));
        from += at;
    }
    assert_eq!(page.matches("<svg").count(), 2 * FIGURES, "each figure for a screen, and for a small one");
    let pictures = |kind: &str| {
        fs::read_dir(folder.path()).unwrap().filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(kind)).count()
    };
    assert_eq!(
        [".svg", ".pdf", ".png", ".csv", ".md"].map(pictures),
        [FIGURES, FIGURES, FIGURES, 11 + FIGURES, 11],
        "tables, and a table of each figure's values"
    );
    // Each figure's files and the table of what it shows are linked below it, and tables have links to their figures.
    let name = "fashion-mnist-simple-cnn-momentum-ratio";
    let files = ["svg", "pdf", "png", "csv"].map(|kind| format!("<a href=\"{name}.{kind}\">{}</a> ", kind.to_uppercase())).concat();
    assert!(page.contains(&(files + "<a href=\"cells.csv\">")), "{page}");
    let values = fs::read_to_string(folder.path().join(format!("{name}.csv"))).unwrap();
    assert!(values.starts_with("panel,series,drawn,x,y,low,high,words\n") && values.contains(",sparsity 0.9,point,2,"), "{values}");
    assert!(page.contains(&format!("<figure id=\"{name}-figure\">")) && page.contains(&format!("<a href=\"#{name}-figure\">")));
    // On a dark page black is light, and white is dark.
    let (_, dark) = page.split_once("@media screen and (prefers-color-scheme: dark) {\n").unwrap();
    for colour in ["#000000\"] { fill: #e6e6e6", "#FFFFFF\"] { fill: #171717", "#0072B2\"] { fill: #66aad0"] {
        assert!(dark.contains(&format!("svg [fill=\"{colour}; }}")), "{dark}");
    }
    // Equal results give equal pages.
    let (again, _folder) = self::report(vec![Synthetic::small().results()]);
    assert!(fs::read_to_string(again.page).unwrap() == page);
}

/// The boxes of a figure's texts, in its own units.
fn boxes(svg: &str) -> Vec<(String, usvg::Rect)> {
    fn collect(group: &usvg::Group, found: &mut Vec<(String, usvg::Rect)>) {
        for node in group.children() {
            match node {
                usvg::Node::Group(group) => collect(group, found),
                usvg::Node::Text(text) => {
                    let words: String = text.chunks().iter().map(|chunk| chunk.text()).collect();
                    found.push((words.trim().to_owned(), text.abs_bounding_box()));
                }
                _ => {}
            }
        }
    }
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options { fontdb: fonts.into(), font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).unwrap();
    // On paper the document's size is in inches.
    let scale = svg.split_once("viewBox=\"0 0 ").unwrap().1.split(' ').next().unwrap().parse::<f32>().unwrap() / tree.size().width();
    let mut found = Vec::new();
    collect(tree.root(), &mut found);
    let scaled =
        |area: usvg::Rect| usvg::Rect::from_xywh(area.x() * scale, area.y() * scale, area.width() * scale, area.height() * scale).unwrap();
    found.into_iter().map(|(words, area)| (words, scaled(area))).collect()
}

/// Figures for papers are 5.5 and 3.3 inches wide, all their text has 8 points, and no text is cut or runs into another.
#[test]
fn figures_for_papers_have_their_width_and_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let results = Synthetic { sparsities: vec![0.0, 0.5, 0.9], ..Synthetic::small() }.results();
    analysis::report(vec![("x.h5".to_owned(), results)], folder.path(), &Options { style: Style::Paper, ..Options::default() }).unwrap();
    let files = || fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let (mut figures, mut texts) = (0, 0);
    for path in files().filter(|path| path.extension().unwrap() == "svg") {
        let svg = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (inches, width, points, pixels) =
            if name.ends_with("-column") { (3.3, 958.0, "237", 1650) } else { (5.5, 1597.0, "396", 1650) };
        assert!(svg.contains(&format!("width=\"{inches}in\"")) && svg.contains(&format!("viewBox=\"0 0 {width} ")), "{name}");
        let (title, _) = svg.split_once("<title>").unwrap().1.split_once('<').unwrap();
        assert!(title.starts_with("fashion-mnist, ") && !svg.contains(&format!("\n{title}\n")), "a title in {name}");
        for size in svg.split("font-size=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap()) {
            assert!((size * 72.0 * inches / width - 8.0).abs() < 0.02, "{size} in {name}");
        }
        let height: f32 = svg.split_once(&format!("viewBox=\"0 0 {width} ")).unwrap().1.split('"').next().unwrap().parse().unwrap();
        let boxes = boxes(&svg);
        texts += boxes.len();
        for (number, (words, area)) in boxes.iter().enumerate() {
            let is_inside = area.left() > -1.0 && area.right() < width as f32 + 1.0 && area.top() > -1.0 && area.bottom() < height + 1.0;
            assert!(is_inside, "{name} cuts \"{words}\": {area:?}");
            for (other, beside) in &boxes[number + 1..] {
                let apart = area.right() <= beside.left()
                    || beside.right() <= area.left()
                    || area.bottom() <= beside.top()
                    || beside.bottom() <= area.top();
                assert!(apart, "in {name} \"{words}\" runs into \"{other}\": {area:?}, {beside:?}");
            }
        }
        let png = fs::read(path.with_extension("png")).unwrap();
        assert_eq!(u32::from_be_bytes(png[16..20].try_into().unwrap()), pixels, "at least 300 dots an inch");
        let pdf = String::from_utf8_lossy(&fs::read(path.with_extension("pdf")).unwrap()).into_owned();
        assert!(pdf.starts_with("%PDF-1.5\n") && pdf.contains(&format!("/MediaBox [0 0 {points}")), "{name}");
        assert!(pdf.contains("/FontFile"), "the PDF carries its font");
        figures += 1;
    }
    assert!(figures == 2 * FIGURES && texts > 500, "{figures} figures, {texts} texts");
}

#[test]
fn a_report_removes_the_files_of_an_earlier_one_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let files = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let report = |results: Results| analysis::report(vec![("x.h5".to_owned(), results)], folder.path(), &Options::default()).unwrap();
    let mut other = Synthetic::small().results();
    other.workload.optimizer = "sgd".to_owned();
    fs::write(folder.path().join("mine.svg"), "mine").unwrap();
    fs::write(folder.path().join("notes.md"), "mine").unwrap();
    report(other);
    let before = files();
    report(Synthetic::small().results());
    let after = files();
    assert!(after.contains("mine.svg") && after.contains("notes.md") && after.contains("index.html"), "{after:?}");
    assert!(before.iter().any(|name| name.contains("-sgd-")) && !after.iter().any(|name| name.contains("-sgd-")), "{after:?}");
    // A name in the list that no report writes is not removed.
    let list = folder.path().join(analysis::LIST);
    let text = fs::read_to_string(&list).unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    fs::write(folder.path().join("inner/x.svg"), "mine").unwrap();
    fs::write(folder.path().join("x.h5"), "mine").unwrap();
    fs::write(&list, format!("{text}inner/x.svg\n../x.svg\nx.h5\n.svg\n")).unwrap();
    report(Synthetic::small().results());
    assert!(folder.path().join("inner/x.svg").exists() && folder.path().join("x.h5").exists());
    // A page that no report wrote is not replaced.
    fs::write(folder.path().join("index.html"), "<title>mine</title>").unwrap();
    let refused = analysis::report(vec![("x.h5".to_owned(), Synthetic::small().results())], folder.path(), &Options::default());
    assert!(refused.unwrap_err().to_string().contains("found another page"));
}

#[test]
fn a_study_that_was_started_again_says_after_what() {
    let mut results = Synthetic::small().results();
    let start = |number: u32, before: Ending| Start { number, before, ranks: 8 - number, ..Start::default() };
    results.environment.starts = vec![start(0, Ending::First)];
    assert!(!page(&report(vec![results.clone()]).0).contains("<dt>Starts</dt>"));
    results.environment.starts.extend([start(1, Ending::Killed(9)), start(2, Ending::Stopped)]);
    let words = "<dt>Starts</dt><dd>3 starts: after signal 9 killed it, on 7 ranks; after a stop, on 6 ranks</dd>";
    assert!(page(&report(vec![results]).0).contains(words));
}

#[test]
fn trials_with_dead_layers_are_counted() {
    let mut results = Synthetic::small().results();
    let sparsity = results.cells.iter().map(|cell| cell.key.sparsity).fold(0.0, f64::max);
    let mut trials = 0;
    for cell in results.cells.iter_mut().filter(|cell| cell.key.sparsity == sparsity) {
        trials = cell.trials.len();
        cell.trials[1].dead_layers = 2;
    }
    let words = format!("Sparsity {sparsity}: trials with a dead layer (pruning left it no weight): 1 of {trials}.");
    assert_eq!(analysis::table(&results, None).matches(&words).count(), 1);
    assert_eq!(page(&report(vec![results]).0).matches(&words).count(), 1);
}

#[test]
fn text_of_a_file_cannot_become_markup() {
    let mut results = Synthetic::small().results();
    let hostile = "<script>alert(1)</script> & \"'\u{1}\u{8}</svg>|\n";
    results.configuration = hostile.to_owned();
    for text in
        [&mut results.workload.dataset, &mut results.workload.network, &mut results.workload.optimizer, &mut results.workload.schedule]
    {
        *text = hostile.to_owned();
    }
    for text in [&mut results.environment.host, &mut results.environment.device, &mut results.environment.started] {
        *text = hostile.to_owned();
    }
    let folder = tempfile::tempdir().unwrap();
    let report = analysis::report(vec![(hostile.to_owned(), results)], folder.path(), &Options::default()).unwrap();
    let page = page(&report);
    assert!(page.matches("&lt;script&gt;alert(1)").count() > 12 && !page.contains('\u{1}'));
    assert!(!fs::read_to_string(folder.path().join("fits.md")).unwrap().contains("<script"));
}

#[test]
fn tables_parse_back_to_the_results() {
    let results = Synthetic::small().results();
    // A part that was raced is of the same study.
    let mut part = Synthetic { race: Race::Until(3.0), ..Synthetic::small() }.results();
    part.cells.truncate(2);
    let (_, folder) = report(vec![results.clone(), part]);
    let read = |name: &str| {
        let mut reader = csv::Reader::from_path(folder.path().join(name)).unwrap();
        let heading = reader.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        move |row: usize, column: &str| rows[row][heading.iter().position(|name| name == column).unwrap()].to_owned()
    };
    let cells = read("cells.csv");
    for (number, cell) in results.cells.iter().enumerate() {
        assert_eq!(cells(number, "batch_size"), cell.key.batch_size.to_string());
        assert_eq!(cells(number, "steps_to_result"), cell.steps_to_result().unwrap().to_string());
        assert_eq!(cells(number, "complete"), cell.count(Status::Complete).to_string());
        assert_eq!(
            cells(number, "learning_rate").parse::<f64>().unwrap(),
            cell.best().unwrap().metaparameters.get(Metaparameter::LearningRate).unwrap()
        );
        assert_eq!(cells(number, "test_error"), "0.1409");
    }
    let trials = read("trials.csv");
    let all: Vec<_> = results.cells.iter().flat_map(|cell| &cell.trials).collect();
    for (number, trial) in all.iter().enumerate() {
        assert_eq!(trials(number, "status"), trial.status.name());
        assert_eq!(trials(number, "steps"), trial.steps.map_or(String::new(), |steps| steps.to_string()));
        assert_eq!(trials(number, "momentum").parse::<f64>().unwrap(), trial.metaparameters.get(Metaparameter::Momentum).unwrap());
    }
    let fits = read("fits.csv");
    // The law of sparsity 0.9, to the rounding to whole evaluations.
    for (column, law) in [("c1", 17_100.0), ("c2", 171.0), ("c1_over_dense", 1.9), ("shift", 1.9)] {
        let value: f64 = fits(1, column).parse().unwrap();
        assert!((value / law - 1.0).abs() < 0.1, "{column}: {value}");
    }
    assert_eq!((fits(0, "c1_over_dense"), fits(1, "shift_points"), fits(1, "left_out")), (String::new(), "4".to_owned(), String::new()));
    let studies = read("studies.csv");
    for (column, value) in
        [("files", "0.h5; 1.h5"), ("optimizer", "momentum"), ("goal_error", "0.14"), ("criterion", "snip"), ("race", "false; 3")]
    {
        assert_eq!(studies(0, column), value, "{column}");
    }
    // The best trials' evaluations, and for each number of trials of each cell what so many find: of all of them K*.
    let curves = read("curves.csv");
    let best = results.cells[0].best().unwrap();
    for (number, point) in best.curve.iter().enumerate() {
        assert_eq!((curves(number, "trial"), curves(number, "step")), (best.index.to_string(), point.step.to_string()));
        assert_eq!(curves(number, "training_loss").parse::<f32>().unwrap().to_bits(), point.loss.to_bits());
    }
    let fewer = read("fewer-trials.csv");
    for (number, cell) in results.cells.iter().enumerate() {
        let all = (number + 1) * cell.trials.len() - 1;
        assert_eq!(fewer(all, "trials"), cell.trials.len().to_string());
        let found = ["steps_to_result", "steps_to_result_low", "steps_to_result_high"].map(|column| fewer(all, column));
        assert_eq!(found, [0; 3].map(|_| cell.steps_to_result().unwrap().to_string()));
    }
    assert_eq!(
        (trials(0, "mask_hash"), trials(0, "dead_layers"), trials(0, "best_errors")),
        (format!("{:016x}", 1), "0".into(), "840".into())
    );
    let markdown = fs::read_to_string(folder.path().join("cells.md")).unwrap();
    assert_eq!(markdown.lines().count(), 2 + 8);
    assert!(markdown.lines().all(|line| line.matches(" | ").count() == 15), "{markdown}");
}

#[test]
fn empty_single_and_unfinished_studies_have_a_sensible_page() {
    let part = |cells: usize| {
        let mut results = Synthetic::small().results();
        results.cells.truncate(cells);
        results.complete = false;
        results
    };
    let (empty, _folder) = report(vec![part(0)]);
    let text = page(&empty);
    assert!(text.contains("No cell is finished yet") && text.contains("Nothing to fit yet") && text.contains("0 of 8 cells so far"));
    assert!(empty.warnings.len() == 1 && empty.warnings[0].starts_with("Not measured yet: batch size 2 at sparsity 0, 8 at sparsity 0,"));

    let (single, _folder) = report(vec![part(1)]);
    let text = page(&single);
    assert!(text.contains("1 of 8 cells so far") && text.contains("no fit; a fit needs 3 batch sizes with a result, and has 1"));

    let mut unfinished = part(6);
    unfinished.cells[1].trials.iter_mut().for_each(|trial| (trial.status, trial.steps) = (Status::Incomplete, None));
    let (unfinished, folder) = report(vec![unfinished]);
    let text = page(&unfinished);
    // A cell that is still to come is a row too, of its place alone; one that did not reach the goal has trials.
    let cells = fs::read_to_string(folder.path().join("cells.csv")).unwrap();
    let rows: Vec<&str> = cells.lines().skip(1).map(|row| row.split_once("momentum,").unwrap().1).collect();
    assert_eq!(rows.len(), 8);
    assert!(rows[1].starts_with("8,0,,") && rows[1].contains(",8,0,8,"), "{rows:?}");
    assert_eq!([rows[6], rows[7]], ["32,0.9,,,0,,,,,,,,,,", "128,0.9,,,0,,,,,,,,,,"]);
    // Sparsity 0 keeps three points and loses one; 0.9 has two.
    assert!(text.contains("Sparsity 0: left out, as no trial reached the goal: batch size 8."));
    assert!(text.contains("Sparsity 0.9, by K*: no fit") && text.contains("<td>–</td>") && text.contains("<td>·</td>"));
    assert!(
        unfinished
            .warnings
            .iter()
            .any(|warning| warning.starts_with("Batch size 8, sparsity 0: no trial reached the goal within 40,000 steps (8 incomplete"))
    );
}

/// Advice of the answer on cells without a confirmed mean: a higher limit once, where trainings ended at the limit, and then more trials.
#[test]
fn a_higher_limit_is_advised_where_it_can_help() {
    let next = |limit: &str, status: Status| {
        let mut results = Synthetic::small().results();
        let section = format!("\n[confirm]\npoints = 1\nseeds = 16\nlimit = {limit}\nevaluate_every = 0\n");
        results.configuration = results.configuration.replace("\n[execution]", &format!("{section}\n[execution]"));
        let study = settings::recorded("small", &results.configuration, &[]).unwrap().study;
        for cell in &mut results.cells {
            let wanted = Wanted::of(cell, &[], &study).unwrap();
            let steps_run = if status == Status::Incomplete { wanted.last_step } else { 1 };
            let run = Trial { status, steps: None, steps_run, ..cell.trials[0].clone() };
            cell.confirmations = wanted.trainings.into_iter().map(|training| Confirmation { training, run: run.clone() }).collect();
        }
        report(vec![results]).0.answers[0].next.clone().unwrap()
    };
    assert_eq!(next("4.0", Status::Incomplete), "dps-train confirm 0.h5 --set confirm.limit=16");
    assert_eq!(next("16.0", Status::Incomplete), "dps-train 0.h5 --trials 16");
    assert_eq!(next("4.0", Status::Infeasible), "dps-train 0.h5 --trials 16");
}

/// A study whose confirmations are those that the configuration's section `[confirm]` asks for, with these further keys: each training reaches the
/// goal after 1.1 to 1.3 times the steps of its point's trial, but for those whose numbers are among `infeasible`.
/// Without a race, cells next to each other have different best points.
fn confirmed_as_asked(race: Race, keys: &str, infeasible: std::ops::Range<u32>) -> Results {
    let mut results = Synthetic { race, ..Synthetic::small() }.results();
    for cell in results.cells.iter_mut().filter(|cell| race == Race::Off && [8, 128].contains(&cell.key.batch_size)) {
        let [first, second] = [0, 1].map(|place| cell.trials[place].clone());
        cell.trials[0] = Trial { index: 0, ..second };
        cell.trials[1] = Trial { index: 1, ..first };
    }
    let section = format!("\n[confirm]\nseeds = 16\nevaluate_every = 0\n{keys}\n");
    results.configuration = results.configuration.replace("\n[execution]", &format!("{section}\n[execution]"));
    let study = settings::recorded("small", &results.configuration, &[]).unwrap().study;
    for place in 0..results.cells.len() {
        let cell = &results.cells[place];
        let confirmation = |training: Training| {
            let trial = cell.trials.iter().find(|trial| trial.index == training.point).unwrap();
            let over_best = f64::from(trial.steps.unwrap_or(40_000)) / f64::from(cell.steps_to_result().unwrap());
            let (c1, c2) = Synthetic::small().law(cell.key.sparsity);
            let law = c1 / f64::from(cell.key.batch_size) + c2;
            let steps = (law * over_best * (1.1 + 0.2 * f64::from(training.number % 8) / 8.0)) as u32;
            let run = match infeasible.contains(&training.number) {
                true => Trial { status: Status::Infeasible, steps: None, steps_run: 1, ..trial.clone() },
                false => Trial { status: Status::Complete, steps: Some(steps), steps_run: steps, ..trial.clone() },
            };
            Confirmation { training, run }
        };
        let wanted = Wanted::of(cell, &results.cells, &study).unwrap();
        let confirmations = wanted.trainings.into_iter().map(confirmation).collect();
        results.cells[place].confirmations = confirmations;
    }
    results
}

/// A study of which confirmations are still to come is not finished.
#[test]
fn a_study_is_finished_once_it_is_confirmed() {
    let mut results = confirmed_as_asked(Race::Off, "points = 2\nlimit = 4.0", 0..0);
    let text = |results: &Results| page(&report(vec![results.clone()]).0);
    assert!(text(&results).contains("8 cells; finished"));
    results.cells[0].confirmations.clear();
    assert!(text(&results).contains("8 cells; more are to come"));
    let warnings = report(vec![results]).0.warnings;
    assert!(warnings.iter().any(|warning| warning.contains("0 of the 32 trainings")), "{warnings:?}");
}

/// A point that was dropped as a slower one may have more seeds than a better one that came later, and is no measure of its cell all the same.
#[test]
fn dropped_points_measure_no_cell_whatever_seeds_they_have() {
    let mut results = confirmed_as_asked(Race::Off, "points = 2\nlimit = 4.0\nprecision = 0.5\ndrop_slower = true", 0..0);
    let cell = &mut results.cells[0];
    let [best, slower] = cell.confirmed_points()[..] else { panic!("{:?}", cell.confirmed_points()) };
    let further: Vec<Confirmation> = cell.confirmations_of(slower).cloned().collect();
    assert_eq!(further.len(), 8);
    cell.confirmations.extend(further.into_iter().map(|mut one| {
        one.training.number += 8;
        one
    }));
    let points = confirmed_cells(&gather(vec![("0.h5".to_owned(), results)]).remove(0))[0].points.clone();
    assert_eq!(points, [best]);
}

/// A training that became infeasible counts as one that takes more steps than the configured limit, not than the longest of the others.
#[test]
fn infeasible_trainings_are_beyond_the_configured_limit() {
    let mean = |limit: &str| {
        let results = confirmed_as_asked(Race::Off, &format!("points = 1\nlimit = {limit}"), 0..4);
        confirmed_cells(&gather(vec![("0.h5".to_owned(), results)]).remove(0))[0].confirmed.mean.value
    };
    let means = ["1.3", "2.0", "4.0"].map(mean);
    assert!(means.is_sorted_by(|a, b| 1.05 * a < *b), "{means:?}");
}

/// A command that is advised trains something, and no cell is told to have one point that has several.
#[test]
fn advice_on_points_is_of_what_is_recorded() {
    let advice = |race: Race, keys: &str| {
        let (made, _folder) = report(vec![confirmed_as_asked(race, keys, 0..0)]);
        let answer = &made.answers[0];
        (answer.sentences[2].clone(), answer.next.clone().unwrap())
    };
    let (sentence, next) = advice(Race::Off, "points = 1\nlimit = 4.0");
    assert!(sentence.contains("one point of each cell was confirmed"), "{sentence}");
    assert_eq!(next, "dps-train confirm 0.h5 --set confirm.points=3");
    for keys in ["points = 1\nneighbours = true\nlimit = 4.0", "points = 3\nlimit = 4.0"] {
        let (sentence, next) = advice(Race::Off, keys);
        assert!(!sentence.contains("one point") && !sentence.contains("had one") && !next.contains("confirm.points"), "{sentence} {next}");
    }
    // A race that cut off no trial hides no point.
    let all_confirmed = "points = 3\nneighbours = true\nlimit = 4.0";
    assert!(advice(Race::Until(1.0), all_confirmed).1.contains("execution.race=3"));
    let mut results = confirmed_as_asked(Race::Until(1.0), all_confirmed, 0..0);
    let trials = results.cells.iter_mut().flat_map(|cell| &mut cell.trials);
    trials.filter(|trial| trial.status == Status::Censored).for_each(|trial| trial.status = Status::Infeasible);
    assert_eq!(report(vec![results]).0.answers[0].next.as_deref(), Some("dps-train 0.h5 --trials 16"));
    // Trainings that go on to the limit take as long as the limit says.
    let hours = |keys: &str| {
        let mut results = confirmed_as_asked(Race::Off, keys, 0..0);
        results.cells.iter_mut().for_each(|cell| cell.confirmations.clear());
        let sentence = report(vec![results]).0.answers[0].sentences[2].clone();
        sentence.split(", in about ").nth(1).unwrap_or_else(|| panic!("{sentence}")).to_owned()
    };
    let (short, long) = ("points = 1\nlimit = 15.0", "points = 1\nlimit = 15.0\nmean_error = true");
    assert_ne!(hours(short), hours(long));
}

#[test]
fn parts_of_a_study_become_one_and_other_studies_are_compared() {
    let whole = Synthetic::small().results();
    let part = |sparsity: f64, ranks: u32| {
        let mut part = Synthetic { sparsities: vec![sparsity], ..Synthetic::small() }.results();
        part.environment.ranks = ranks;
        part
    };
    let (merged, _folder) = report(vec![part(0.9, 4), part(0.0, 2), part(0.9, 4)]);
    assert_eq!((merged.studies.len(), merged.studies[0].environments.len()), (1, 2));
    assert_eq!(merged.studies[0].results.cells, whole.cells);
    assert!(merged.studies[0].results.complete && merged.warnings.is_empty(), "{:?}", merged.warnings);
    assert!(page(&merged).contains("0.h5, 1.h5, 2.h5"));
    // A command that takes one file begins by making it.
    let merge = "dps-train merge 0.h5 1.h5 2.h5 -o RESULT.h5 &amp;&amp; dps-train replay RESULT.h5 --batch-size 2 --sparsity 0.9";
    assert!(page(&merged).contains(merge) && page(&merged).contains("dps-report 0.h5 1.h5 2.h5 --strict"));
    assert_eq!(merged.answers[0].next.as_deref(), Some("dps-train merge 0.h5 1.h5 2.h5 -o RESULT.h5 && dps-train confirm RESULT.h5"));

    // A cell with other trials is another measurement: the larger is kept, and it is said.
    let mut other = part(0.0, 2);
    other.cells[0].trials.truncate(3);
    let (merged, _folder) = report(vec![other, part(0.0, 2), part(0.9, 2)]);
    assert_eq!(merged.studies[0].results.cells, whole.cells);
    assert!(merged.warnings.len() == 1 && merged.warnings[0].contains("in several files with different results"), "{:?}", merged.warnings);

    // Of several keys in which studies differ the goal is named, and no others where it is enough.
    let mut other_goal = whole.clone();
    other_goal.configuration =
        other_goal.configuration.replace("goal_error = 0.14", "goal_error = 0.12").replace("min = 1e-4", "min = 1e-5");
    other_goal.workload.goal_error = 0.12;
    let (goals, _folder) = report(vec![whole.clone(), other_goal]);
    let slugs: Vec<&str> = goals.studies.iter().map(|study| study.slug.as_str()).collect();
    assert_eq!(slugs, ["fashion-mnist-simple-cnn-momentum-goal-error-0-14", "fashion-mnist-simple-cnn-momentum-goal-error-0-12"]);

    // Confirmations whose seeds draw other things anew are none of the study's, and nobody is told to merge their files, nor those of other races.
    let confirmed = |vary: &str| {
        let mut part = part(0.0, 2);
        let section = format!("\n[confirm]\npoints = 3\nseeds = 16\nlimit = 4.0\nevaluate_every = 0\nvary = [{vary}]\n");
        part.configuration = part.configuration.replace("\n[execution]", &format!("{section}\n[execution]"));
        part
    };
    let mut raced = part(0.9, 2);
    raced.configuration = raced.configuration.replace("race = false", "race = 3");
    for (second, is_merged) in [(confirmed("\"order\""), true), (confirmed("\"weights\""), false), (raced, false)] {
        let (kinds, _folder) = report(vec![confirmed("\"order\""), second]);
        assert_eq!(kinds.studies.len(), 1);
        let next = kinds.answers[0].next.as_deref().unwrap_or_default();
        assert_eq!(
            (next.contains("merge"), page(&kinds).contains("dps-train merge")),
            (is_merged && !next.is_empty(), is_merged),
            "{next}"
        );
    }
    // In whatever order files come, confirmed steps are those of seeds that draw all anew; where there are none of these, that is said.
    let both = "\"weights\", \"order\"";
    for (kinds, first, said) in
        [(["\"order\"", both], "1.h5", false), ([both, "\"order\""], "0.h5", false), (["\"order\"", "\"order\""], "0.h5", true)]
    {
        let files = kinds.map(|vary| {
            let results = confirmed_study(1, &[2, 8, 32, 128], [DENSE, DENSE], 0.0, 1.0).results;
            Results { configuration: confirmed(vary).configuration, ..results }
        });
        let (made, _folder) = report(files.to_vec());
        assert_eq!(made.studies[0].sources[0], first);
        let warns = made.warnings.iter().any(|warning| warning.contains("drew only the order anew"));
        let answers = made.answers[0].sentences[2].contains("fresh seeds drew only the order anew");
        assert_eq!((warns, answers), (said, said), "{:?} {:?}", made.warnings, made.answers[0].sentences);
    }
    // Of cells that the first file lacks, confirmations of another kind are left out of the fits, which a warning says.
    let of_kind = |sparsity: f64, vary: &str| {
        let mut results = confirmed_study(1, &[2, 8, 32, 128], [DENSE, DENSE], 0.0, 1.0).results;
        results.cells.retain(|cell| cell.key.sparsity == sparsity);
        Results { configuration: confirmed(vary).configuration, ..results }
    };
    for (vary, is_left_out) in [("\"order\"", false), ("\"weights\"", true)] {
        let (kinds, _folder) = report(vec![of_kind(0.0, "\"order\""), of_kind(0.9, vary)]);
        let left_out = kinds.warnings.iter().filter(|warning| warning.contains("confirmations of 4 cells in 1.h5 are left out")).count();
        let confirmed = kinds.studies[0].results.cells.iter().filter(|cell| !cell.confirmations.is_empty()).count();
        assert_eq!((left_out, confirmed), if is_left_out { (1, 4) } else { (0, 8) }, "{:?}", kinds.warnings);
    }

    let sgd = Synthetic { optimizer: "sgd", batch_sizes: vec![2, 8, 32], ..Synthetic::small() }.results();
    let mut other_search = whole.clone();
    other_search.configuration = other_search.configuration.replace("min = 1e-4", "min = 1e-5");
    let (compared, folder) = report(vec![whole, sgd, other_search]);
    assert_eq!(
        compared.studies.iter().map(|study| study.slug.as_str()).collect::<Vec<_>>(),
        [
            "fashion-mnist-simple-cnn-momentum-learning-rate-min-0-0001",
            "fashion-mnist-simple-cnn-sgd",
            "fashion-mnist-simple-cnn-momentum-learning-rate-min-0-00001"
        ]
    );
    assert!(page(&compared).contains("3 studies compared") && page(&compared).contains("Optimizers compared"));
    assert!(page(&compared).contains("simple-cnn, momentum, constant learning rate (learning rate min 0.00001)</h2>"));
    let figure = fs::read_to_string(folder.path().join("optimizers.svg")).unwrap();
    for words in
        ["sparsity 0\n", "sparsity 0.9\n", "\nsgd\n", "momentum (learning rate min 0.0001)", "momentum (learning rate min 0.00001)"]
    {
        assert!(figure.contains(words), "{words}");
    }
    // A point at each batch size of each study, in two panels.
    let values = fs::read_to_string(folder.path().join("optimizers.csv")).unwrap();
    let points = |series: &str| values.lines().filter(|line| line.contains(&format!("{series},point,"))).count();
    assert_eq!([points("sgd"), points("momentum (learning rate min 0.0001)")], [2 * 3, 2 * 4], "{values}");
}

#[test]
fn warnings_name_edges_and_cells_that_few_trials_decided() {
    let warned = |made: Synthetic, change: &dyn Fn(&mut Results)| {
        let mut results = made.results();
        change(&mut results);
        {
            let study = &gather(vec![("study.h5".to_owned(), results)])[0];
            warnings(study, &fits(study)).iter().map(ToString::to_string).collect::<Vec<_>>()
        }
    };
    assert!(warned(Synthetic::small(), &|_| {}).is_empty());
    let by_another_law = |results: &mut Results| {
        for cell in &mut results.cells {
            let steps = 1e5 / f64::from(cell.key.batch_size).powf(0.7);
            cell.trials.iter_mut().for_each(|trial| trial.steps = trial.steps.map(|_| steps.round() as u32));
        }
    };
    let found = warned(Synthetic::small(), &by_another_law);
    assert!(found.iter().any(|warning| warning.contains("the exponent a is 0.700") && warning.contains("excludes 1")), "{found:?}");
    let few = warned(Synthetic::small(), &|results| results.cells[0].trials.truncate(7));
    assert!(few.iter().any(|warning| warning.starts_with("Some cells have 7 trials")), "{few:?}");
    let raced = warned(Synthetic { race: Race::Until(1.0), ..Synthetic::small() }, &|_| {});
    assert!(raced.iter().any(|warning| warning.starts_with("All cells' races end at K*")), "{raced:?}");
    // 5 % of four decades is a fifth of one: 1e-4 to 1.58e-4, and 0.631 to 1; of three decades of 1 − m 1.41: 0.9 to 0.929.
    for (rate, momentum, said) in [
        (1.6e-4, 0.93, None),
        (1.5e-4, 0.93, Some("the best learning rate, 1.500e-4, lies at the lower edge of its range (0.0001)")),
        (0.64, 0.93, Some("the best learning rate, 0.6400, lies at the upper edge of its range (1)")),
        (0.62, 0.92, Some("the best momentum, 0.9200, lies at the lower edge of its range (0.9)")),
        (0.62, 0.99987, Some("the best momentum, 0.9999, lies at the upper edge of its range (0.9999)")),
    ] {
        let found = warned(Synthetic::small(), &|results| {
            let cell = &mut results.cells[5];
            let best = cell.best().unwrap().index as usize;
            // Two others lie at the ends of the ranges: the best is never the lowest or the highest of all.
            for (trial, rate, momentum) in [(best, rate, momentum), (6, 1.01e-4, 0.901), (7, 0.99, 0.99989)] {
                cell.trials[trial].metaparameters.set(Metaparameter::LearningRate, Some(rate));
                cell.trials[trial].metaparameters.set(Metaparameter::Momentum, Some(momentum));
            }
        });
        match said {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(said) => {
                assert!(found.len() == 1 && found[0].starts_with("Batch size 8, sparsity 0.9: ") && found[0].contains(said), "{found:?}")
            }
        }
    }
    // Where no trial lies beyond the best one, nothing is known of what lies there.
    for (rate, momentum, said) in [
        (0.5, 0.95, "the best learning rate, 0.5000, is the highest that any trial had; the true K* may be lower, take more trials"),
        (0.1, 0.99, "the best momentum, 0.9900, is the highest that any trial had"),
        (2e-4, 0.95, "the best learning rate, 2.000e-4, is the lowest that any trial had"),
    ] {
        let found = warned(Synthetic::small(), &|results| {
            let cell = &mut results.cells[5];
            let best = cell.best().unwrap().index;
            for trial in &mut cell.trials {
                let place = 0.01 * f64::from(trial.index);
                let others = (0.1 + place, 0.95 + if trial.index % 2 == 0 { place } else { -place } / 5.0);
                let (rate, momentum) = if trial.index == best { (rate, momentum) } else { others };
                trial.metaparameters.set(Metaparameter::LearningRate, Some(rate));
                trial.metaparameters.set(Metaparameter::Momentum, Some(momentum));
            }
        });
        assert!(found.iter().any(|found| found.starts_with("Batch size 8, sparsity 0.9: ") && found.contains(said)), "{found:?}");
    }
    // A cell whose K* only one trial comes near.
    let lonely = |results: &mut Results| {
        let best = results.cells[5].best().unwrap().index;
        let others = results.cells[5].trials.iter_mut().filter(|trial| trial.index != best && trial.steps.is_some());
        others.for_each(|trial| (trial.steps, trial.steps_run) = (Some(16_000), 16_000));
    };
    let found = warned(Synthetic::small(), &lonely);
    assert!(found.len() == 1 && found[0].contains("of random halves of the 8 trials, one in four finds 16,000 steps or more"), "{found:?}");
    // Cells with the same fault share a sentence.
    let lonely_too = |results: &mut Results| {
        lonely(results);
        let best = results.cells[6].best().unwrap().index;
        let others = results.cells[6].trials.iter_mut().filter(|trial| trial.index != best && trial.steps.is_some());
        others.for_each(|trial| (trial.steps, trial.steps_run) = (Some(16_000), 16_000));
    };
    let shared = warned(Synthetic::small(), &lonely_too);
    assert_eq!(shared, [format!("{} Likewise at 1 further cell: batch size 32 at sparsity 0.9.", found[0])]);
    let few = |results: &mut Results| {
        let best = results.cells[0].best().unwrap().index;
        results.cells[0]
            .trials
            .iter_mut()
            .filter(|trial| trial.index != best)
            .for_each(|trial| (trial.status, trial.steps) = (Status::Infeasible, None));
    };
    assert!(warned(Synthetic::small(), &few)[0].contains("only 1 of 8 trials reached the goal, fewer than 3"));
    let raced = Synthetic { race: Race::Until(1.0), ..Synthetic::small() };
    assert_eq!(warned(raced.clone(), &|_| {}).len(), 1, "a race's censored trials count");
    assert!(warned(raced, &few)[1].contains("only 1 of 8 trials stayed feasible, fewer than 3 (a race"));
    let unread = warned(Synthetic::small(), &|results| results.configuration = "[workload".to_owned());
    assert!(unread.len() == 1 && unread[0].starts_with("The configuration in the file cannot be read"), "{unread:?}");
}

/// The row of the table "Work" that begins with `name`, without its ratios; where it is wide, its columns stand below each other.
fn work(results: &dps::results::Results, name: &str) -> [String; 2] {
    let table = dps::analysis::table(results, None);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let line: String = table.lines().filter_map(|line| line.trim_start().strip_prefix(name)).collect();
    let columns: Vec<&str> = line.split(')').collect();
    assert!(columns.len() > 2, "{name}: {table}");
    [0, 1].map(|column| columns[column].split('(').next().unwrap().trim().to_owned())
}

#[test]
fn the_work_of_both_rules_is_named_and_a_range_where_a_race_hides_it() {
    let made = |race| Synthetic { batch_sizes: vec![128], sparsities: vec![0.0], trials: 8, race, ..Synthetic::small() };
    // Every trial ran to its own end.
    let full = made(Race::Off).results();
    let trials = || full.cells[0].trials.iter();
    let steps: u64 = trials().map(|trial| u64::from(trial.steps_run)).sum();
    let all: u64 = trials().map(|trial| if trial.status == Status::Infeasible { 48 } else { 40_000 }).sum();
    assert!(trials().any(|trial| trial.status == Status::Infeasible) && steps < all);
    let thousands = |number: u64| {
        let digits = number.to_string();
        let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    };
    let counts = |steps: u64| [thousands(128 * steps), thousands(steps / 16 * 6_000)];
    assert_eq!(work(&full, "to the goal or step 40,000"), counts(steps));
    assert_eq!(work(&full, "all to step 40,000"), counts(all));
    // A race cuts trials off: each might have reached the goal an evaluation later, or never.
    let raced = made(Race::Until(1.0)).results();
    let (mut least, mut most) = (0, 0);
    for trial in &raced.cells[0].trials {
        let (low, high) = match trial.status {
            Status::Censored => (trial.steps_run + 16, 40_000),
            _ => (trial.steps_run, trial.steps_run),
        };
        (least, most) = (least + u64::from(low), most + u64::from(high));
    }
    assert!(least < steps && steps < most);
    let range = |column: usize| format!("{} to {}", counts(least)[column], counts(most)[column]);
    assert_eq!(work(&raced, "to the goal or step 40,000"), [range(0), range(1)]);
    // A smaller budget than the paper's is counted besides.
    let mut short = full.clone();
    short.workload.max_steps = 20_000;
    let names = ["to the goal or step 20,000", "all to step 20,000", "all to step 40,000"];
    assert_eq!(names.map(|name| work(&short, name)[0].is_empty()), [false; 3]);
}
