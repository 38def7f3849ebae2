//! Reads result files and fits the scaling law K ≈ c1/B + c2 to each sparsity: `cargo run --release --example fit RESULT.h5…`.
//!
//! Parts of one study are put together. Where cells are confirmed, the law of their confirmed steps stands beside that of K*.

use std::process::ExitCode;

use dps::analysis::{confirmed_cells, confirmed_fits, fits, gather};
use dps::{Result, reader, results};

fn main() -> Result<ExitCode> {
    // A file may be hostile: the library reads HDF5 in a second process of this program, which begins here.
    if let Some(code) = reader::begin(&[results::READING]) {
        return Ok(ExitCode::from(code));
    }
    let mut files = Vec::new();
    for path in std::env::args_os().skip(1) {
        let path = std::path::PathBuf::from(path);
        files.push((path.display().to_string(), results::read(&path)?));
    }
    for study in gather(files) {
        println!("{}", study.name());
        let confirmed = confirmed_fits(&confirmed_cells(&study));
        let of_confirmed = confirmed.iter().map(|fit| ("confirmed steps", &fit.fitted));
        let of_least = fits(&study);
        for (steps, fitted) in of_least.iter().map(|fitted| ("K*", fitted)).chain(of_confirmed) {
            match &fitted.fit {
                Ok(fit) => println!(
                    "  sparsity {}, {steps}: c1 {:.0}, c2 {:.1}, critical batch size {:.0} ({:.0} to {:.0})",
                    fitted.sparsity, fit.c1.value, fit.c2.value, fit.critical.value, fit.critical.low, fit.critical.high
                ),
                Err(why) => println!("  sparsity {}, {steps}: {why}", fitted.sparsity),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
