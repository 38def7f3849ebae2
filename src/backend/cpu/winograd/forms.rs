//! Winograd's forms in one direction: what K weights and N inputs become at N points, and what products at N points make of M outputs. Each is a
//! matrix (Lavin and Gray, section 4.1); a tile's transform is one form's matrix down the columns, then one's along the rows.

use super::super::simd::Simd;

/// F(M, K) with N = M + K - 1 points.
pub(super) trait Form<const K: usize, const N: usize, const M: usize> {
    /// Points of a kernel's weights.
    fn of_weights<S: Simd>(weights: [S::Vector; K]) -> [S::Vector; N];
    /// Points of a tile's inputs.
    fn of_inputs<S: Simd>(inputs: [S::Vector; N]) -> [S::Vector; N];
    /// A tile's outputs from their points.
    fn outputs<S: Simd>(points: [S::Vector; N]) -> [S::Vector; M];
}

/// The gradients of a form's two factors, by its matrices turned around.
pub(super) trait Backward<const N: usize, const M: usize>: Form<3, N, M> {
    /// Points of the gradients of a tile's outputs.
    fn of_gradients<S: Simd>(gradients: [S::Vector; M]) -> [S::Vector; N];
    /// Gradients of a kernel's weights from their points.
    fn weight_gradients<S: Simd>(points: [S::Vector; N]) -> [S::Vector; 3];
}

/// F(2, 3) at 0, 1, −1 and ∞, with the last point's sign turned in both of a pair, so that nothing is negated.
pub(super) struct TwoOfThree;

/// F(4, 3) at the points of [`TwoOfFive`].
pub(super) struct FourOfThree;

/// F(2, 5) at 0, ±3/2, ±2/3 and ∞: of the points that were tried, those with the least error.
pub(super) struct TwoOfFive;

/// F(4, 5) at 0, ±1, ±2, ±1/2 and ∞.
pub(super) struct FourOfFive;

impl Form<3, 4, 2> for TwoOfThree {
    #[inline(always)]
    fn of_weights<S: Simd>([a, b, c]: [S::Vector; 3]) -> [S::Vector; 4] {
        let (ends, half) = (S::add(a, c), S::splat(0.5));
        [a, S::multiply(half, S::add(ends, b)), S::multiply(half, S::subtract(ends, b)), c]
    }

    #[inline(always)]
    fn of_inputs<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 4] {
        [S::subtract(a, c), S::add(b, c), S::subtract(c, b), S::subtract(d, b)]
    }

    #[inline(always)]
    fn outputs<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 2] {
        [S::add(S::add(a, b), c), S::add(S::subtract(b, c), d)]
    }
}

impl Backward<4, 2> for TwoOfThree {
    #[inline(always)]
    fn of_gradients<S: Simd>([a, b]: [S::Vector; 2]) -> [S::Vector; 4] {
        [a, S::add(a, b), S::subtract(a, b), b]
    }

    #[inline(always)]
    fn weight_gradients<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 3] {
        let half = S::splat(0.5);
        let both = S::multiply(half, S::add(b, c));
        [S::add(a, both), S::multiply(half, S::subtract(b, c)), S::add(both, d)]
    }
}

/// factor · a.
#[inline(always)]
fn multiple<S: Simd>(factor: f32, a: S::Vector) -> S::Vector {
    S::multiply(S::splat(factor), a)
}

/// factor · a + b, rounded once.
#[inline(always)]
fn scaled<S: Simd>(factor: f32, a: S::Vector, b: S::Vector) -> S::Vector {
    S::multiply_add(S::splat(factor), a, b)
}

/// The larger two of the points of [`TwoOfFive`] are plus and minus this, the smaller two its reciprocal.
const FAR: f32 = 3.0 / 2.0;
const NEAR: f32 = 2.0 / 3.0;

impl Form<5, 6, 2> for TwoOfFive {
    /// (Σ pᵏ · weight k) / Π (p − q) over the other points q, at p: even powers and odd ones are shared by p and −p.
    #[inline(always)]
    fn of_weights<S: Simd>([a, b, c, d, e]: [S::Vector; 5]) -> [S::Vector; 6] {
        let far_even = scaled::<S>(81.0 / 130.0, e, scaled::<S>(8.0 / 65.0, a, multiple::<S>(18.0 / 65.0, c)));
        let near_even = scaled::<S>(-81.0 / 130.0, a, scaled::<S>(-8.0 / 65.0, e, multiple::<S>(-18.0 / 65.0, c)));
        let far_odd = scaled::<S>(27.0 / 65.0, d, multiple::<S>(12.0 / 65.0, b));
        let near_odd = scaled::<S>(-27.0 / 65.0, b, multiple::<S>(-12.0 / 65.0, d));
        [a, S::add(far_even, far_odd), S::subtract(far_even, far_odd), S::add(near_even, near_odd), S::subtract(near_even, near_odd), e]
    }

    /// The coefficients of Π (x − q) over the other points q.
    #[inline(always)]
    fn of_inputs<S: Simd>([a, b, c, d, e, f]: [S::Vector; 6]) -> [S::Vector; 6] {
        const BOTH: f32 = 97.0 / 36.0;
        let (far_even, far_odd) = (scaled::<S>(-NEAR * NEAR, c, e), scaled::<S>(-NEAR * NEAR, b, d));
        let (near_even, near_odd) = (scaled::<S>(-FAR * FAR, c, e), scaled::<S>(-FAR * FAR, b, d));
        [
            scaled::<S>(-BOTH, c, S::add(a, e)),
            scaled::<S>(FAR, far_odd, far_even),
            scaled::<S>(-FAR, far_odd, far_even),
            scaled::<S>(NEAR, near_odd, near_even),
            scaled::<S>(-NEAR, near_odd, near_even),
            scaled::<S>(-BOTH, d, S::add(b, f)),
        ]
    }

    #[inline(always)]
    fn outputs<S: Simd>([a, b, c, d, e, f]: [S::Vector; 6]) -> [S::Vector; 2] {
        let odd = scaled::<S>(FAR, S::subtract(b, c), f);
        [S::add(a, S::add(S::add(b, c), S::add(d, e))), scaled::<S>(NEAR, S::subtract(d, e), odd)]
    }
}

/// Squares and cubes of the points of [`FourOfThree`].
const FAR_2: f32 = FAR * FAR;
const NEAR_2: f32 = 4.0 / 9.0;
const FAR_3: f32 = FAR * FAR * FAR;
const NEAR_3: f32 = 8.0 / 27.0;

impl Form<3, 6, 4> for FourOfThree {
    /// The terms are those of [`TwoOfFive`].
    #[inline(always)]
    fn of_weights<S: Simd>([a, b, c]: [S::Vector; 3]) -> [S::Vector; 6] {
        let far_even = scaled::<S>(18.0 / 65.0, c, multiple::<S>(8.0 / 65.0, a));
        let near_even = scaled::<S>(-18.0 / 65.0, c, multiple::<S>(-81.0 / 130.0, a));
        let (far_odd, near_odd) = (multiple::<S>(12.0 / 65.0, b), multiple::<S>(-27.0 / 65.0, b));
        [a, S::add(far_even, far_odd), S::subtract(far_even, far_odd), S::add(near_even, near_odd), S::subtract(near_even, near_odd), c]
    }

    /// The points alone decide what inputs become.
    #[inline(always)]
    fn of_inputs<S: Simd>(inputs: [S::Vector; 6]) -> [S::Vector; 6] {
        TwoOfFive::of_inputs::<S>(inputs)
    }

    #[inline(always)]
    fn outputs<S: Simd>([a, b, c, d, e, f]: [S::Vector; 6]) -> [S::Vector; 4] {
        let (far_even, far_odd) = (S::add(b, c), S::subtract(b, c));
        let (near_even, near_odd) = (S::add(d, e), S::subtract(d, e));
        [
            S::add(a, S::add(far_even, near_even)),
            scaled::<S>(FAR, far_odd, multiple::<S>(NEAR, near_odd)),
            scaled::<S>(FAR_2, far_even, multiple::<S>(NEAR_2, near_even)),
            scaled::<S>(FAR_3, far_odd, scaled::<S>(NEAR_3, near_odd, f)),
        ]
    }
}

impl Backward<6, 4> for FourOfThree {
    #[inline(always)]
    fn of_gradients<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 6] {
        let (far_even, far_odd) = (scaled::<S>(FAR_2, c, a), scaled::<S>(FAR_3, d, multiple::<S>(FAR, b)));
        let (near_even, near_odd) = (scaled::<S>(NEAR_2, c, a), scaled::<S>(NEAR_3, d, multiple::<S>(NEAR, b)));
        [a, S::add(far_even, far_odd), S::subtract(far_even, far_odd), S::add(near_even, near_odd), S::subtract(near_even, near_odd), d]
    }

    #[inline(always)]
    fn weight_gradients<S: Simd>([a, b, c, d, e, f]: [S::Vector; 6]) -> [S::Vector; 3] {
        let (far_even, far_odd) = (S::add(b, c), S::subtract(b, c));
        let (near_even, near_odd) = (S::add(d, e), S::subtract(d, e));
        [
            scaled::<S>(8.0 / 65.0, far_even, scaled::<S>(-81.0 / 130.0, near_even, a)),
            scaled::<S>(12.0 / 65.0, far_odd, multiple::<S>(-27.0 / 65.0, near_odd)),
            scaled::<S>(18.0 / 65.0, S::subtract(far_even, near_even), f),
        ]
    }
}

impl Form<5, 8, 4> for FourOfFive {
    /// The formula is that of [`TwoOfFive`], at the points of this form.
    #[inline(always)]
    fn of_weights<S: Simd>([a, b, c, d, e]: [S::Vector; 5]) -> [S::Vector; 8] {
        let one_even = multiple::<S>(-2.0 / 9.0, S::add(S::add(a, c), e));
        let two_even = scaled::<S>(8.0 / 45.0, e, scaled::<S>(2.0 / 45.0, c, multiple::<S>(1.0 / 90.0, a)));
        let half_even = scaled::<S>(2.0 / 45.0, e, scaled::<S>(8.0 / 45.0, c, multiple::<S>(32.0 / 45.0, a)));
        let one_odd = multiple::<S>(-2.0 / 9.0, S::add(b, d));
        let two_odd = scaled::<S>(4.0 / 45.0, d, multiple::<S>(1.0 / 45.0, b));
        let half_odd = scaled::<S>(4.0 / 45.0, d, multiple::<S>(16.0 / 45.0, b));
        [
            a,
            S::add(one_even, one_odd),
            S::subtract(one_even, one_odd),
            S::add(two_even, two_odd),
            S::subtract(two_even, two_odd),
            S::add(half_even, half_odd),
            S::subtract(half_even, half_odd),
            e,
        ]
    }

    /// The formula is that of [`TwoOfFive`], at the points of this form, with the first row's sign turned.
    #[inline(always)]
    fn of_inputs<S: Simd>([a, b, c, d, e, f, g, h]: [S::Vector; 8]) -> [S::Vector; 8] {
        let (one_even, one_odd) = (scaled::<S>(-17.0 / 4.0, e, S::add(c, g)), scaled::<S>(-17.0 / 4.0, d, S::add(b, f)));
        let two_even = scaled::<S>(1.0 / 4.0, c, scaled::<S>(-5.0 / 4.0, e, g));
        let two_odd = scaled::<S>(1.0 / 4.0, b, scaled::<S>(-5.0 / 4.0, d, f));
        let half_even = scaled::<S>(4.0, c, scaled::<S>(-5.0, e, g));
        let half_odd = scaled::<S>(4.0, b, scaled::<S>(-5.0, d, f));
        [
            scaled::<S>(21.0 / 4.0, S::subtract(e, c), S::subtract(a, g)),
            S::add(one_even, one_odd),
            S::subtract(one_even, one_odd),
            scaled::<S>(2.0, two_odd, two_even),
            scaled::<S>(-2.0, two_odd, two_even),
            scaled::<S>(1.0 / 2.0, half_odd, half_even),
            scaled::<S>(-1.0 / 2.0, half_odd, half_even),
            scaled::<S>(21.0 / 4.0, S::subtract(d, f), S::subtract(h, b)),
        ]
    }

    #[inline(always)]
    fn outputs<S: Simd>([a, b, c, d, e, f, g, h]: [S::Vector; 8]) -> [S::Vector; 4] {
        let (one_even, two_even, half_even) = (S::add(b, c), S::add(d, e), S::add(f, g));
        let (one_odd, two_odd, half_odd) = (S::subtract(b, c), S::subtract(d, e), S::subtract(f, g));
        [
            S::add(S::add(a, one_even), S::add(two_even, half_even)),
            scaled::<S>(2.0, two_odd, scaled::<S>(1.0 / 2.0, half_odd, one_odd)),
            scaled::<S>(4.0, two_even, scaled::<S>(1.0 / 4.0, half_even, one_even)),
            scaled::<S>(8.0, two_odd, scaled::<S>(1.0 / 8.0, half_odd, S::add(one_odd, h))),
        ]
    }
}
