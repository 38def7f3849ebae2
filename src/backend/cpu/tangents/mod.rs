//! Products of the loss's Hessian with a vector of parameters, by forward-over-reverse differentiation (Pearlmutter, "Fast Exact Multiplication by
//! the Hessian", 1994): each value of the forward and of the backward pass is carried with its derivative along the vector. ReLU and the maximum pass
//! the derivative of what they let through, as automatic differentiation does, so the product is exact but for rounding.
//!
//! GraSP asks for one such product a seed. Convolutions are computed by training's direct kernels without a pool; plain loops do the rest.

mod convolution;
mod kernels;
mod logits;
mod maps;
mod pair;
mod product;

pub(super) use product::{Along, Tangents};
