//! Numbers computed of studies: fits with their intervals, confirmed steps, critical batch sizes, times, work, and what the theory predicts.
//!
//! Nothing here draws, writes or words a page.

mod beside;
mod budget;
mod confirmations;
pub mod confirmed;
mod critical;
mod edges;
mod estimate;
pub mod exponent;
mod exponents;
mod fewer;
pub mod fit;
mod fits;
mod goals;
mod laws;
mod least_squares;
mod means;
mod shaped;
mod sharpness;
mod smoothness;
mod timing;
mod variances;
mod work;

pub use beside::{Beside, cell_beside, confirmed_beside, least_beside};
pub use budget::{Budget, budgets, least_errors};
pub use confirmations::{ConfirmedCell, ConfirmedFit, ShapedFit, answering, confirmed_cells, confirmed_fits, means};
pub use critical::{Critical, Definition, critical};
pub use edges::{EDGE, at_edge, share};
pub use estimate::{COVERED, Estimate, ends};
pub use exponent::curvature;
pub use fewer::FewerTrials;
pub use fit::{Fit, LINEAR_EXPONENTS, RESAMPLES, Regime, slope, slope_of_known};
pub use fits::{EnoughTrials, Fitted, NEAR, Shift, decays, effective_rate, fits, learning_rate, measured_points};
pub use goals::{Bounds, threshold};
pub use laws::Rival;
pub use means::{Middle, beyond_chi_squared, half_width};
pub use smoothness::{Along, Measured, Smooth, Surface, comparable, noise_scale, smoothness};
pub use timing::{Timed, sentences, times};
pub use variances::{Fresh, Scatter, Variances, scatter};
pub use work::{Range, Work, computed, core_hours, core_hours_of, has_least_core_hours, is_of_one_machine, papers_steps, to_end, to_goal};
