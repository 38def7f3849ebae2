//! NEON, the vector unit of every 64-bit Arm processor.

use std::arch::aarch64::*;

use super::simd::{DEAD, Kernel, Simd, arithmetic, at_addresses};

/// NEON. A vector is two registers of four floats each, since kernels lay data out in vectors of 8 or 16.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Eight floats, the first four in the first register.
type Pair = [float32x4_t; 2];

/// An intrinsic of the first registers, and of the second ones.
macro_rules! both {
    ($intrinsic:ident($($argument:expr),*)) => {
        [$intrinsic($($argument[0]),*), $intrinsic($($argument[1]),*)]
    };
}

/// The floats where `mask` is all ones, zero where it is zero.
#[inline(always)]
fn masked(value: float32x4_t, mask: uint32x4_t) -> float32x4_t {
    // SAFETY: the intrinsics want nothing but the unit, which this module is compiled for.
    unsafe { vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(value), mask)) }
}

impl Simd for Neon {
    type Vector = Pair;
    const WIDTH: usize = 8;
    #[inline(never)]
    fn call<K: Kernel>(kernel: K) {
        kernel.run::<Neon>()
    }
    arithmetic! {
        fn splat(value: f32) -> Pair {
            [vdupq_n_f32(value); 2]
        }
        fn add(a: Pair, b: Pair) -> Pair {
            both!(vaddq_f32(a, b))
        }
        fn subtract(a: Pair, b: Pair) -> Pair {
            both!(vsubq_f32(a, b))
        }
        fn multiply(a: Pair, b: Pair) -> Pair {
            both!(vmulq_f32(a, b))
        }
        fn multiply_add(a: Pair, b: Pair, c: Pair) -> Pair {
            // The intrinsic's first argument is the sum.
            both!(vfmaq_f32(c, a, b))
        }
        fn where_positive(value: Pair, other: Pair) -> Pair {
            let positive = both!(vcgtzq_f32(other));
            both!(masked(value, positive))
        }
        fn relu(value: Pair) -> Pair {
            // A comparison with a NaN is false.
            value.map(|value| vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), vclezq_f32(value))))
        }
        fn largest(candidates: [Pair; 4]) -> (Pair, Pair) {
            let half = |half: usize| {
                let (mut best, mut which) = (vdupq_n_f32(0.0), vdupq_n_u32(DEAD.into()));
                for (index, value) in candidates.iter().enumerate() {
                    let ordered = vceqq_f32(best, best);
                    let better = vbicq_u32(ordered, vcleq_f32(value[half], best));
                    best = vbslq_f32(better, value[half], best);
                    which = vbslq_u32(better, vdupq_n_u32(index as u32), which);
                }
                (best, vreinterpretq_f32_u32(which))
            };
            let (first, second) = (half(0), half(1));
            ([first.0, second.0], [first.1, second.1])
        }
        fn not_zero(value: Pair) -> u32 {
            const BITS: [u32; 4] = [1, 2, 4, 8];
            let bits = vld1q_u32(BITS.as_ptr());
            let [first, second] = value.map(|value| vaddvq_u32(vbicq_u32(bits, vceqzq_f32(value))));
            first | second << 4
        }
    }
    at_addresses! {
        fn load(from: *const f32) -> Pair {
            [vld1q_f32(from), vld1q_f32(from.add(4))]
        }
        fn store(to: *mut f32, value: Pair) {
            vst1q_f32(to, value[0]);
            vst1q_f32(to.add(4), value[1]);
        }
        fn keep(value: Pair, mask: *const u32) -> Pair {
            let mask = [vld1q_u32(mask), vld1q_u32(mask.add(4))];
            both!(masked(value, mask))
        }
        fn store_bytes(to: *mut u8, integers: Pair) {
            let [first, second] = integers.map(|integers| vmovn_u32(vreinterpretq_u32_f32(integers)));
            vst1_u8(to, vmovn_u16(vcombine_u16(first, second)));
        }
        fn load_bytes(from: *const u8) -> Pair {
            let words = vmovl_u8(vld1_u8(from));
            [vmovl_u16(vget_low_u16(words)), vmovl_high_u16(words)].map(|integers| vreinterpretq_f32_u32(integers))
        }
        fn select(table: *const f32, integers: Pair) -> Pair {
            let table = vreinterpretq_u8_f32(vld1q_f32(table));
            integers.map(|integers| {
                // The places in the table of the four bytes of each float.
                let two_bits = vandq_u32(vreinterpretq_u32_f32(integers), vdupq_n_u32(3));
                let bytes = vaddq_u32(vmulq_u32(two_bits, vdupq_n_u32(0x0404_0404)), vdupq_n_u32(0x0302_0100));
                vreinterpretq_f32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(bytes)))
            })
        }
        fn transpose(from: impl Fn(usize) -> *const f32, to: *mut f32, to_stride: usize) {
            let pair = |first, second| (vreinterpretq_f64_f32(first), vreinterpretq_f64_f32(second));
            for row in [0, 4] {
                for column in [0, 4] {
                    let [a, b, c, d]: [float32x4_t; 4] = std::array::from_fn(|i| vld1q_f32(from(row + i).add(column)));
                    // Columns 0 and 2 of the first two rows and of the last two, then columns 1 and 3.
                    let (even, odd) = (pair(vtrn1q_f32(a, b), vtrn1q_f32(c, d)), pair(vtrn2q_f32(a, b), vtrn2q_f32(c, d)));
                    let columns = [vtrn1q_f64(even.0, even.1), vtrn1q_f64(odd.0, odd.1), vtrn2q_f64(even.0, even.1), vtrn2q_f64(odd.0, odd.1)];
                    for (j, &floats) in columns.iter().enumerate() {
                        vst1q_f32(to.add((column + j) * to_stride + row), vreinterpretq_f32_f64(floats));
                    }
                }
            }
        }
    }
}
