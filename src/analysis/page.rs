//! The report as one HTML page: no script, nothing to load, readable on a screen, light or dark, and on paper.

use std::fmt::Write;

use super::figures::Figure;
use super::fit::{Estimate, Fit};
use super::fits::{Fitted, Shift, decays};
use super::smoothness::{Along, Measured, Smooth, Surface};
use super::studies::Study;
use crate::readable::{count, digits, significant, some};

/// A study with what was made of it.
pub struct Section<'a> {
    /// The study.
    pub study: &'a Study,
    /// Its fits.
    pub fits: &'a [Fitted],
    /// What was measured along its training.
    pub smoothness: Vec<Smooth>,
    /// Its figures, with their SVG documents.
    pub figures: Vec<(Figure, String)>,
    /// Its warnings.
    pub warnings: Vec<String>,
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fdfdfc; --faint: #6a6a6a; --rule: #d8d8d4; --wash: #f3f3ef; --alarm: #9a3d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e2; --paper: #171716; --faint: #a2a29c; --rule: #3c3c39; --wash: #232321; --alarm: #f0a060; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1080px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.8rem; line-height: 1.25; } h2 { margin-top: 3rem; border-top: 1px solid var(--rule); padding-top: 1.2rem; font-size: 1.45rem; }
h3 { margin-top: 2.2rem; font-size: 1.12rem; }
p, li, dd { max-width: 46rem; } .faint, figcaption { color: var(--faint); font-size: .92rem; } figcaption { max-width: 50rem; margin-top: .6rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .22rem .6rem; vertical-align: top; text-align: right; white-space: nowrap; } thead th { border-bottom: 2px solid var(--rule); vertical-align: bottom; white-space: normal; } tbody tr:nth-child(even) { background: var(--wash); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; } dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0 2.2rem; } figure .wide { background: #fff; border: 1px solid var(--rule); border-radius: 6px; } figure svg { display: block; width: 100%; height: auto; }
@media screen and (max-width: 800px) { figure svg { min-width: 900px; } th, td { padding: .22rem .4rem; } }
.warnings li { color: var(--alarm); } pre { background: var(--wash); padding: 1rem; overflow-x: auto; font-size: .85rem; border-radius: 6px; }
@media print { body { max-width: none; font-size: 11pt; padding: 0; } figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } pre { white-space: pre-wrap; } .wide { overflow: visible; } table { font-size: 7.5pt; } th, td { padding: .1rem .4rem; } }
";

/// The page. `compared` are figures over several studies, `files` names of what lies beside the page.
pub fn page(sections: &[Section], compared: &[(Figure, String)], files: &[String]) -> String {
    let title = match sections {
        [one] => one.study.name(),
        many => format!("{} studies compared", many.len()),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Steps-to-result: {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Batch size, sparsity and steps-to-result</h1>\n",
        title = escape(&title)
    );
    page += "<p>How many training steps a network needs to reach a goal, at each batch size and sparsity, when the metaparameters are \
             searched anew for every cell; after Lee, Ajanthan, Torr and Jaggi, <cite>Understanding the Effects of Data Parallelism and \
             Sparsity on Neural Network Training</cite> (ICLR 2021).</p>\n";
    if sections.len() > 1 {
        let item = |section: &Section| format!("<li><a href=\"#{0}\">{1}</a></li>\n", section.study.slug, escape(&section.study.name()));
        page += &format!("<ul>\n{}</ul>\n", sections.iter().map(item).collect::<String>());
    }
    for (figure, svg) in compared {
        page += &drawn(figure, svg);
    }
    for section in sections {
        page += &self::section(section);
    }
    page += "<h2>Configuration</h2>\n<p>To run a study again, give this to dps-train.</p>\n";
    for section in sections {
        let _ = write!(
            page,
            "<details{}><summary>{}</summary>\n<pre>{}</pre></details>\n",
            if sections.len() == 1 { " open" } else { "" },
            escape(&section.study.name()),
            escape(&section.study.results.configuration)
        );
    }
    let names: Vec<String> = files.iter().map(|name| format!("<a href=\"{0}\"><code>{0}</code></a>", escape(name))).collect();
    page += &format!("<h2>Beside this page</h2>\n<p class=\"faint\">{}</p>\n</body>\n</html>\n", names.join(", "));
    page
}

fn section(section: &Section) -> String {
    let Section { study, fits, smoothness, figures, warnings } = section;
    let mut text = format!("<h2 id=\"{}\">{}</h2>\n", study.slug, escape(&study.name()));
    match warnings.len() {
        0 => text += "<p>No warnings.</p>\n",
        number => {
            let _ = writeln!(text, "<p><a href=\"#{}-warnings\">{}</a> below.</p>", study.slug, some(number, "warning"));
        }
    }
    text += "<h3>What was run</h3>\n";
    text += &ran(study);
    let alone = study.measures_alone();
    if !alone {
        text += "<h3>Steps-to-result K*</h3>\n";
        text += &headline(study);
    }
    for (figure, svg) in figures {
        text += &drawn(figure, svg);
    }
    if !alone {
        text += "<h3>Fits</h3>\n";
        text += &fitted(study, fits);
    }
    text += &smooth(study, smoothness);
    let _ = writeln!(text, "<h3 id=\"{}-warnings\">Warnings</h3>", study.slug);
    if warnings.is_empty() && alone {
        text += "<p>None: every configured cell has a result.</p>\n";
    } else if warnings.is_empty() {
        text += "<p>None: every configured cell has a result, no best point lies within 5 % of its search range's ends, and no cell was decided by fewer \
                 than three trials.</p>\n";
    } else {
        let items: String = warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(warning))).collect();
        text += &format!("<ul class=\"warnings\">\n{items}</ul>\n");
    }
    text
}

fn ran(study: &Study) -> String {
    let workload = &study.results.workload;
    let grid = study.grid();
    let configured = study.configuration.as_ref().map(|study| &study.grid);
    let (sizes, sparsities) =
        configured.map_or((&grid.batch_sizes, &grid.sparsities), |configured| (&configured.batch_sizes, &configured.sparsities));
    let list = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
    let trials: Vec<usize> = study.results.cells.iter().map(|cell| cell.trials.len()).collect();
    let trials = match (trials.iter().min(), trials.iter().max()) {
        (Some(1), Some(1)) => "1 trial a cell".to_owned(),
        (Some(low), Some(high)) if low == high => format!("{low} trials a cell"),
        (Some(low), Some(high)) => format!("{low} to {high} trials a cell"),
        _ => "no trials yet".to_owned(),
    };
    let cells = study.results.cells.len();
    let finished = if study.results.complete { "finished" } else { "cells are still to come" };
    let mut rows = vec![
        ("Workload", study.name()),
        ("Parameters", count(workload.parameters)),
        (
            "Goal",
            match study.measures_alone() {
                true => "none: every trial runs to its last step, and its loss surface is measured on the way".to_owned(),
                false => format!(
                    "validation error ≤ {}: at most {} of {} examples wrong",
                    workload.goal_error,
                    count(workload.goal_threshold),
                    count(workload.validation_examples)
                ),
            },
        ),
        ("Tested", format!("every {} steps, up to {}", workload.evaluate_every, count(workload.max_steps))),
        ("Batch sizes", list(&mut sizes.iter().map(|size| count(*size)))),
        ("Sparsities", list(&mut sparsities.iter().map(f64::to_string))),
        ("Trials", format!("{trials}, {}; {finished}", some(cells, "cell"))),
        ("Result files", study.sources.join(", ")),
    ];
    for environment in &study.environments {
        let ranks = some(environment.ranks as usize, "rank");
        let threads = some(environment.threads as usize, "thread");
        rows.push((
            "Run on",
            format!("{}, {ranks} of {threads}, host {}, MPI: {}", environment.device, environment.host, environment.mpi_library),
        ));
        rows.push(("Run by", format!("dps {} {}", environment.program_version, environment.commit).trim_end().to_owned()));
        rows.push(("Time", format!("{} to {}", environment.started, environment.finished)));
        rows.push(("Data (SHA-256)", environment.data_digest.clone()));
    }
    let row = |(name, value): (&str, String)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(&value));
    format!("<dl>\n{}</dl>\n", rows.into_iter().map(row).collect::<String>())
}

fn headline(study: &Study) -> String {
    let grid = study.grid();
    if study.results.cells.is_empty() {
        return "<p>No cell is finished yet.</p>\n".to_owned();
    }
    let heading = ["batch size".to_owned()].into_iter().chain(grid.sparsities.iter().map(|sparsity| format!("sparsity {sparsity}")));
    let row = |&size: &u32| {
        let steps = |&sparsity: &f64| match grid.cell(size, sparsity) {
            Some(cell) => cell.steps_to_result().map_or("–".to_owned(), count),
            None => "·".to_owned(),
        };
        [count(size)].into_iter().chain(grid.sparsities.iter().map(steps)).collect()
    };
    let note = "<p class=\"faint\">Fewest steps over a cell's trials. – no trial reached the goal; · not measured yet.</p>\n";
    rows(heading.collect(), grid.batch_sizes.iter().map(row).collect()) + note
}

fn fitted(study: &Study, fits: &[Fitted]) -> String {
    let workload = &study.results.workload;
    let lowest = study.results.cells.iter().filter_map(|cell| cell.steps_to_result()).min();
    let coarse = lowest.map_or(String::new(), |steps| {
        format!(
            " K* is known to the next multiple of {} steps above it, up to {:.0} % of the lowest K* here; the intervals do not cover that.",
            workload.evaluate_every,
            100.0 * f64::from(workload.evaluate_every) / f64::from(steps.max(1))
        )
    });
    if fits.is_empty() {
        return "<p>Nothing to fit yet.</p>\n".to_owned();
    }
    let mut text = format!(
        "<p>K ≈ c1/B + c2 with c1, c2 ≥ 0 by least squares of log K, a sparsity at a time; in brackets 95 % intervals by residual bootstrap \
         (1,000 resamples, stretched by Student's t for few points). The <b>critical batch size</b> is c1/c2: there the two terms are \
         equal and K is twice its floor. By the fit's local slope d log K / d log B, scaling is <b>linear</b> below −0.95 (B under a 19th of the \
         critical batch size), data parallelism <b>maximal</b> above −0.05 (B over 19 times it), and returns diminish between.{coarse}</p>\n"
    );
    let heading = ["sparsity", "points", "c1", "c2", "critical batch size", "deviation", "c1 / dense c1", "measured shift"];
    let row = |fitted: &Fitted| -> Option<Vec<String>> {
        let fit = fitted.fit.as_ref().ok()?;
        let shift = fitted.shift.map_or("–".to_owned(), shift);
        Some(vec![
            fitted.sparsity.to_string(),
            fit.points.to_string(),
            interval(fit.c1),
            interval(fit.c2),
            interval(fit.critical),
            format!("{:.1} %", 100.0 * fit.deviation),
            fitted.c1_ratio.map_or("–".to_owned(), interval),
            shift,
        ])
    };
    let fit_rows: Vec<Vec<String>> = fits.iter().filter_map(row).collect();
    if !fit_rows.is_empty() {
        text += &rows(heading.map(str::to_owned).to_vec(), fit_rows);
        text += "<p class=\"faint\">Measured shift: geometric mean of K* sparse / K* dense over the batch sizes where both have one, with the \
                 smallest and the largest ratio. The theory predicts c1 / dense c1 for it where scaling is linear.</p>\n";
    }
    let mut notes = String::new();
    for fitted in fits {
        match &fitted.fit {
            Err(why) => notes += &format!("<li>Sparsity {}: no fit; {}.</li>\n", fitted.sparsity, escape(why)),
            Ok(fit) => notes += &format!("<li>Sparsity {}: {}.</li>\n", fitted.sparsity, regimes(study, fitted.sparsity, fit)),
        }
        if !fitted.left_out.is_empty() {
            let sizes: Vec<String> = fitted.left_out.iter().map(|size| count(*size)).collect();
            notes += &format!(
                "<li>Sparsity {}: left out, as no trial reached the goal: batch size {}.</li>\n",
                fitted.sparsity,
                sizes.join(", ")
            );
        }
    }
    text + "<ul>\n" + &notes + "</ul>\n"
}

/// The tables of appendix C and of the noise scale, where anything was measured.
fn smooth(study: &Study, smoothness: &[Smooth]) -> String {
    if smoothness.is_empty() {
        return String::new();
    }
    let part = match study.measured_on() {
        Some((part, all)) if part < all => format!(
            " Measured on the first {} of {} training examples: an estimate of what the whole training set, the paper's choice, would give; \
             of L one from above, as gradients of a part differ by noise too.",
            count(part as u32),
            count(all as u32)
        ),
        _ => String::new(),
    };
    let decays = decays(study);
    let law = if decays {
        "With a decaying learning rate (appendix A.2) K* ≈ c̃1/B + c̃2, c̃1 is proportional to L·H*·β and c̃2 to Δ. <b>H*</b> is the sum of the squared learning \
         rates of the steps to the goal"
    } else {
        "With a constant learning rate (section 4.1) K* ≈ c1/B + c2, and c1 is proportional to Δ·β·L"
    };
    let started = smoothness.iter().any(|smooth| smooth.along.iter().any(|surface| !surface.start_loss.value.is_nan()));
    let unmeasured =
        if started { "" } else { " Nothing was measured at untrained weights, so that Δ is missing (smoothness.start = true)." };
    let mut text = format!(
        "<h3>What the theory predicts</h3>\n<p>{law}. <b>Δ</b> is twice the loss at untrained weights less that at the last measurement; <b>β</b>, the variance of one \
         example's gradient; <b>L</b>, the local Lipschitz constant of the gradient, both along the training: at the steps measured, but for the first one and the \
         trial's end, where β stands by itself. The paper takes the mean of L over the training and does not say when β was measured. A few large \
         values rule a mean, so the median stands beside it. Numbers are geometric means over a cell's trials, each measured so many times; in brackets 95 % intervals \
         by Student's t over those trials, of which a single one has none.{part}{unmeasured}</p>\n"
    );
    let name = |smooth: &Smooth| [count(smooth.key.batch_size), smooth.key.sparsity.to_string()];
    let strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let heading = [
        "batch size",
        "sparsity",
        "trials × times",
        "loss at the start (nats)",
        "loss at the end (nats)",
        "Δ (nats)",
        "along training",
        "β at the start",
        "β along",
        "β at the end",
        "L along",
    ];
    let row = |smooth: &Smooth, (along, surface): (Along, Surface<Estimate>)| -> Vec<String> {
        let times = smooth.measurements as f64 / smooth.trials.max(1) as f64;
        let counts = [format!("{} × {}", smooth.trials, (times * 10.0).round() / 10.0)];
        let losses = [surface.start_loss, surface.last_loss, surface.decrease].map(brief);
        let values = [surface.start_variance, surface.variance, surface.last_variance, surface.lipschitz].map(brief);
        name(smooth).into_iter().chain(counts).chain(losses).chain([along.name().to_owned()]).chain(values).collect()
    };
    let both = |smooth: &Smooth| -> Vec<Vec<String>> { Along::ALL.into_iter().zip(smooth.along).map(|found| row(smooth, found)).collect() };
    text += &rows(strings(&heading), smoothness.iter().flat_map(both).collect());
    let mut heading = vec!["batch size", "sparsity", "along training", "Δ", "β at the start", "β along", "β at the end", "L along"];
    heading.extend(if decays {
        &["H*", "predicted c̃1", "fitted c̃1", "predicted c̃2", "fitted c̃2"][..]
    } else {
        &["predicted c1", "fitted c1"]
    });
    heading.push("measured shift");
    let absent = || "–".to_owned();
    let ratios = |smooth: &Smooth| -> Vec<Vec<String>> {
        let measured = |ratio: fn(Measured) -> Option<Estimate>| smooth.measured.and_then(ratio).map_or_else(absent, brief);
        let shift = measured(|measured| measured.shift.map(|shift| Estimate { value: shift.mean, low: shift.low, high: shift.high }));
        let (c1, c2) = (measured(|measured| measured.c1_ratio), measured(|measured| measured.c2_ratio));
        let row = |(along, over): (Along, Surface<Estimate>)| {
            let values = [over.decrease, over.start_variance, over.variance, over.last_variance, over.lipschitz].map(brief);
            let predicted = brief(smooth.predicted_c1(&over));
            let laws = match decays {
                true => {
                    let searched = smooth.measured.and_then(|measured| measured.squared_rates_ratio);
                    vec![brief(searched.unwrap_or(over.squared_rates)), predicted, c1.clone(), brief(over.decrease), c2.clone()]
                }
                false => vec![predicted, c1.clone()],
            };
            name(smooth).into_iter().chain([along.name().to_owned()]).chain(values).chain(laws).chain([shift.clone()]).collect()
        };
        smooth.over_dense.map_or_else(Vec::new, |both| Along::ALL.into_iter().zip(both).map(row).collect())
    };
    let ratios: Vec<Vec<String>> = smoothness.iter().flat_map(ratios).collect();
    if !ratios.is_empty() {
        text += "<p>Sparse over dense, each trial over the dense one of its seed. The prediction takes β and L along the training.</p>\n";
        text += &rows(strings(&heading), ratios);
        let rates = if decays {
            " H* is of the best trials of the steps-to-result, geometric mean over batch sizes, and without those of the measured trials' steps."
        } else {
            ""
        };
        text += &format!(
            "<p class=\"faint\">Lee et al. measured, for Simple-CNN at sparsity 0.9, Δ 1.00, β 0.54 and L 3.09 times the dense network's: 1.67. What was fitted, and the \
             measured shift, are of steps-to-result of the same workload, in this report, with their own intervals; – there are none.{rates}</p>\n"
        );
    }
    text += "<p><b>Gradient noise scale</b>, tr Σ / ‖∇f‖² in examples, at untrained weights, the median along the training, and at the last measurement. McCandlish et \
             al. (2018) predict the critical batch size to be near it.</p>\n";
    let heading = ["batch size", "sparsity", "start", "median", "end", "fitted critical batch size"];
    let row = |smooth: &Smooth| {
        let critical = smooth.measured.and_then(|measured| measured.critical).map_or_else(absent, brief);
        name(smooth).into_iter().chain(smooth.noise_scale.map(brief)).chain([critical]).collect()
    };
    text + &rows(strings(&heading), smoothness.iter().map(row).collect())
}

fn shift(shift: Shift) -> String {
    format!("{} (n = {})\n[{} … {}]", significant(shift.mean), shift.points, significant(shift.low), significant(shift.high))
}

/// The measured batch sizes of each regime, and whether the critical one was measured.
fn regimes(study: &Study, sparsity: f64, fit: &Fit) -> String {
    let sizes: Vec<u32> = study.grid().measured(sparsity).into_iter().map(|point| point.0).collect();
    let mut parts: Vec<(&str, u32, u32)> = Vec::new();
    for &size in &sizes {
        let name = fit.regime(f64::from(size)).name();
        match parts.last_mut().filter(|part| part.0 == name) {
            Some(part) => part.2 = size,
            None => parts.push((name, size, size)),
        }
    }
    let range = |&(name, low, high): &(&str, u32, u32)| match low == high {
        true => format!("{name} at {}", count(low)),
        false => format!("{name} from {} to {}", count(low), count(high)),
    };
    let (low, high) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let critical = fit.critical.value;
    let outside = if (f64::from(low)..=f64::from(high)).contains(&critical) {
        ""
    } else {
        "; the critical batch size lies outside what was measured, so it is an extrapolation"
    };
    parts.iter().map(range).collect::<Vec<_>>().join(", ") + outside
}

fn interval(estimate: Estimate) -> String {
    rounded(estimate, 4)
}

/// In three digits, for the many columns of what the theory predicts; its intervals do not say more.
fn brief(estimate: Estimate) -> String {
    rounded(estimate, 3)
}

fn rounded(estimate: Estimate, significant: usize) -> String {
    let number = |value: f64| match value {
        infinite if infinite.is_infinite() => "∞".to_owned(),
        whole if (1e3..1e9).contains(&whole) => count(whole.round() as u32),
        value => digits(value, significant),
    };
    match estimate {
        Estimate { value, .. } if value.is_nan() => "–".to_owned(),
        Estimate { value, low, high } if low.is_nan() || high.is_nan() => number(value),
        Estimate { value, low, high } => format!("{}\n[{} … {}]", number(value), number(low), number(high)),
    }
}

fn rows(heading: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let cells = |tag: &str, fields: &[String]| {
        fields.iter().map(|field| format!("<{tag}>{}</{tag}>", escape(field).replace('\n', "<br>"))).collect::<String>()
    };
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!("<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n", cells("th", &heading))
}

fn drawn(figure: &Figure, svg: &str) -> String {
    format!(
        "<h3>{}</h3>\n<figure>\n<div class=\"wide\">\n{svg}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
        escape(figure.heading),
        escape(&figure.caption)
    )
}

/// Text as HTML. Control characters other than white space are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            control if control.is_control() && !control.is_whitespace() => {}
            plain => escaped.push(plain),
        }
    }
    escaped
}
