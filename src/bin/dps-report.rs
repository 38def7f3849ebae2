//! Tables and figures of result files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use dps::{analysis, results};

/// Prints the steps-to-result of studies, and draws them against batch size.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Result files, written by dps-train
    #[arg(required = true, value_name = "RESULT.h5")]
    results: Vec<PathBuf>,

    /// Folder for the figures; made where it is missing
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match report(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dps-report: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn report(arguments: &Arguments) -> dps::Result<()> {
    let mut taken = HashSet::new();
    for path in &arguments.results {
        let results = results::read(path)?;
        let figure = arguments.output.join(figure_name(path, &mut taken));
        analysis::steps_to_result_plot(&results, &figure)?;
        println!("{}Figure: {}\n", analysis::table(&results), figure.display());
    }
    Ok(())
}

/// The figure's name after its result file's; files of one name in different folders are numbered.
fn figure_name(path: &Path, taken: &mut HashSet<String>) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let numbered = (2..).map(|number| format!("{stem}-{number}-steps-to-result.svg"));
    let mut names = std::iter::once(format!("{stem}-steps-to-result.svg")).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or_default()
}
