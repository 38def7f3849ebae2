//! Products of the loss's Hessian with a vector of parameters, by forward-over-reverse differentiation (Pearlmutter, "Fast Exact Multiplication by
//! the Hessian", 1994): each value of the forward and of the backward pass is carried with its derivative along the vector. ReLU and the maximum pass
//! the derivative of what they let through, as automatic differentiation does, so the product is exact but for rounding.
//!
//! GraSP asks for one such product a seed. Its convolutions are the ones that training uses; what follows them is plain loops.

mod convolution;
mod kernels;
mod logits;
mod maps;
mod pair;
mod product;

pub(super) use product::{Along, Tangents};
