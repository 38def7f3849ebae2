//! Pruned convolutions without a pool: forward pass, data gradient and filter gradient that visit kept weights alone.
//!
//! A map is cut into 4 × 4 sub-maps of equal size, and a vector holds one point of all sixteen, so that a kept weight meets whole vectors that
//! begin at a cache line, whatever the place in the kernel, the stride and the width of the map (`submaps.rs`). `weights.rs` finds, once for a
//! mask, what each weight reads; `products.rs` has the two loops; `layers.rs` has the buffers, and brings maps and gradients from one layout into
//! the other. `layer/sparse.rs` computes a layer, and `worker/passes.rs` knows when a neighbour wants the other layout. Nothing here may depend on
//! how many images, threads or ranks there are: a pass has one image.
//!
//! The order of sums. Forward: bias, then places in the kernel, input channels within each: that of the dense kernels (`convolution`; those of
//! stride 1 compute otherwise, in `winograd.rs`). Data gradient: the positions that an input went to in reading order, output channels within each.
//! Gradients of weights and biases: one sum for each sub-map over its points in reading order, a leaf's images one after the other; then the
//! sub-maps' sums in a tree ([`products::total`]). The order is the same on every vector unit.

mod layers;
pub(super) mod products;
pub(super) mod submaps;
mod weights;

pub(super) use layers::{SparseLayers, TURNS};
pub(super) use weights::{KeptWeights, received};
