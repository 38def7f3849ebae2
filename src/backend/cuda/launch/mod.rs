//! The kernels as Rust calls them: `declare.rs` declares a kernel with its parameters, its grid and its block. The files beside it declare those of
//! `kernels/` that belong to no kind of layer, or to several; those that are made for each convolution of a network are in `layers.rs`. A kind of
//! layer declares its own (`layer/`).
//!
//! A wrong number, order or type of arguments does not compile. A test (`program/tests.rs`) compares every declaration with the kernel's own in
//! `kernels/`, and [`assertions`] makes the kernels' compiler compare the structs that both sides share.

mod convolution;
mod declare;
mod gather;
mod im2col;
mod layers;
mod update;

pub(super) use convolution::{ConvolutionShape, OutputMap};
pub(super) use declare::{Declaration, DeviceType, ELEMENTWISE, Kernels, assertions, blocks, kernels, shared_structs};
pub(super) use gather::MapShape;
pub(super) use layers::{LayerKernels, convolution_source, dense_source, goes_through_relu, is_unpooled, surrounds_products, uses_tiles};
pub(super) use update::{Parts, StepNumbers, UpdateRule};

use std::sync::Arc;

use cudarc::driver::{CudaModule, CudaStream};

use super::check::Doing;
use crate::Result;

/// The kernels that are declared here.
pub(super) const KERNELS: [&[Declaration]; 4] = [layers::KERNELS, gather::KERNELS, im2col::KERNELS, update::KERNELS];

impl Kernels {
    /// Finds the declared kernels in a module that was compiled from `source`; they run in `stream`.
    pub fn new(
        module: &Arc<CudaModule>,
        stream: Arc<CudaStream>,
        source: &str,
        declared: impl Iterator<Item = &'static Declaration>,
    ) -> Result<Kernels> {
        let of = |symbol: String| {
            let function = module.load_function(&symbol).doing(&format!("have the kernel {symbol}"))?;
            Ok((symbol, function))
        };
        let symbols = declared.flat_map(|declaration| declaration.symbols_in(source));
        Ok(Kernels { stream, functions: symbols.map(of).collect::<Result<_>>()? })
    }
}

/// C++ that does not compile unless the structs that are declared here are laid out the same there.
pub(super) fn layouts() -> String {
    [convolution::layouts(), gather::layouts(), update::layouts()].concat()
}

/// C++ to stand behind the kernels: it does not compile unless the constants that both sides have are the same on both.
pub(super) fn constant_assertions() -> String {
    let constants = [
        ("GATHERED", gather::GATHERED),
        ("PLAIN_ROWS", layers::Tile::PLAIN.height()),
        ("PLAIN_COLUMNS", layers::Tile::PLAIN.width()),
        ("BIAS_COLUMNS", im2col::BIAS_COLUMNS),
        ("BIAS_ROWS", im2col::BIAS_ROWS),
        ("MOST_PARTS", update::MOST_PARTS),
        ("SGD", update::SGD as usize),
        ("MOMENTUM", update::MOMENTUM as usize),
        ("NESTEROV", update::NESTEROV as usize),
        ("ADAM", update::ADAM as usize),
    ];
    constants.map(|(name, value)| format!("static_assert({name} == {value}, \"{name} is not as in src/backend/cuda/launch\");\n")).concat()
}
