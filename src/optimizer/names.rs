//! The names of optimizers and learning-rate schedules.

use crate::config::names::names;

names! {
    /// The optimizers: those of the paper, and Adam.
    OptimizerName {
        /// Stochastic gradient descent: w ← w − η g.
        Sgd = "sgd",
        /// Stochastic gradient descent with momentum: v ← m v + g; w ← w − η v.
        Momentum = "momentum",
        /// Stochastic gradient descent with Nesterov's momentum: v ← m v + g; w ← w − η (g + m v).
        Nesterov = "nesterov",
        /// Adam (Kingma & Ba, ICLR 2015): a ← β1 a + (1 − β1) g; s ← β2 s + (1 − β2) g²; w ← w − η â / (√ŝ + ε), where â = a / (1 − β1^t) and
        /// ŝ = s / (1 − β2^t).
        Adam = "adam",
        /// Adam whose weight decay is no part of the gradient (Loshchilov & Hutter, ICLR 2019, as PyTorch has it): w ← w − η λ w before Adam's
        /// update.
        AdamW = "adamw",
    }
}

impl OptimizerName {
    /// Numbers that it keeps for each parameter that it trains, besides the parameter.
    pub fn kept_numbers(self) -> usize {
        match self {
            OptimizerName::Sgd => 0,
            OptimizerName::Momentum | OptimizerName::Nesterov => 1,
            OptimizerName::Adam | OptimizerName::AdamW => 2,
        }
    }

    /// Whether weight decay is no part of its gradient.
    pub fn decays_apart(self) -> bool {
        match self {
            OptimizerName::Sgd | OptimizerName::Momentum | OptimizerName::Nesterov | OptimizerName::Adam => false,
            OptimizerName::AdamW => true,
        }
    }
}
names! {
    /// Learning-rate schedules.
    #[derive(Default)]
    ScheduleName {
        /// The learning rate is η at every step.
        #[default]
        Constant = "constant",
        /// The rate falls on a line and then stays: (η − η_end)(1 − min(k, D)/D) + η_end at step k, where D is `search.decay_steps` and η_end / η is
        /// `search.end_learning_rate_factor`.
        LinearDecay = "linear-decay",
        /// The rate falls along half a wave of a cosine and then stays: (η − η_end)(1 + cos(π min(k, D)/D))/2 + η_end, with D and η_end as for
        /// linear-decay.
        Cosine = "cosine",
        /// The rate falls every S steps: η γ^⌊k/S⌋, where S is `search.decay_every` and γ is `search.decay_factor`.
        StepDecay = "step-decay",
    }
}
