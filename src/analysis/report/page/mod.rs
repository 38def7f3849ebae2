//! The report as one HTML page: no script, nothing to load, readable on a screen, light or dark, and on paper.

mod claims;
mod confirmed;
mod critical;
mod fits;
mod goals;
mod run;
mod table;
mod theory;
mod timing;
mod trials;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::section::{Drawn, Section};
use crate::analysis::statistics::scatter;
use crate::analysis::studies::{has_trials, is_of_dps};
use crate::readable::{some, steers};

const STYLE: &str = include_str!("style.css");

/// What is said of every study alike.
pub struct PageOptions<'a> {
    /// Goal errors at which K* is asked for besides the studies' own.
    pub goals: &'a [f64],
    /// Seconds after which a browser loads the page again.
    pub refresh: Option<u32>,
}

/// The page. `compared` are figures over several studies, `files` names of what lies beside the page.
pub fn page(sections: &[Section], compared: &[Drawn], files: &[String], options: &PageOptions) -> String {
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
                @if let Some(seconds) = options.refresh { meta http-equiv="refresh" content=(seconds); }
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
                @for figure in compared { (drawn(figure)) }
                @for section in sections { (self::section(section, options.goals)) }
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
    let Section { study, fits, confirmed, confirmed_fits, claims, smoothness, critical, times, figures, warnings, .. } = section;
    let alone = study.measures_alone();
    html! {
        h2 id={ "study-" (study.slug) } { (study.name()) }
        p {
            @if warnings.is_empty() { "No warnings." } @else {
                a href={ "#warnings-" (study.slug) } { (some(warnings.len(), "warning")) } " below."
            }
        }
        h3 { "What was run" }
        (run::run(study))
        @if !alone {
            h3 { "Steps-to-result K*" }
            (run::steps_to_result(study))
            (links(figures, &["steps-to-result", "normalised", "panels", "ratio"]))
            @if !goals.is_empty() && is_of_dps(&study.results) {
                h3 { "Other goals" }
                (goals::goals(study, goals))
            }
        }
        @for figure in figures { (drawn(figure)) }
        @if !alone {
            @if has_trials(&study.results) {
                h3 { "Trials" }
                (trials::trials(study))
                (links(figures, &["metaparameters", "parallel", "rates", "fewer-trials", "so-far"]))
            }
            @if !confirmed.is_empty() {
                h3 { "Confirmed steps" }
                (confirmed::confirmed(confirmed, confirmed_fits, &scatter(study)))
                (links(figures, &["steps-to-result", "luck"]))
            }
            h3 { "Fits" }
            (fits::fits(study, fits))
            (fits::laws(fits, confirmed_fits))
            (links(figures, &["panels", "fits"]))
            @if !critical.is_empty() {
                h3 { "The critical batch size by several definitions" }
                (critical::critical(critical))
                (links(figures, &["panels", "trade-off", "noise-scale"]))
            }
            @if !times.is_empty() {
                h3 { "Time to the goal" }
                (timing::timing(times))
            }
        }
        @if !claims.is_empty() {
            h3 { "What it says of the paper's claims" }
            (claims::claims(claims))
        }
        @if !smoothness.is_empty() {
            h3 { "What the theory predicts" }
            (theory::theory(study, smoothness))
            (links(figures, &["lipschitz", "noise-scale"]))
        }
        h3 id={ "warnings-" (study.slug) } { "Warnings" }
        @if !warnings.is_empty() {
            ul.warnings {
                @for warning in warnings { li { (warning) } }
            }
        } @else if !is_of_dps(&study.results) {
            p { "None of what its files say." }
        } @else if alone {
            p { "None: every configured cell has a result." }
        } @else {
            p {
                "None: every configured cell has a result, no best point lies within 5 % of its search range's ends, and no cell was decided by "
                "few trials."
            }
        }
    }
}

fn drawn(Drawn { figure, name, svg }: &Drawn) -> Markup {
    html! {
        h3 id=(name) { (figure.heading) }
        figure {
            div.wide { (PreEscaped(svg)) }
            figcaption {
                (figure.caption)
                span.files {
                    @for kind in ["svg", "pdf", "png", "csv"] { " " a href={ (name) "." (kind) } { (kind.to_uppercase()) } }
                    " " a href={ (figure.table) ".csv" } { "table (" (figure.table) ")" }
                }
            }
        }
    }
}

/// Links to those of a study's figures that show what a table has.
fn links(figures: &[Drawn], names: &[&str]) -> Markup {
    let shown: Vec<&Drawn> = figures.iter().filter(|drawn| names.contains(&drawn.figure.name.as_ref())).collect();
    html! {
        @if !shown.is_empty() {
            p.faint {
                "Drawn in: "
                @for (number, drawn) in shown.iter().enumerate() {
                    @if number > 0 { "; " }
                    a href={ "#" (drawn.name) } { (drawn.figure.heading) }
                }
                "."
            }
        }
    }
}

/// Rules that give the figures' colours their counterparts on a dark page: greys are inverted, others are mixed with white. Files keep theirs.
fn dark(figures: &[&Drawn]) -> String {
    let mut colours: Vec<&str> =
        figures.iter().flat_map(|drawn| drawn.svg.split("=\"#").skip(1)).filter_map(|rest| rest.get(..6)).collect();
    colours.sort_unstable();
    colours.dedup();
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
