//! The kernels as Rust calls them: for each file of `kernels/` one that declares its kernels with their parameters, and computes their grids; those
//! that are made for each layer of a network are in `layers`.
//!
//! A wrong number, order or type of arguments does not compile. A test below compares every declaration with the kernel's own in `kernels/`,
//! and [`layout_assertions`] makes the kernels' compiler compare the structs that both sides share.

mod convolution;
mod declare;
mod gather;
mod head;
mod im2col;
mod layers;
pub(super) mod plain;
#[cfg(test)]
mod tests;
mod update;

pub(super) use convolution::{ConvolutionShape, OutputMap};
pub(super) use declare::{Declaration, DeviceType, ELEMENTWISE, Kernels, Layout};
pub(super) use gather::ImageShape;
pub(super) use layers::{LayerKernels, goes_through_relu, is_unpooled, source as layer_source, surrounds_products, uses_tiles};
pub(super) use update::{Parts, StepNumbers, UpdateRule};

use std::sync::Arc;

use cudarc::driver::{CudaModule, CudaStream};

use super::check::Doing;
use crate::Result;
use declare::{blocks, kernels, shared_structs};

/// All kernels.
fn declarations() -> impl Iterator<Item = &'static Declaration> {
    [layers::KERNELS, gather::KERNELS, head::KERNELS, im2col::KERNELS, plain::KERNELS, update::KERNELS].into_iter().flatten()
}

impl Kernels {
    /// Kernels of a module compiled for a network, to run in that stream.
    pub fn new(module: &Arc<CudaModule>, stream: Arc<CudaStream>, source: &str) -> Result<Kernels> {
        let of = |symbol: String| {
            let function = module.load_function(&symbol).doing(&format!("have the kernel {symbol}"))?;
            Ok((symbol, function))
        };
        let symbols = declarations().flat_map(|declaration| declaration.symbols_in(source));
        Ok(Kernels { stream, functions: symbols.map(of).collect::<Result<_>>()? })
    }
}

/// C++ to stand behind the kernels: it does not compile unless structs and constants that both sides have are the same on both.
pub(super) fn layout_assertions() -> String {
    let same = "template <typename A, typename B> struct Same { enum { value = 0 }; };\n\
                template <typename A> struct Same<A, A> { enum { value = 1 }; };\n";
    let layouts = [convolution::layouts(), gather::layouts(), plain::layouts(), update::layouts()];
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
    let constants =
        constants.map(|(name, value)| format!("static_assert({name} == {value}, \"{name} is not as in src/backend/cuda/launch\");\n"));
    let layouts: String = layouts.iter().flatten().map(Layout::assertions).collect();
    format!("{same}{layouts}{}", constants.concat())
}
