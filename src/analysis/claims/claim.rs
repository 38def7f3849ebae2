//! The claims and their rules in words.

/// A claim of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// Scaling is linear at first.
    Linear,
    /// Then returns diminish.
    Diminishing,
    /// At last data parallelism is maximal.
    Maximal,
    /// Sparse networks need more steps.
    MoreSteps,
    /// 1.5 to 4.5 times as many at sparsity 0.9.
    Times,
    /// Their ratio to the dense one's falls with the batch size.
    RatioFalls,
    /// Their critical batch size is no smaller.
    CriticalBatchSize,
    /// Fewer of their metaparameters are good.
    GoodRegion,
    /// The best learning rate rises with the batch size.
    LearningRate,
    /// The best metaparameters lie inside of the search space.
    Inside,
    /// Momentum needs fewer steps than SGD at large batches.
    FewerThanSgd,
    /// And has a larger critical batch size.
    BeyondSgd,
}

/// The smallest and the largest batch size of the paper.
pub const PAPERS_BATCH_SIZES: (u32, u32) = (2, 16_384);

/// The sparsities of the paper.
pub const PAPERS_SPARSITIES: [f64; 4] = [0.0, 0.5, 0.7, 0.9];

/// The batch sizes of the paper: the powers of two from the smallest to the largest.
pub fn papers_batch_sizes() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(PAPERS_BATCH_SIZES.0), |size| Some(2 * size)).take_while(|size| *size <= PAPERS_BATCH_SIZES.1)
}

/// The sparsity and the ratios of the paper's figure 12.
pub const PAPERS_RATIOS: (f64, f64, f64) = (0.9, 1.5, 4.5);

impl Claim {
    /// Every claim, in the order of the page.
    pub const ALL: [Claim; 12] = [
        Claim::Linear,
        Claim::Diminishing,
        Claim::Maximal,
        Claim::MoreSteps,
        Claim::Times,
        Claim::RatioFalls,
        Claim::CriticalBatchSize,
        Claim::GoodRegion,
        Claim::LearningRate,
        Claim::Inside,
        Claim::FewerThanSgd,
        Claim::BeyondSgd,
    ];

    /// The claim in a sentence, without a full stop.
    pub fn words(self) -> &'static str {
        match self {
            Claim::Linear => "At small batch sizes scaling is linear: twice the batch, half the steps",
            Claim::Diminishing => "At larger ones returns diminish",
            Claim::Maximal => "At the largest ones data parallelism is maximal: more examples save no steps",
            Claim::MoreSteps => "A sparse network needs more steps than the dense one at every batch size",
            Claim::Times => "At sparsity 0.9 it needs 1.5 to 4.5 times as many",
            Claim::RatioFalls => "The ratio of sparse to dense steps falls as batches grow",
            Claim::CriticalBatchSize => "The critical batch size of a sparse network is no smaller than the dense one's",
            Claim::GoodRegion => "Of a sparse network fewer metaparameters are good",
            Claim::LearningRate => "The best learning rate rises with the batch size",
            Claim::Inside => "The best metaparameters lie inside of the search space, not at its edges",
            Claim::FewerThanSgd => "With large batches Momentum and Nesterov need fewer steps than SGD",
            Claim::BeyondSgd => "Momentum and Nesterov have larger critical batch sizes than SGD",
        }
    }

    /// Where the paper says it.
    pub fn place(self) -> &'static str {
        match self {
            Claim::Linear | Claim::Diminishing | Claim::Maximal | Claim::MoreSteps | Claim::CriticalBatchSize => "section 3.1, figure 1",
            Claim::Times | Claim::RatioFalls => "figure 12",
            Claim::GoodRegion => "figure 5",
            Claim::LearningRate | Claim::Inside => "section 3.2, figure 3",
            Claim::FewerThanSgd | Claim::BeyondSgd => "figure 2",
        }
    }

    /// When it holds, and when it does not. In all other cases it cannot be said.
    pub fn rule(self) -> &'static str {
        match self {
            Claim::Linear => {
                "holds where a measured batch size lies below a 19th of the critical one (local slope of the fit below −0.95) by the whole interval, and \
                 the exponent a of K* ≈ c1/B^a + c2, fitted with c1 and c2, lies between 0.8 and 1.25 by its whole interval; does not where batch size 2, \
                 the paper's smallest, is measured and lies above it by the whole interval, or the exponent lies outside by its whole interval"
            }
            Claim::Diminishing => {
                "holds where a measured batch size lies between a 19th of the critical one and 19 times it by the whole interval; does not where the \
                 paper's smallest and largest are measured, and all measured ones lie outside by the whole interval"
            }
            Claim::Maximal => {
                "holds where a measured batch size lies above 19 times the critical one (slope above −0.05) by the whole interval; does not where batch \
                 size 16,384, the paper's largest, is measured and lies below it by the whole interval"
            }
            Claim::MoreSteps => {
                "by the ratio of the two fitted curves at each batch size measured at both sparsities: holds where all intervals lie above 1, does not \
                 where one lies below"
            }
            Claim::Times => {
                "by the same ratios: holds where all intervals lie between 1.5 and 4.5, does not where one lies outside as a whole"
            }
            Claim::RatioFalls => {
                "by the slope of log(K* sparse / K* dense) against log B, least squares with Student's t, at three batch sizes or more: holds where its \
                 interval lies below 0, does not where it lies above"
            }
            Claim::CriticalBatchSize => {
                "by the ratio of the two critical batch sizes: holds where its interval lies at 1 or above, does not where it lies below"
            }
            Claim::GoodRegion => {
                "good are trials that reach the goal before the race ends, the shorter one of two; by the geometric mean over batch sizes of good sparse \
                 ones over good dense ones, of cells with as many trials: holds where its interval lies below 1, does not where it lies above; a \
                 race that ends at K* hides them. The paper says this of the learning rates of SGD that reach the goal within its whole step budget"
            }
            Claim::LearningRate => {
                "by the slope of log(best learning rate) against log B, least squares with Student's t, at three batch sizes or more: holds where its \
                 interval lies above 0, does not where it lies below"
            }
            Claim::Inside => {
                "holds where no best trial's searched metaparameter lies within 5 % of an end of its range (in the search's scale), does not where one does"
            }
            Claim::FewerThanSgd => {
                "by the ratio of the fitted curves at the largest batch size measured with both optimizers: holds where its interval lies below 1, does \
                 not where it lies above"
            }
            Claim::BeyondSgd => {
                "by the ratio of the critical batch sizes: holds where its interval lies above 1, does not where it lies below"
            }
        }
    }
}
