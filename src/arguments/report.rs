//! `dps-report RESULT.h5… [-o FOLDER]`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::exit;
use crate::version::VERSION_AND_COMMIT;

/// Tables, fits and figures of one or more results, as one HTML page.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "dps-report", bin_name = "dps-report", version = VERSION_AND_COMMIT, max_term_width = 100, after_help = after_help())]
pub struct ReportArguments {
    /// Result files that dps-train wrote; several are compared. Also what others measured: a table of steps-to-result, named .csv, or a folder in the
    /// layout of Shallue et al.'s public data.
    #[arg(value_name = "RESULT.h5", required = true)]
    pub results: Vec<PathBuf>,
    /// Folder the report is written to.
    #[arg(short, long, value_name = "FOLDER", default_value = "report")]
    pub output: PathBuf,
    /// What figures look like: for a screen, or for a paper (5.5 inches wide, all text of 8 points, no title).
    #[arg(long, value_enum, default_value_t)]
    pub style: FigureStyle,
    /// Also find steps-to-result at this goal error, as far as the recorded evaluations say it; may be given several times. The first is the goal of
    /// data in the layout of Shallue et al. that have none.
    #[arg(long = "goal", value_name = "ERROR", value_parser = goal_error)]
    pub goals: Vec<f64>,
    /// Write the report again whenever a result file changes, until all studies are complete, or until Ctrl-C; the page loads itself anew. Waits
    /// for a file that is not there yet (a study writes it after its first cell), and for a complete study to grow.
    #[arg(long)]
    pub live: bool,
    /// Also write the results into FOLDER in the layout of Shallue et al.'s public data: study.json, metadata.json, measurements.csv.
    #[arg(long, value_name = "FOLDER")]
    pub shallue: Option<PathBuf>,
    /// Also write what the results say of the paper's claims, as a page in Markdown.
    #[arg(long, value_name = "FILE.md")]
    pub claims: Option<PathBuf>,
    /// Exit with code 8 where any cell has a warning: no result, a best point at the edge of the search space, too few trials.
    #[arg(long)]
    pub strict: bool,
}

/// What a report's figures look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FigureStyle {
    /// A title above, the legend at the right.
    #[default]
    Screen,
    /// 5.5 inches wide, all text of 8 points, no title, the legend below.
    Paper,
}

impl ReportArguments {
    /// Reads a command line, program name first.
    ///
    /// # Errors
    /// What clap has to say, `--help` and `--version` included; [`clap::Error::exit_code`] is 0 for those, else 2.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<ReportArguments, clap::Error> {
        ReportArguments::try_parse_from(words)
    }
}

fn goal_error(text: &str) -> Result<f64, String> {
    let goal = text.parse().ok().filter(|goal| (f64::MIN_POSITIVE..1.0).contains(goal));
    goal.ok_or_else(|| "expected an error above 0 and below 1, such as 0.05".to_owned())
}

fn after_help() -> String {
    format!(
        "Examples:
  dps-report results/quickstart.h5
  dps-report results/mnist-simple-cnn-*.h5 -o optimizers    compare three optimizers
  dps-report results/quickstart.h5 --style paper -o paper   figures as a paper has them
  dps-report results/quickstart.h5 --goal 0.25              also the steps to another goal
  dps-report results/quickstart.h5 --live                   beside a study that runs

{}",
        exit::help()
    )
}

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
                style: FigureStyle::Screen,
                goals: Vec::new(),
                live: false,
                shallue: None,
                claims: None,
                strict: false
            }
        );
        assert_eq!(read("a.h5 --shallue data").unwrap().shallue, Some("data".into()));
        assert_eq!(read("a.h5 --style paper").unwrap().style, FigureStyle::Paper);
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
        assert!(help.to_string().contains("Exit codes:\n  0  done\n"));
    }
}
