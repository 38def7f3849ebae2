//! The claims of the paper and their rules in words.

/// Declares the claims: a sentence without a full stop, where the paper says it, when it holds and when it does not, and what a sceptic may say
/// against a verdict.
macro_rules! claims {
    ($(#[doc = $words:literal] $name:ident: $place:literal, $rule:literal, $objection:literal;)+) => {
        /// A claim of the paper, in the order of the page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Claim {
            $(#[doc = $words] $name,)+
        }

        impl Claim {
            /// Every claim.
            pub const ALL: &[Claim] = &[$(Claim::$name),+];

            /// The claim in a sentence, without a full stop.
            pub fn words(self) -> &'static str {
                match self { $(Claim::$name => $words.trim()),+ }
            }

            /// Where the paper says it.
            pub fn place(self) -> &'static str {
                match self { $(Claim::$name => $place),+ }
            }

            /// The rule by which the claim holds, and by which it does not. In all other cases it cannot be said.
            pub fn rule(self) -> &'static str {
                match self { $(Claim::$name => $rule),+ }
            }

            /// The objection that a sceptic has to a verdict by the rule, without a full stop.
            pub fn objection(self) -> &'static str {
                match self { $(Claim::$name => $objection),+ }
            }
        }
    };
}

claims! {
    /// At small batch sizes scaling is linear: twice the batch, half the steps
    Linear: "section 3.1, figure 1",
        "holds where a measured batch size lies below a 19th of the critical one (local slope of the fit below −0.95) by the whole interval, and \
         the exponent a of K* ≈ c1/B^a + c2, fitted with c1 and c2, lies between 0.8 and 1.25 by its whole interval; does not hold where batch size \
         2, the paper's smallest, is measured and lies above it by the whole interval, or the exponent lies outside by its whole interval",
        "at small batch sizes few cells decide, and a cell that is tuned worse than its neighbours bends the curve as another law would";
    /// At larger ones returns diminish
    Diminishing: "section 3.1, figure 1",
        "holds where a measured batch size lies between a 19th of the critical one and 19 times it by the whole interval, and log K* against log \
         B is curved upwards, by the whole interval of its quadratic term: a power law, whose returns are the same everywhere, is not; does not \
         hold where the paper's smallest and largest are measured, and all measured ones lie outside by the whole interval",
        "a search whose points suit small batches better than large ones bends the curve in the same way";
    /// At the largest ones data parallelism is maximal: more examples save no steps
    Maximal: "section 3.1, figure 1",
        "holds where a measured batch size lies above 19 times the critical one (slope above −0.05) by the whole interval; does not hold where batch \
         size 16,384, the paper's largest, is measured and lies below it by the whole interval",
        "the floor is that of the points searched: higher learning rates, a warm-up or another optimizer may lower it";
    /// A sparse network needs more steps than the dense one at every batch size
    MoreSteps: "section 3.1, figure 1",
        "by the ratio of the two fitted curves at each batch size measured at both sparsities, at least three: the claim holds where the \
         intervals of all ratios lie above 1, and does not hold where the 97.5 % interval of the ratio at the smallest or at the largest batch \
         size lies below 1 (97.5 %, since there are two such ratios)",
        "ranges of metaparameters are the same at all sparsities and may suit the dense network better, and the weights are removed by one method: \
         another choice of as many weights may cost fewer steps";
    /// At sparsity 0.9 it needs 1.5 to 4.5 times as many
    Times: "figure 12",
        "by the same ratios: holds where all intervals lie between 1.5 and 4.5, does not hold where one of the two at the ends lies outside, by an \
         interval of 97.5 %",
        "the ratio depends on the goal error: it has no limit as the goal nears the least error that the sparse network can reach";
    /// At sparsity 0.9 it needs 2 to 4 times as many
    TwoToFour: "section 3.1",
        "as the claim before, with 2 and 4",
        "as for the claim before";
    /// The ratio of sparse to dense steps falls as batches grow
    RatioFalls: "figure 12",
        "by the exponent e of the ratio ∝ B^e, a line through the logarithms of the ratios of all cells measured at both sparsities, at least \
         three, whatever the law of the steps: holds where its interval lies below 0, does not hold where it lies above",
        "where trainings of the sparse network fail at large batch sizes, means depend on how many steps these are taken to need; the answer has \
         the exponent by medians too";
    /// The critical batch size of a sparse network is no smaller than the dense one's
    CriticalBatchSize: "section 3.1, figure 1",
        "by the ratio of the two critical batch sizes, whose cells share their points and seeds: holds where its interval lies above 1, does not \
         hold where it lies below",
        "it rests on the law c1/B + c2 at both sparsities; the tables of fits say whether the means lie near it, and what other laws give";
    /// The critical batch size at sparsity 0.9 is 4 times the dense one's, 2^11 against 2^9
    FourTimes: "figure 1",
        "by the same ratio, of studies with Momentum: holds where its interval lies between 2 and 8, a power of two about 4, does not hold where it \
         lies outside as a whole. The paper means the batch sizes at which curves divided by their K* at the first batch size leave the line; \
         the ratio of c1/c2 is the same by the law",
        "batch sizes are powers of two, so that a batch size at which a curve leaves a line is known to a factor of two at best, and a ratio of \
         two of them to a factor of four";
    /// Of a sparse network fewer metaparameters are good
    GoodRegion: "figure 5",
        "a trial is good where it reaches the goal within the race's factor times K* (of two races the smaller factor); the rule takes the ratio of \
         the sparse cell's good trials to the dense cell's, as a geometric mean over batch sizes, where all of these cells have equally many \
         trials: the claim holds where the interval of that mean lies below 1, and does not hold where the interval lies above 1; a race that \
         ends at K* hides the other good trials. The paper says this of the learning rates of SGD that reach the goal within its whole \
         step budget",
        "how large a share is good depends on the ranges of the search, which are the same at all sparsities, and on the race's factor";
    /// At larger batch sizes more metaparameters are good
    RegionGrows: "section 3.2",
        "by the slope of log(good trials) against log B, least squares with Student's t and no less than the counts themselves scatter, at three \
         batch sizes or more with as many trials: holds where its interval lies above 0, does not hold where it lies below. The paper counts trials \
         that reach the goal within its whole step budget",
        "a race ends trials that would have reached the goal later, and how many these are changes with the batch size";
    /// The best learning rate rises with the batch size
    LearningRate: "section 3.2, figure 3",
        "by the slope of log(best learning rate) against log B, least squares with Student's t, at three batch sizes or more: holds where its \
         interval lies above 0, does not hold where it lies below",
        "the best of many points is partly luck: points with other learning rates may be as good within the scatter of seeds";
    /// The best metaparameters lie inside of the search space, not at its edges
    Inside: "section 3.2, figure 3",
        "at an edge are points with a searched metaparameter within 5 % of an end of its range (in the search's scale); best are those of a \
         cell's trials with K*, each point counted once: holds where fewer of them lie at an edge than chance would put there, by the share of \
         all drawn points, in 95 of 100 cases, does not hold where more do",
        "a best point inside of the ranges does not show that a better one does not lie outside of them";
    /// With large batches Momentum and Nesterov need fewer steps than SGD
    FewerThanSgd: "figure 2",
        "by the ratio of the curves fitted to the batch sizes measured with both optimizers, at the largest of these: holds where its interval \
         lies below 1, does not hold where it lies above",
        "with momentum a learning rate moves weights farther, so that the same range of learning rates need not suit both optimizers";
    /// Momentum and Nesterov have larger critical batch sizes than SGD
    BeyondSgd: "figure 2",
        "by the ratio of their critical batch sizes: holds where its interval lies above 1, does not hold where it lies below",
        "it rests on the law c1/B + c2 for both optimizers, over the batch sizes measured with both";
}

/// The smallest and the largest batch size of the paper.
pub const PAPERS_BATCH_SIZES: (u32, u32) = (2, 16_384);

/// The sparsities of the paper.
pub const PAPERS_SPARSITIES: [f64; 4] = [0.0, 0.5, 0.7, 0.9];

/// The batch sizes of the paper: the powers of two from the smallest to the largest.
pub fn papers_batch_sizes() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(PAPERS_BATCH_SIZES.0), |size| Some(2 * size)).take_while(|size| *size <= PAPERS_BATCH_SIZES.1)
}

/// The sparsity of which the paper says numbers.
pub const SPARSEST: f64 = 0.9;

/// The least and the largest ratio of steps in the paper's figure 12.
pub const PAPERS_RATIOS: (f64, f64) = (1.5, 4.5);

/// The least and the largest ratio of steps that the paper's section 3.1 says.
pub const TWO_TO_FOUR: (f64, f64) = (2.0, 4.0);

/// Ratios of critical batch sizes that are called 4: within a factor of two, as the batch sizes are powers of two.
pub const ABOUT_FOUR: (f64, f64) = (2.0, 8.0);
