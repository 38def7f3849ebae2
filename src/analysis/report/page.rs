//! The report as one HTML page: no script, nothing to load, readable on a screen, light or dark, and on paper.

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::document::{self, Block};
use super::parts;
use super::section::{Drawn, Section};
use crate::analysis::figures::Part;
use crate::analysis::statistics::scatter;
use crate::analysis::studies::{has_trials, is_of_dps};
use crate::readable::{some, steers};

const STYLE: &str = include_str!("style.css");

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
                title { "Steps-to-result: " (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(dark(&all))) }
            }
            body {
                h1 { "Batch size, sparsity and steps-to-result" }
                @for section in sections {
                    @if !section.answer.is_empty() {
                        @if sections.len() > 1 { p { b { (section.study.name()) } } }
                        ul.answer { @for sentence in &section.answer { li { (sentence) } } }
                    }
                }
                p {
                    "How many training steps a network needs to reach a goal, at each batch size and sparsity, when the metaparameters are "
                    "searched anew for every cell; after Lee, Ajanthan, Torr and Jaggi, "
                    cite { "Understanding the Effects of Data Parallelism and Sparsity on Neural Network Training" }
                    " (ICLR 2021)."
                }
                @if sections.len() > 1 {
                    ul {
                        @for Section { study, .. } in sections {
                            li { a href={ "#study-" (study.slug) } { (study.name()) } }
                        }
                    }
                }
                (document::html(&compared.iter().map(Block::Figure).collect::<Vec<_>>()))
                @for section in sections { (self::section(section, goals)) }
                @if sections.iter().any(|section| is_of_dps(&section.study.results)) {
                    h2 { "Configuration" }
                    p { "To run a study again, give this to dps-train." }
                }
                @for Section { study, .. } in sections.iter().filter(|section| is_of_dps(&section.study.results)) {
                    details open[sections.len() == 1] {
                        summary { (study.name()) }
                        pre { (study.results.configuration) }
                    }
                }
                h2 { "Beside this page" }
                p.faint {
                    @for (number, name) in files.iter().enumerate() {
                        @if number > 0 { ", " }
                        a href=(name) { code { (name) } }
                    }
                }
            }
        }
    };
    // Texts of a result file may have control characters, for which HTML has no meaning.
    page.into_string().replace(|letter: char| steers(letter) && !letter.is_whitespace(), "")
}

fn section(section: &Section, goals: &[f64]) -> Markup {
    let Section { study, warnings, .. } = section;
    html! {
        h2 id={ "study-" (study.slug) } { (study.name()) }
        p {
            @if warnings.is_empty() { "No warnings." } @else {
                a href={ "#warnings-" (study.slug) } { (some(warnings.len(), "warning")) } " below."
            }
        }
        (document::html(&told(section, goals)))
        h3 id={ "warnings-" (study.slug) } { "Warnings" }
        @if !warnings.is_empty() {
            ul.warnings {
                @for warning in warnings { li { (warning) } }
            }
        } @else if !is_of_dps(&study.results) {
            p { "None of what its files say." }
        } @else if study.measures_alone() {
            p { "None: every configured cell has a result." }
        } @else {
            p {
                "None: every configured cell has a result, no best point lies within 5 % of its search range's ends, and no cell was decided by "
                "few trials."
            }
        }
    }
}

/// What is said of a study, part by part.
fn told<'a>(section: &'a Section, goals: &[f64]) -> Vec<Block<'a>> {
    let Section { study, fits, confirmed, confirmed_fits, claims, smoothness, critical, times, figures, .. } = section;
    let alone = study.measures_alone();
    let part = |heading: &str, blocks: Vec<Block<'a>>, part: Option<Part>| {
        let shown: Vec<&Drawn> = figures.iter().filter(|drawn| part.is_some_and(|part| drawn.figure.beside.contains(&part))).collect();
        let links = (!shown.is_empty()).then_some(Block::Links(shown));
        [Block::Heading(3, heading.to_owned())].into_iter().chain(blocks).chain(links)
    };
    let mut told: Vec<Block> = part("What was run", parts::run(study), None).collect();
    if !alone {
        told.extend(part("Steps-to-result K*", parts::steps(study), Some(Part::Steps)));
        if !goals.is_empty() && is_of_dps(&study.results) {
            told.extend(part("Other goals", parts::goals(study, goals), None));
        }
    }
    told.extend(figures.iter().map(Block::Figure));
    if !alone {
        if has_trials(&study.results) {
            told.extend(part("Trials", parts::trials(study), Some(Part::Trials)));
        }
        if !confirmed.is_empty() {
            told.extend(part("Confirmed steps", parts::confirmed(confirmed, confirmed_fits, &scatter(study)), Some(Part::Confirmed)));
        }
        let fitted = parts::fits(study, fits).into_iter().chain(parts::laws(fits, confirmed_fits)).collect();
        told.extend(part("Fits", fitted, Some(Part::Fits)));
        if !critical.is_empty() {
            told.extend(part("The critical batch size by several definitions", parts::critical(critical), Some(Part::Critical)));
        }
        if !times.is_empty() {
            told.extend(part("Time to the goal", parts::timing(times), None));
        }
    }
    if !claims.is_empty() {
        told.extend(part("What it says of the paper's claims", parts::claims(claims), None));
    }
    if !smoothness.is_empty() {
        told.extend(part("What the theory predicts", parts::theory(study, smoothness), Some(Part::Theory)));
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
