//! Confirmed steps, and laws beside that of the paper.

use super::super::rows::{Rows, optional};
use super::super::section::{Control, Section};
use super::super::table::Table;
use crate::analysis::statistics::{ConfirmedFit, Fitted, Rival, beyond_chi_squared, half_width, scatter};

/// A row a confirmed cell.
pub(super) fn confirmed(sections: &[Section]) -> Table {
    Rows::of("confirmed", sections, |section| &section.confirmed)
        .of_cell(|(_, cell)| cell.key)
        .column("points", |(_, cell)| cell.points.len().to_string())
        .column("seeds", |(_, cell)| cell.confirmed.trainings.len().to_string())
        .estimate("mean_steps", |(_, cell)| Some(cell.confirmed.mean))
        .estimate("median_steps", |(_, cell)| Some(cell.confirmed.median))
        .estimate("steps_of_nine_in_ten", |(_, cell)| Some(cell.confirmed.nine_of_ten))
        .estimate("steps_of_mean_error", |(_, cell)| cell.mean_error)
        .estimate("failures", |(_, cell)| Some(cell.confirmed.failures))
        .estimate("luck", |(_, cell)| cell.luck)
        .table()
}

/// A row a confirmed cell and what its seeds drew anew.
pub(super) fn variances(sections: &[Section]) -> Table {
    Rows::of("variances", sections, |section| scatter(section.study))
        .of_cell(|(_, scatter)| scatter.key)
        .column("fresh", |(_, scatter)| scatter.fresh.name().to_owned())
        .column("points", |(_, scatter)| scatter.points.to_string())
        .column("seeds", |(_, scatter)| scatter.seeds.to_string())
        .column("variance_of_points", |(_, scatter)| optional(scatter.variances.points))
        .column("variance_of_seeds", |(_, scatter)| optional(scatter.variances.seeds))
        .column("variance_left", |(_, scatter)| scatter.variances.left.to_string())
        .table()
}

/// A row a sparsity whose confirmed steps are fitted.
pub(super) fn fits(sections: &[Section]) -> Table {
    Rows::of("confirmed-fits", sections, |section| &section.confirmed_fits)
        .column("sparsity", |(_, fit)| fit.fitted.sparsity.to_string())
        .column("points", |(_, fit)| fit.fitted.points.len().to_string())
        .estimate("c1", |(_, fit)| fit.fit().map(|fit| fit.c1))
        .estimate("c2", |(_, fit)| fit.fit().map(|fit| fit.c2))
        .estimate("critical_batch_size", |(_, fit)| fit.fit().map(|fit| fit.critical))
        .estimate("exponent", |(_, fit)| fit.fitted.exponent)
        .estimate("c1_over_dense", |(_, fit)| fit.fitted.c1_ratio)
        .estimate("c2_over_dense", |(_, fit)| fit.fitted.c2_ratio)
        .estimate("critical_over_dense", |(_, fit)| fit.fitted.critical_ratio)
        .column("half_width_of_its_log", |(_, fit)| optional(fit.fitted.critical_ratio.map(half_width)))
        .column("points_of_medians", |(_, fit)| optional(fit.of_medians.as_ref().map(|medians| medians.points.len())))
        .estimate("critical_batch_size_of_medians", |(_, fit)| fit.of_medians.as_ref().and_then(Fitted::critical))
        .estimate("critical_over_dense_of_medians", |(_, fit)| fit.of_medians.as_ref().and_then(|medians| medians.critical_ratio))
        .column("least_without_one_batch_size", |(_, fit)| optional(fit.without_one.map(|[least, _]| least.1)))
        .column("greatest_without_one_batch_size", |(_, fit)| optional(fit.without_one.map(|[_, greatest]| greatest.1)))
        .column("goodness", |(_, fit)| tiny(fit.goodness))
        .column("uneven_tuning", |(_, fit)| fit.tuning.to_string())
        .estimate("sharpness", |(_, fit)| fit.sharp.map(|sharp| sharp.shape))
        .estimate("sharp_critical_batch_size", |(_, fit)| fit.sharp.map(|sharp| sharp.critical))
        .estimate("sharp_critical_over_dense", |(_, fit)| fit.sharp.and_then(|sharp| sharp.critical_ratio))
        .column("sharp_goodness", |(_, fit)| optional(fit.sharp.map(|sharp| tiny(sharp.goodness))))
        .estimate("bent_critical_batch_size", |(_, fit)| fit.bent.map(|bent| bent.critical))
        .estimate("bent_critical_over_dense", |(_, fit)| fit.bent.and_then(|bent| bent.critical_ratio))
        .column("bent_goodness", |(_, fit)| optional(fit.bent.map(|bent| tiny(bent.goodness))))
        .table()
}

/// A row a cell of a study that is a control of another, and without a batch size a row a sparsity by the laws of both.
pub(super) fn controls<'a>(sections: &'a [Section<'a>]) -> Table {
    let rows = |control: &'a Control<'a>| control.rows.iter().map(|row| (control.original, row));
    Rows::of("controls", sections, |section| section.control.iter().flat_map(rows))
        .column("control_of", |(_, (original, _))| original.slug.clone())
        .column("batch_size", |(_, (_, row))| optional(row.batch_size))
        .column("sparsity", |(_, (_, row))| row.sparsity.to_string())
        .estimate("steps_over", |(_, (_, row))| row.steps[0])
        .estimate("steps_over_dense", |(_, (_, row))| row.steps[1])
        .estimate("critical_batch_size_over", |(_, (_, row))| row.critical[0])
        .estimate("critical_batch_size_over_dense", |(_, (_, row))| row.critical[1])
        .table()
}

/// A row a sparsity, kind of steps and law.
pub(super) fn laws(sections: &[Section]) -> Table {
    let of_least = |fitted: &Fitted| Rival::ALL.map(|rival| Some(("K*", fitted.sparsity, rival, rival.criterion(&fitted.points)?, None)));
    let of_means = |confirmed: &ConfirmedFit| {
        let Fitted { sparsity, points, .. } = &confirmed.fitted;
        Rival::ALL.map(|rival| {
            let (criterion, squares) = rival.criterion_of_means(points)?;
            let goodness = beyond_chi_squared(squares, rival.freedom(points.len()));
            Some(("confirmed", *sparsity, rival, criterion, Some(goodness)))
        })
    };
    Rows::of("laws", sections, |section| {
        section.fits.iter().flat_map(of_least).chain(section.confirmed_fits.iter().flat_map(of_means)).flatten()
    })
    .column("steps", |(_, row)| row.0.to_owned())
    .column("sparsity", |(_, row)| row.1.to_string())
    .column("law", |(_, row)| row.2.name().to_owned())
    .column("aicc", |(_, row)| row.3.to_string())
    .column("goodness", |(_, row)| optional(row.4.map(tiny)))
    .table()
}

/// A number that may be tiny: with an exponent, where it would begin with many zeros.
fn tiny(value: f64) -> String {
    format!("{value:?}")
}
