//! The arithmetic rate of a core, to hold measurements against.

use std::hint::black_box;

use super::level::{Kernel, Level};
use super::simd::Simd;

struct MultiplyAdds(u64);

impl Kernel for MultiplyAdds {
    type Output = f32;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        unsafe {
            // Hidden from the compiler, which would otherwise see that all chains are one.
            let start: [f32; 24] = black_box(std::array::from_fn(|i| i as f32));
            let mut sums = start.map(|value| S::splat(value));
            let (a, b) = (S::splat(black_box(0.999)), S::splat(black_box(1e-3)));
            for _ in 0..self.0 {
                for sum in &mut sums {
                    *sum = S::multiply_add(*sum, a, b);
                }
            }
            let mut out = [0.0; 16];
            let mut total = 0.0;
            for sum in sums {
                S::store(out.as_mut_ptr(), sum);
                total += out[0];
            }
            total
        }
    }
}

/// Does `rounds` times 24 independent vector multiply-adds in registers, and returns a number that depends on all of them. One vector has
/// [`Level::width`] floats.
pub fn multiply_adds(level: Level, rounds: u64) -> f32 {
    level.run(MultiplyAdds(rounds))
}
