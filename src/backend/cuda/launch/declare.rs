//! How kernels, and the structs that they take, are declared: each once, for the launch, for the check against `kernels/` and for the compiler.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, result};

use crate::Result;
use crate::backend::cuda::check::Doing;
use crate::backend::cuda::gpu::Stored;
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};

/// The kernels of one GPU. [`kernels`] declares a kernel as a method that starts it in the GPU's stream.
pub struct Kernels {
    pub(super) stream: Arc<CudaStream>,
    /// By their names in `kernels/`.
    pub(super) functions: HashMap<String, CudaFunction>,
}

/// A kernel as Rust calls it.
pub struct Declaration {
    /// The kernels that a method starts one of, by their names in `kernels/`; they take the same parameters.
    pub symbols: &'static [&'static str],
    /// Whether there is one for each layer, its name followed by `_` and the layer's number.
    pub per_layer: bool,
    /// Threads of a block; none where they depend on the layer.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with kernels/ by a test"))]
    pub threads: Option<usize>,
    /// Names and types of the parameters, the types as C++ writes them.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with kernels/ by a test"))]
    pub parameters: fn() -> Vec<(&'static str, String)>,
}

impl Declaration {
    /// The kernels' names in the source for a network.
    pub fn symbols_in(&self, source: &str) -> Vec<String> {
        if !self.per_layer {
            return self.symbols.iter().map(|&symbol| symbol.to_owned()).collect();
        }
        let starts = self.symbols.iter().flat_map(|symbol| {
            let start = format!(" {symbol}_");
            source.lines().filter(|line| line.starts_with("extern \"C\" __global__")).filter_map(move |line| {
                let number: String = line.split_once(&start)?.1.chars().take_while(char::is_ascii_digit).collect();
                Some(format!("{symbol}_{number}"))
            })
        });
        starts.collect()
    }
}

/// Blocks of an elementwise kernel at most: each thread then takes more elements.
const MOST_BLOCKS: usize = 1 << 14;

/// Threads of a block of the elementwise kernels.
pub const ELEMENTWISE: usize = 256;

/// Blocks of an elementwise kernel for so many elements.
pub fn blocks(elements: usize) -> usize {
    elements.div_ceil(ELEMENTWISE).min(MOST_BLOCKS)
}

/// A type that a kernel's parameter may have.
///
/// # Safety
/// The type has the layout of the C++ type of that name.
pub unsafe trait DeviceType: Copy {
    /// The type as C++ writes it.
    fn name() -> String;
}

macro_rules! device_types {
    ($($rust:ty = $name:literal),+) => {
        $(
            // SAFETY: C++ has a number of the same kind and size by this name (`kernels/common.cuh` for those that it does not define).
            unsafe impl DeviceType for $rust {
                fn name() -> String {
                    $name.into()
                }
            }
        )+
    };
}

device_types!(u8 = "u8", u16 = "u16", i32 = "int", u32 = "u32", i64 = "i64", u64 = "u64", f32 = "float", f64 = "double", Stored = "Stored");

// SAFETY: arrays of both languages have their elements side by side.
unsafe impl<T: DeviceType, const N: usize> DeviceType for [T; N] {
    fn name() -> String {
        format!("{}[{N}]", T::name())
    }
}

// SAFETY: a transparent wrapper of an address.
unsafe impl<T: DeviceType> DeviceType for ConstPointer<'_, T> {
    fn name() -> String {
        format!("const {}*", T::name())
    }
}

// SAFETY: a transparent wrapper of an address.
unsafe impl<T: DeviceType> DeviceType for MutPointer<'_, T> {
    fn name() -> String {
        format!("{}*", T::name())
    }
}

// SAFETY: a transparent wrapper of an address that is not 0, for which `None` is 0.
unsafe impl<T: DeviceType> DeviceType for Option<ConstPointer<'_, T>> {
    fn name() -> String {
        ConstPointer::<T>::name()
    }
}

// SAFETY: a transparent wrapper of an address that is not 0, for which `None` is 0.
unsafe impl<T: DeviceType> DeviceType for Option<MutPointer<'_, T>> {
    fn name() -> String {
        MutPointer::<T>::name()
    }
}

impl Kernels {
    /// Starts a kernel.
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel takes, in its order, and the pointers among these to what it may touch.
    pub(in crate::backend::cuda) unsafe fn launch(
        &self,
        symbol: &str,
        blocks: [usize; 3],
        threads: usize,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let grid = (blocks[0].clamp(1, 1 << 30) as u32, blocks[1] as u32, blocks[2] as u32);
        let function = self.functions[symbol].cu_function();
        self.stream.context().bind_to_thread().doing("be this thread's")?;
        // SAFETY: the function is this GPU's, in whose context the stream is; the caller vouches for the arguments.
        unsafe { result::launch_kernel(function, grid, (threads as u32, 1, 1), 0, self.stream.cu_stream(), arguments) }
            .doing("start a kernel")
    }
}

/// Declares kernels as methods of [`Kernels`], and lists them as `KERNELS`:
///
/// ```text
/// fn method(parameter of the kernel: its type, …)[number that the grid needs beside these: its type, …] = [symbols][which one];
/// blocks: of the grid's three dimensions; threads: of a block;
/// ```
macro_rules! kernels {
    ($(
        $(#[$documentation:meta])*
        fn $method:ident($($parameter:ident: $type:ty),+)[$($number:ident: $number_type:ty),*] = [$($symbol:literal),+][$choice:expr];
        blocks: $blocks:expr; threads: $threads:expr;
    )+) => {
        impl $crate::backend::cuda::launch::Kernels {
            $(
                $(#[$documentation])*
                ///
                /// # Safety
                /// Pointers reach as many values as the kernel's comment in `kernels/` says for these numbers; so do the indices that lie there.
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $method(&self, $($number: $number_type,)* $($parameter: $type),+) -> $crate::Result<()> {
                    let symbol: &str = [$($symbol),+][$choice];
                    // SAFETY: the types are those of the kernel's parameters: a test compares them, and `DeviceType` vouches for their layouts.
                    unsafe { self.launch(symbol, $blocks, $threads, &mut [$(std::ptr::from_ref(&$parameter).cast_mut().cast()),+]) }
                }
            )+
        }

        /// The kernels of this file.
        pub const KERNELS: &[$crate::backend::cuda::launch::Declaration] = &[
            $($crate::backend::cuda::launch::Declaration {
                symbols: &[$($symbol),+],
                per_layer: false,
                threads: Some($threads),
                parameters: || vec![$((stringify!($parameter), <$type as $crate::backend::cuda::launch::DeviceType>::name())),+],
            }),+
        ];
    };
}
pub(in crate::backend::cuda) use kernels;

/// Declares kernels of which there is one for each layer, as methods of [`Kernels`], and lists them as `KERNELS`:
///
/// ```text
/// fn method(parameter of the kernel: its type, …) of shape: [names, before the layer's number], the name of the one to start and its tile, the name
/// where it is plain;
/// blocks: |tile, lanes| of the grid's three dimensions;
/// ```
macro_rules! layer_kernels {
    ($(
        $(#[$documentation:meta])*
        fn $method:ident($($parameter:ident: $type:ty),+) of $shape:ident: [$($symbol:literal),+], $choice:expr, $plain:literal;
        blocks: $blocks:expr;
    )+) => {
        impl $crate::backend::cuda::launch::Kernels {
            $(
                $(#[$documentation])*
                ///
                /// # Safety
                /// `layer` is the number of a layer of this shape in the network that the kernels are made for. Pointers reach as many values as the
                /// kernel's comment in `kernels/` says for these numbers; so do the indices that lie there.
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $method(
                    &self,
                    lanes: usize,
                    layer: usize,
                    kernels: &LayerKernels,
                    $($parameter: $type),+
                ) -> $crate::Result<()> {
                    let $shape = &kernels.shape;
                    let (symbol, tile) = if kernels.tiles { $choice } else { ($plain, Tile::PLAIN) };
                    let blocks = $blocks(tile, lanes);
                    let arguments = &mut [$(std::ptr::from_ref(&$parameter).cast_mut().cast()),+];
                    // SAFETY: the types are those of the kernel's parameters: a test compares them, and `DeviceType` vouches for their layouts.
                    unsafe { self.launch(&format!("{symbol}_{layer}"), blocks, tile.threads(), arguments) }
                }
            )+
        }

        /// The kernels of this file.
        pub const KERNELS: &[$crate::backend::cuda::launch::Declaration] = &[
            $($crate::backend::cuda::launch::Declaration {
                symbols: &[$($symbol),+, $plain],
                per_layer: true,
                threads: None,
                parameters: || vec![$((stringify!($parameter), <$type as $crate::backend::cuda::launch::DeviceType>::name())),+],
            }),+
        ];
    };
}
pub(super) use layer_kernels;

/// C++ that does not compile unless the struct of this name is laid out as Rust lays it out: fields of the same names and types in the same
/// order, and as many bytes. (NVRTC has no `offsetof`.)
pub fn assertions(name: &str, size: usize, fields: &[(&str, String)]) -> String {
    let differs = "is not as in src/backend/cuda";
    let types = fields.iter().map(|(field, of)| {
        format!("static_assert(Same<decltype({name}::{field}), {of}>::value, \"the type of {name}::{field} {differs}\");\n")
    });
    let pairs = fields.windows(2).map(|pair| format!("(const void*)&some.{} < (const void*)&some.{}", pair[0].0, pair[1].0));
    let in_order = pairs.collect::<Vec<_>>().join(" && ");
    let layout = format!(
        "__device__ constexpr bool in_order(const {name}& some) {{ return {in_order}; }}\n\
         static_assert(in_order({name}{{}}), \"the order of fields in {name} {differs}\");\n\
         static_assert(sizeof({name}) == {size}, \"the size of {name} {differs}\");\n"
    );
    types.chain([layout]).collect()
}

/// Declares structs that Rust and CUDA C++ share, with the same fields in the same order, and says by `layouts()` how they lie.
macro_rules! shared_structs {
    ($(
        $(#[$documentation:meta])*
        pub struct $name:ident { $($(#[$field_documentation:meta])* pub $field:ident: $type:ty),+ $(,)? }
    )+) => {
        $(
            $(#[$documentation])*
            #[repr(C)]
            #[derive(Debug, Clone, Copy)]
            pub struct $name { $($(#[$field_documentation])* pub $field: $type),+ }

            impl $name {
                /// Names and values of the fields.
                #[allow(dead_code)]
                pub fn fields(&self) -> Vec<(&'static str, String)> {
                    vec![$((stringify!($field), format!("{:?}", self.$field))),+]
                }
            }

            // SAFETY: `layouts` has the kernels' compiler check that the C++ struct is laid out the same.
            unsafe impl $crate::backend::cuda::launch::DeviceType for $name {
                fn name() -> String {
                    stringify!($name).into()
                }
            }

            // SAFETY: every field is a number or an array of numbers: the other device types, addresses, have no `Debug`, which is derived here.
            unsafe impl cudarc::driver::DeviceRepr for $name {}

            // SAFETY: every field is a number or an array of numbers, as said above, in `repr(C)`.
            unsafe impl $crate::backend::cuda::gpu::AnyBits for $name {}
        )+

        /// C++ that does not compile unless this file's structs are laid out the same there.
        pub fn layouts() -> String {
            use $crate::backend::cuda::launch::{DeviceType, assertions};
            [$(assertions(stringify!($name), size_of::<$name>(), &[$((stringify!($field), <$type as DeviceType>::name())),+])),+].concat()
        }
    };
}
pub(in crate::backend::cuda) use shared_structs;
