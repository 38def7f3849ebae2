//! The arithmetic rate of a core, to hold measurements against.

use std::hint::black_box;
use std::time::Instant;

use super::simd::{Kernel, Simd};
use super::vector_unit::VectorUnit;

/// Chains that hide the latency of a multiply-add on every processor there is.
const CHAINS: usize = 24;

/// Multiply-adds of every chain so many times, and the place of their FLOP.
struct MultiplyAdds<'a>(u64, &'a mut f64);

impl Kernel for MultiplyAdds<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        // Hidden from the compiler, which would otherwise see that all chains are one.
        let start: [f32; CHAINS] = black_box(std::array::from_fn(|i| i as f32));
        let mut sums = start.map(|value| S::splat(value));
        let (a, b) = (S::splat(black_box(0.999)), S::splat(black_box(1e-3)));
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = S::multiply_add(*sum, a, b);
            }
        }
        let mut out = [0.0; 16];
        for sum in sums {
            // SAFETY: `out` has the floats of the widest vector.
            unsafe { S::store(out.as_mut_ptr(), sum) };
            black_box(&out);
        }
        *self.1 = 2.0 * (self.0 as usize * CHAINS * S::WIDTH) as f64;
    }
}

/// FLOP a second of one core when it does nothing but multiply-adds in registers: the best of a few runs of a millisecond or so.
pub fn peak_flop(unit: VectorUnit) -> f64 {
    let once = || {
        let (clock, mut flop) = (Instant::now(), 0.0);
        unit.run(MultiplyAdds(200_000, &mut flop));
        flop / clock.elapsed().as_secs_f64()
    };
    (0..20).map(|_| once()).fold(0.0, f64::max)
}
