//! Steps that trainings have still to take, each of which ends at its own goal.

/// Trainings of one batch size that are under way or to come.
#[derive(Debug, Clone, Copy)]
pub struct Trainings {
    /// Steps until half of them have ended.
    pub median: f64,
    /// The step at which the last ones end.
    pub last_step: f64,
    /// Steps that each training under way has taken.
    pub step: f64,
    /// Trainings under way.
    pub alive: usize,
    /// Trainings that have not begun.
    pub waiting: usize,
}

/// The deviation of a training's log steps: dense networks scatter less, sparse ones at large batch sizes more.
const SCATTER: f64 = 0.3;

/// Quantiles of a normal distribution in the middle of ten parts of equal size.
const NORMALS: [f64; 10] = [-1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645];

impl Trainings {
    /// The steps that all of them have still to take together, if log steps scatter normally.
    pub fn steps(&self) -> f64 {
        let all = NORMALS.map(|normal| (self.median * (SCATTER * normal).exp()).min(self.last_step));
        let later: Vec<f64> = all.into_iter().filter(|&steps| steps > self.step).map(|steps| steps - self.step).collect();
        // A training that takes longer than was thought goes on to the end.
        let rest = match later.len() {
            0 => (self.last_step - self.step).max(0.0),
            count => later.iter().sum::<f64>() / count as f64,
        };
        self.alive as f64 * rest + self.waiting as f64 * all.iter().sum::<f64>() / NORMALS.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_fall_as_trainings_go_on_and_end() {
        let begun = Trainings { median: 1000.0, last_step: 4000.0, step: 0.0, alive: 10, waiting: 0 };
        let whole = begun.steps();
        // The mean of a log-normal distribution with this scatter is 1.046 medians.
        assert!((whole / 10_460.0 - 1.0).abs() < 0.02, "{whole}");
        assert_eq!(Trainings { alive: 0, waiting: 10, ..begun }.steps(), whole);
        let late = Trainings { step: 900.0, ..begun };
        assert!(late.steps() < whole / 2.0 && late.steps() > 0.0);
        assert_eq!(Trainings { step: 3000.0, alive: 2, ..begun }.steps(), 2000.0, "those that are late go on to the end");
        // Trainings that go on after the goal.
        assert_eq!(Trainings { median: f64::INFINITY, step: 1000.0, waiting: 5, ..begun }.steps(), 50_000.0);
    }
}
