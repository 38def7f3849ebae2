//! `dps-report RESULT.h5… [-o FOLDER]`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser};

use super::{WIDTH, matches};
use crate::analysis::Style;
use crate::exit;
use crate::version::VERSION_AND_COMMIT;

/// Tables, fits and figures of one or more results, as one HTML page.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "dps-report", bin_name = "dps-report", version = VERSION_AND_COMMIT, max_term_width = WIDTH, after_help = AFTER_HELP)]
pub struct ReportArguments {
    /// Result files of dps-train; also a .csv of steps-to-result, or a folder of Shallue et al.'s data.
    #[arg(value_name = "RESULT.h5", required = true)]
    pub results: Vec<PathBuf>,
    /// Folder of the report.
    #[arg(short, long, value_name = "FOLDER", default_value = "report")]
    pub output: PathBuf,
    /// Figures for a screen, or for a paper: 5.5 and 3.3 inches wide, text of 8 points.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "screen|paper")]
    pub style: Style,
    /// Also the steps to this goal error, as far as evaluations say; may be repeated.
    #[arg(long = "goal", value_name = "ERROR", value_parser = goal_error)]
    pub goals: Vec<f64>,
    /// Write the report again whenever a result file changes, until all studies are complete and no program works on them.
    #[arg(long)]
    pub live: bool,
    /// Also write the results in the layout of Shallue et al.'s public data.
    #[arg(long, value_name = "FOLDER")]
    pub shallue: Option<PathBuf>,
    /// Also write what the results say of the paper's claims, as a page in Markdown.
    #[arg(long, value_name = "FILE.md")]
    pub claims: Option<PathBuf>,
    /// Exit with code 8 where there are warnings.
    #[arg(long)]
    pub strict: bool,
}

impl ReportArguments {
    /// Reads a command line, program name first.
    ///
    /// # Errors
    /// Clap's message, `--help` and `--version` included; [`clap::Error::exit_code`] is 0 for those, else 2.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<ReportArguments, clap::Error> {
        matches(ReportArguments::command(), &BRIEF, words).and_then(|found| ReportArguments::from_arg_matches(&found))
    }
}

fn goal_error(text: &str) -> Result<f64, String> {
    let goal = text.parse().ok().filter(|goal| (f64::MIN_POSITIVE..1.0).contains(goal));
    goal.ok_or_else(|| "expected an error above 0 and below 1, such as 0.05".to_owned())
}

/// The options that `-h` lists.
const BRIEF: [&str; 6] = ["results", "output", "style", "live", "help", "version"];

/// The end of help.
const AFTER_HELP: &str = "\
Examples:
  dps-report results/quickstart.h5
  dps-report results/mnist-*.h5 -o optimizers    compare three optimizers
  dps-report results/quickstart.h5 --live        beside a study that runs

More of each option, and exit codes: docs/results.md, dps-train man FOLDER.";

/// The end of the manual page.
pub(super) fn manual() -> String {
    format!(
        "Examples:
  dps-report results/quickstart.h5
  dps-report results/mnist-simple-cnn-*.h5 -o optimizers    compare three optimizers
  dps-report results/quickstart.h5 --style paper -o paper   figures as a paper has them
  dps-report results/quickstart.h5 --goal 0.25              also the steps to another goal
  dps-report results/quickstart.h5 --live                   beside a study that runs

{MORE}

{}",
        exit::help()
    )
}

/// Paragraph on the options that the manual page has beyond help.
const MORE: &str = "\
Several result files are compared; those of one study become one. A .csv is a table of steps-to-result, a folder is in the layout of Shallue et al.'s
public data: study.json, metadata.json, measurements.csv. With --goal steps-to-result is found as far as the recorded evaluations say it; the first goal
is that of data in that layout which have none. --live waits for a file that is not there yet, which a study writes when it begins, and for a
complete study to grow, and ends with Ctrl-C; the page loads itself anew. Warnings, for --strict, are of cells without a result, of a best point at the
edge of the search space, and of too few trials.";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<ReportArguments, clap::Error> {
        ReportArguments::read(format!("dps-report {line}").split_whitespace().map(OsString::from))
    }

    #[test]
    fn results_and_a_folder() {
        let report = read("a.h5 b.h5 -o figures").unwrap();
        assert_eq!(
            report,
            ReportArguments {
                results: vec!["a.h5".into(), "b.h5".into()],
                output: "figures".into(),
                style: Style::Screen,
                goals: Vec::new(),
                live: false,
                shallue: None,
                claims: None,
                strict: false
            }
        );
        assert_eq!(read("a.h5 --shallue data").unwrap().shallue, Some("data".into()));
        assert_eq!(read("a.h5 --style paper").unwrap().style, Style::Paper);
        assert_eq!(read("a.h5 --goal 0.05 --goal 1e-3").unwrap().goals, [0.05, 1e-3]);
        for none in ["0", "1", "-0.1", "5%", "nan", "inf"] {
            let refused = read(&format!("a.h5 --goal={none}")).unwrap_err();
            assert!(refused.exit_code() == 2 && refused.to_string().contains("above 0 and below 1"), "{refused}");
        }
        assert_eq!(read("a.h5 --style poster").unwrap_err().exit_code(), 2);
        assert_eq!(read("a.h5").unwrap().output, PathBuf::from("report"));
        assert_eq!(read("").unwrap_err().exit_code(), 2);
        let help = read("--help").unwrap_err();
        assert_eq!(help.exit_code(), 0);
        assert!(manual().contains("Exit codes:\n  0  done\n"));
    }
}
