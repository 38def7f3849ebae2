//! The report as one HTML page: no script, nothing to load, readable on a screen, light or dark, and on paper.

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::document::{self, Block};
use super::numbers::interval;
use super::parts as words;
use super::section::{Drawn, Section};
use super::warnings::Warning;
use crate::analysis::figures::Part;
use crate::analysis::statistics::scatter;
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::readable::{count, some, steers};
use crate::records::CellKey;

const STYLE: &str = include_str!("style.css");

/// First words of the title of every page.
pub const TITLE: &str = "Steps-to-result";

/// The page. `compared` are figures over several studies, `files` names of what lies beside the page, `goals` errors at which K* is asked for besides
/// the studies' own; a browser loads the page again after `refresh` seconds.
pub fn page(sections: &[Section], compared: &[Drawn], files: &[String], goals: &[f64], refresh: Option<u32>) -> String {
    let title = match sections {
        [one] => one.study.name(),
        many => format!("{} studies compared", many.len()),
    };
    let all: Vec<&Drawn> = compared.iter().chain(sections.iter().flat_map(|section| &section.figures)).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                @if let Some(seconds) = refresh { meta http-equiv="refresh" content=(seconds); }
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (TITLE) ": " (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(dark(&all))) }
            }
            body {
                h1 { "Batch size, sparsity and steps-to-result" }
                (beginning(sections, compared))
                (contents(sections, compared, goals))
                (document::html(&compared.iter().skip(1).map(folded).collect::<Vec<_>>()))
                @for section in sections { (self::section(section, goals, sections.len() == 1)) }
                h2 id="files" { "Provenance and files" }
                @for Section { study, .. } in sections {
                    details {
                        summary { "Provenance of " (study.name()) }
                        (document::html(&words::provenance(study)))
                        @if is_of_dps(&study.results) {
                            p { "To run the study again, give this configuration to dps-train." }
                            pre { (study.results.configuration) }
                        }
                    }
                }
                details {
                    summary { "Files beside this page" }
                    p.faint {
                        @for (number, name) in files.iter().enumerate() {
                            @if number > 0 { ", " }
                            a href=(name) { code { (name) } }
                        }
                    }
                }
                p.faint {
                    "After Lee, Ajanthan, Torr and Jaggi, "
                    cite { "Understanding the Effects of Data Parallelism and Sparsity on Neural Network Training" }
                    " (ICLR 2021): how many training steps a network needs to reach a goal, at each batch size and sparsity, when the metaparameters "
                    "are searched anew for every cell."
                }
            }
        }
    };
    // Texts of a result file may have control characters, for which HTML has no meaning.
    page.into_string().replace(|letter: char| steers(letter) && !letter.is_whitespace(), "")
}

/// The answer with its leading figure: of one study its three sentences; of several the first sentence of each, and the first figure that compares
/// them.
fn beginning(sections: &[Section], compared: &[Drawn]) -> Markup {
    match sections {
        [section] => html! {
            p.faint { (section.study.name()) ". Goal: " (section.study.goal_in_short()) "." }
            (answer(section))
            @if let Some(lead) = section.figures.first() { (self::lead(lead)) }
        },
        _ => html! {
            ul.answer {
                @for Section { study, answer, .. } in sections {
                    li {
                        a href={ "#study-" (study.slug) } { (study.name()) } ": "
                        (answer.sentences.first().map_or("no fit yet.", String::as_str))
                    }
                }
            }
            @if let Some(lead) = compared.first() { (self::lead(lead)) }
        },
    }
}

/// The figure that leads the page.
fn lead(drawn: &Drawn) -> Markup {
    html! { p { b { (drawn.figure.heading) } } (Block::Figure(drawn).html()) }
}

/// A study's sentences, each with what a sceptic can check.
fn answer(section: &Section) -> Markup {
    let answer = &section.answer;
    html! {
        @if !answer.sentences.is_empty() {
            ul.answer {
                @for (sentence, check) in answer.sentences.iter().zip(&answer.checks) {
                    li { (sentence) " " span.check { (document::rich(check)) } }
                }
            }
        }
    }
}

/// Links to all that is folded below.
fn contents(sections: &[Section], compared: &[Drawn], goals: &[f64]) -> Markup {
    let figures = |figures: &[Drawn]| {
        html! { @for Drawn { figure, name, .. } in figures { " · " a href={ "#" (name) "-figure" } { (figure.heading) } } }
    };
    html! {
        nav {
            b { "Contents" }
            @if compared.len() > 1 { p { "Compared" (figures(&compared[1..])) } }
            @for section in sections {
                p {
                    a href={ "#study-" (section.study.slug) } { (if sections.len() > 1 { section.study.name() } else { "The study".to_owned() }) }
                    @for block in parts(section, goals) {
                        @if let Block::Fold(place, heading, _) = block { " · " a href={ "#" (place) } { (heading) } }
                    }
                    (figures(&section.figures))
                    " · " a href={ "#warnings-" (section.study.slug) } { (some(section.warnings.len(), "warning")) }
                }
            }
            p { a href="#files" { "Provenance and files" } }
        }
    }
}

/// A figure below its heading.
fn folded(drawn: &Drawn) -> Block<'_> {
    Block::Fold(String::new(), drawn.figure.heading.to_string(), vec![Block::Figure(drawn)])
}

/// A study with all parts and figures folded, but for the first one where it leads the page.
fn section(section: &Section, goals: &[f64], is_lead: bool) -> Markup {
    let Section { study, warnings, .. } = section;
    html! {
        h2 id={ "study-" (study.slug) } { (study.name()) }
        @if !is_lead { (answer(section)) }
        (document::html(&parts(section, goals)))
        (document::html(&section.figures.iter().skip(usize::from(is_lead)).map(folded).collect::<Vec<_>>()))
        details {
            summary { (if warnings.is_empty() { "No warnings".to_owned() } else { some(warnings.len(), "warning") }) }
            div id={ "warnings-" (study.slug) } {
                @if !warnings.is_empty() {
                    ul.warnings {
                        @for warning in warnings { li { (warning.sentence) (grid(study, warning)) } }
                    }
                } @else if !is_of_dps(&study.results) {
                    p { "None of what its files say." }
                } @else if study.measures_alone() {
                    p { "None: every configured cell has a result." }
                } @else {
                    p {
                        "None: every configured cell has a result, no best point lies within 5 % of its search range's ends, and no cell was decided "
                        "by few trials."
                    }
                }
            }
        }
    }
}

/// Where among the cells a warning is: a row a sparsity and a column a batch size. Nothing where it is of one cell, or of the study.
fn grid(study: &StudyResults, warning: &Warning) -> Markup {
    let measured = study.grid();
    let is_here = |batch_size: u32, sparsity: f64| warning.cells.contains(&CellKey { batch_size, sparsity });
    html! {
        @if warning.cells.len() > 1 {
            div.wide {
                table.cells {
                    thead { tr { th { (some(warning.cells.len(), "cell")) } @for &size in &measured.batch_sizes { th { (count(size)) } } } }
                    tbody {
                        @for &sparsity in &measured.sparsities {
                            tr {
                                th { "sparsity " (sparsity) }
                                @for &size in &measured.batch_sizes { td { (if is_here(size, sparsity) { "●" } else { "·" }) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The parts of the page on a study, each folded.
fn parts<'a>(section: &'a Section, goals: &[f64]) -> Vec<Block<'a>> {
    let Section { study, fits, confirmed, confirmed_fits, control, claims, smoothness, critical, times, figures, .. } = section;
    let alone = study.measures_alone();
    let mut told: Vec<Block> = Vec::new();
    let mut tell = |heading: &str, mut blocks: Vec<Block<'a>>, part: Option<Part>| {
        let shown: Vec<&Drawn> = figures.iter().filter(|drawn| part.is_some_and(|part| drawn.figure.beside.contains(&part))).collect();
        blocks.extend((!shown.is_empty()).then_some(Block::Links(shown)));
        let name: Vec<String> = heading.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect();
        told.push(Block::Fold(format!("{}-{}", study.slug, name.join("-")), heading.to_owned(), blocks));
    };
    tell("What was run", words::run(study), None);
    if !alone {
        tell("Steps-to-result K*", words::steps(study), Some(Part::Steps));
        if !goals.is_empty() && (is_of_dps(&study.results) || !has_trials(&study.results)) {
            tell("Other goals", words::goals(study, goals), None);
        }
        if has_trials(&study.results) {
            tell("Trials", words::trials(study), Some(Part::Trials));
        }
        if !confirmed.is_empty() {
            tell("Confirmed steps", words::confirmed(confirmed, confirmed_fits, &scatter(study)), Some(Part::Confirmed));
        }
        if let Some(beside) = control {
            tell("Beside the study that it is a control of", words::control(study, beside, interval), None);
        }
        let fitted = words::fits(study, fits).into_iter().chain(words::laws(fits, confirmed_fits)).collect();
        tell("Fits", fitted, Some(Part::Fits));
        if !critical.is_empty() {
            tell("The critical batch size by several definitions", words::critical(critical), Some(Part::Critical));
        }
        if !times.is_empty() {
            tell("Time to the goal", words::timing(times), None);
        }
    }
    if !claims.is_empty() {
        let check = section.answer.checks.first().map(|check| Block::Note(check.clone()));
        tell("What it says of the paper's claims", words::claims(claims).into_iter().chain(check).collect(), None);
    }
    if !smoothness.is_empty() {
        tell("What the theory predicts", words::theory(study, smoothness), Some(Part::Theory));
    }
    told
}

/// Rules that give the figures' colours their counterparts on a dark page: greys are inverted, others are mixed with white. Files keep theirs.
fn dark(figures: &[&Drawn]) -> String {
    let colours: BTreeSet<&str> =
        figures.iter().flat_map(|drawn| drawn.svg.split("=\"#").skip(1)).filter_map(|rest| rest.get(..6)).collect();
    let rule = |colour: &&str| {
        let [red, green, blue] = [0, 2, 4].map(|from| colour.get(from..from + 2).and_then(|byte| u32::from_str_radix(byte, 16).ok()));
        let (red, green, blue) = (red?, green?, blue?);
        let grey = red == green && green == blue;
        let dark = |part: u32| if grey { 230 - part * 207 / 255 } else { part + (255 - part) * 2 / 5 };
        let dark = format!("#{:02x}{:02x}{:02x}", dark(red), dark(green), dark(blue));
        Some(format!("svg [fill=\"#{colour}\"] {{ fill: {dark}; }} svg [stroke=\"#{colour}\"] {{ stroke: {dark}; }}\n"))
    };
    let rules: String = colours.iter().filter_map(rule).collect();
    format!("@media screen and (prefers-color-scheme: dark) {{\n{rules}}}\n")
}
