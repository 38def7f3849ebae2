//! A GPU: its stream, its memory, and waiting for it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::result::memcpy_dtoh_async;
use cudarc::driver::sys::{
    CUmemPool_attribute as PoolAttribute, CUmemoryPool, CUresult, cuDeviceGetDefaultMemPool, cuMemPoolGetAttribute, cuMemPoolSetAttribute,
    cuStreamQuery,
};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, PinnedHostSlice, ValidAsZeroBits};

use super::check::{Doing, refuse};
use super::pointer::{Word, at};
use crate::Result;
use crate::comm;
use crate::settings::{Execution, Products};

/// Bytes of host memory that downloads pass through.
const LANDING: usize = 1 << 20;

/// A type of which any bits are a value, so that memory of the device that nobody has written is one.
///
/// # Safety
/// A number, an array of numbers, or a `repr(C)` struct of them.
pub(super) unsafe trait AnyBits: DeviceRepr {}

macro_rules! any_bits {
    ($($number:ty),+) => {
        $(
            // SAFETY: a number.
            unsafe impl AnyBits for $number {}
        )+
    };
}

any_bits!(u8, u16, u32, u64, i32, f32, f64, Stored);

/// A number of a map or of a map's gradient, or a weight that a convolution multiplies by, as it lies in the GPU's memory: a float or, with
/// [`Arithmetic::Pairs`], two bfloat16 numbers. `Stored` of `kernels/common.cuh`.
#[derive(Debug, Default, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Stored(u32);

// SAFETY: a number of four bytes, without a pointer.
unsafe impl DeviceRepr for Stored {}

// SAFETY: zeros are the number 0 in both forms.
unsafe impl ValidAsZeroBits for Stored {}

impl Word for Stored {}

impl Stored {
    /// The number, which this says by this arithmetic.
    pub fn number(self, arithmetic: Arithmetic) -> f32 {
        match arithmetic {
            Arithmetic::Pairs => f32::from_bits(self.0 & 0xffff_0000) + f32::from_bits(self.0 << 16),
            Arithmetic::Single | Arithmetic::Split | Arithmetic::Tf32 => f32::from_bits(self.0),
        }
    }
}

/// How the fused kernels multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// In 32 bits.
    Single,
    /// On tensor cores, factors rounded to TF32's 11 significant bits.
    Tf32,
    /// On tensor cores, each factor split into two TF32 numbers: a product is too small by at most 2⁻¹⁹ of itself, where TF32's is off by 2⁻¹⁰.
    Split,
    /// On tensor cores, each factor stored as the sum of two bfloat16 numbers: a product is off by at most 2⁻¹⁵ of itself.
    Pairs,
}

impl Arithmetic {
    /// The option by which NVRTC compiles the kernels for this arithmetic, explained in `kernels/product.cuh`; none in 32 bits.
    pub fn definition(self) -> Option<&'static str> {
        match self {
            Arithmetic::Single => None,
            Arithmetic::Tf32 => Some("-DTENSOR_PRODUCTS=1"),
            Arithmetic::Split => Some("-DTENSOR_PRODUCTS=3"),
            Arithmetic::Pairs => Some("-DPAIRS"),
        }
    }
}

/// A GPU and the one stream that everything runs in, in order.
pub(super) struct Gpu {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    pub name: String,
    /// Compute capability of the GPU.
    pub capability: (i32, i32),
    /// Whether products are TF32's.
    pub tf32: bool,
    /// How the fused kernels multiply in training and evaluations.
    pub arithmetic: Arithmetic,
    /// How long a wait for the GPU may last; 0: for ever.
    pub deadline: Duration,
    /// The driver's pool that memory comes from, where the driver has pools.
    pool: Option<CUmemoryPool>,
    /// Pinned host memory that downloads pass through.
    landing: RefCell<PinnedHostSlice<u8>>,
    /// Whether a wait was given up, so that the GPU may still write `landing`.
    is_abandoned: Cell<bool>,
}

impl Gpu {
    /// GPU `ordinal` and its UUID.
    pub fn open(ordinal: usize, execution: &Execution) -> Result<(Gpu, [u64; 2])> {
        let context = CudaContext::new(ordinal).doing("be opened")?;
        // SAFETY: all work goes through one stream, in order, so that no event ever has to be waited for. (None may be recorded while a graph is
        // captured.)
        unsafe { context.disable_event_tracking() };
        let name = context.name().doing("say its name")?;
        let capability = context.compute_capability().doing("say what it can")?;
        let tf32 = execution.tf32;
        let arithmetic = match (execution.products, tf32) {
            (Products::Split | Products::Pairs, true) => {
                return Err(refuse(format!(
                    "expected execution.tf32 = false beside execution.products = \"{}\", whose products are more exact than TF32's, found \
                     both; leave one out",
                    execution.products
                )));
            }
            (Products::Split, false) => Arithmetic::Split,
            (Products::Pairs, false) => Arithmetic::Pairs,
            (Products::Fused, true) => Arithmetic::Tf32,
            (Products::Fused, false) | (Products::Cublas, _) => Arithmetic::Single,
        };
        let on_tensor_cores = tf32 || arithmetic != Arithmetic::Single;
        let oldest = if on_tensor_cores { 8 } else { 7 };
        if capability.0 < oldest {
            return Err(refuse(format!(
                "expected compute capability {oldest}.0 or newer{}, found {}.{} ({name}); use another GPU, or --device cpu",
                match (tf32, on_tensor_cores) {
                    (true, _) => " for execution.tf32 = true".to_owned(),
                    (false, true) => format!(" for execution.products = \"{}\"", execution.products),
                    (false, false) => String::new(),
                },
                capability.0,
                capability.1
            )));
        }
        // The whole GPU's UUID, also of an instance of MIG: NCCL refuses two ranks on one GPU, so that they exchange over MPI.
        let uuid = context.uuid().doing("say its UUID")?.bytes.map(|byte| byte as u8);
        let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|i| uuid[from + i]));
        let stream = context.new_stream().doing("make a stream")?;
        let deadline = Duration::from_secs(execution.deadline_seconds.into());
        let pool = if context.has_async_alloc() { Some(keeping_pool(&context)?) } else { None };
        let landing = RefCell::new(pinned(&context, LANDING)?);
        Ok((
            Gpu { context, stream, name, capability, tf32, arithmetic, deadline, pool, landing, is_abandoned: Cell::new(false) },
            [half(0), half(8)],
        ))
    }

    /// Memory whose values are arbitrary until they are written, at least one element.
    pub fn uninitialised<T: AnyBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        // SAFETY: whatever the memory holds is a value of T. A kernel that takes values for indices, lengths or offsets asks its caller for right
        // ones.
        unsafe { self.stream.alloc(len.max(1)) }.doing(&format!("have {} bytes", len * size_of::<T>()))
    }

    /// Makes room for so many elements, arbitrary ones, unless the buffer has it; where the buffer is afterwards.
    pub fn make_room<T: AnyBits>(&self, buffer: &mut Option<CudaSlice<T>>, elements: usize) -> Result<u64> {
        if buffer.as_ref().is_none_or(|buffer| buffer.len() < elements) {
            // The old memory is freed before more is asked for.
            *buffer = None;
            *buffer = Some(self.uninitialised(elements)?);
        }
        Ok(buffer.as_ref().map_or(0, |buffer| at(buffer, 0).address()))
    }

    /// Memory set to zero bytes, at least one element.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        self.stream.alloc_zeros(len.max(1)).doing(&format!("have {} bytes", len * size_of::<T>()))
    }

    /// A copy of `values` on the device; memory for an arbitrary one, where there are none.
    pub fn upload<T: AnyBits>(&self, values: &[T]) -> Result<CudaSlice<T>> {
        if values.is_empty() {
            return self.uninitialised(1);
        }
        let mut copy = self.uninitialised(values.len())?;
        self.write(values, &mut copy)?;
        Ok(copy)
    }

    /// Copies `values` to the device, and waits until that is done: the driver may read memory that is not pinned after a copy's call has returned
    /// (CUDA's "API synchronization behavior").
    pub fn write<T: AnyBits>(&self, values: &[T], to: &mut impl DevicePtrMut<T>) -> Result<()> {
        self.stream.memcpy_htod(values, to).doing("take data")?;
        self.wait()
    }

    /// A copy of `len` elements from `from` on the host. It comes in pieces through pinned memory: a copy to other memory waits for the GPU,
    /// without the deadline.
    pub fn download<T: AnyBits + Default + Copy>(&self, slice: &CudaSlice<T>, from: usize, len: usize) -> Result<Vec<T>> {
        if self.is_abandoned.get() {
            return Err(refuse("expected a GPU that finishes its work, found one whose deadline has passed; start the program again"));
        }
        let mut values = vec![T::default(); len];
        let source = slice.slice(from..from + len);
        let (address, _synchronised) = source.device_ptr(&self.stream);
        let mut landing = self.landing.borrow_mut();
        let landing = landing.as_mut_ptr().doing("give data")?.cast::<T>();
        let held = LANDING / size_of::<T>();
        for (i, piece) in values.chunks_mut(held).enumerate() {
            // SAFETY: pinned memory is aligned to pages, holds a piece, was filled when it was made (`pinned`), and nothing else uses it until the
            // wait is over: it is borrowed, and no copy into it is under way, since no wait for one was given up (`is_abandoned`).
            let landed = unsafe { std::slice::from_raw_parts_mut(landing, piece.len()) };
            let address = address + (i * held * size_of::<T>()) as u64;
            // SAFETY: the piece lies within `source`, which outlives the wait; `landed` has its length.
            unsafe { memcpy_dtoh_async(landed, address, self.stream.cu_stream()) }.doing("give data")?;
            self.wait()?;
            piece.copy_from_slice(landed);
        }
        Ok(values)
    }

    /// Waits until all work given to the GPU is done. Past the deadline the wait calls the action of [`comm::on_abandon`], which ends dps's programs:
    /// without that action the caller gets an error, and freeing memory that the GPU may still write waits again.
    pub fn wait(&self) -> Result<()> {
        let Some(outcome) = outcome_within(&self.stream, self.deadline, || Ok(()))? else {
            let error = refuse(format!(
                "expected the GPU to finish its work within {} s (execution.deadline_seconds), waited in vain; look at nvidia-smi, then run the \
                 same command again to continue",
                self.deadline.as_secs()
            ));
            self.is_abandoned.set(true);
            comm::abandon(&error);
            return Err(error);
        };
        outcome.result().doing("finish its work")
    }

    /// Free memory, in bytes: the driver's, and what the pool has kept.
    pub fn free(&self) -> Result<u64> {
        self.wait()?;
        let free = self.context.mem_get_info().doing("say how much memory is free")?.0 as u64;
        let Some(pool) = self.pool else { return Ok(free) };
        let bytes = |attribute| {
            let mut bytes = 0_u64;
            // SAFETY: both attributes are numbers of 64 bits, as `bytes` is; the pool is the device's, which lives as long as the driver.
            unsafe { cuMemPoolGetAttribute(pool, attribute, (&raw mut bytes).cast()) }.result().doing("say how much memory is free")?;
            Ok(bytes)
        };
        let reserved = bytes(PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        Ok(free + reserved.saturating_sub(bytes(PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?))
    }

    /// All memory, in bytes.
    pub fn memory(&self) -> Result<u64> {
        Ok(self.context.mem_get_info().doing("say how much memory it has")?.1 as u64)
    }
}

/// How everything asked of a stream ended; none where it is not done within so long (0: it may take for ever). Between two questions a long wait
/// calls `look`, and ends with the error that `look` finds.
pub(super) fn outcome_within(stream: &CudaStream, limit: Duration, look: impl Fn() -> Result<()>) -> Result<Option<CUresult>> {
    let begun = Instant::now();
    loop {
        // SAFETY: the stream lives as long as it is borrowed; the driver takes it in any context.
        match unsafe { cuStreamQuery(stream.cu_stream()) } {
            CUresult::CUDA_ERROR_NOT_READY => {}
            outcome => return Ok(Some(outcome)),
        }
        let waited = begun.elapsed();
        // A step at small batches takes less than this; longer waits leave the processor to others.
        if waited < Duration::from_millis(2) {
            std::thread::yield_now();
            continue;
        }
        look()?;
        if !limit.is_zero() && waited > limit {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Host memory that the device can write at any time, at least one element.
pub(super) fn pinned<T: AnyBits + ValidAsZeroBits>(context: &Arc<CudaContext>, len: usize) -> Result<PinnedHostSlice<T>> {
    // Not write-combined, which is slow to read.
    // SAFETY: nothing is read from the memory before it is filled below.
    let mut memory = unsafe { context.alloc_pinned_with_flags(len.max(1), 0) }.doing("have pinned memory")?;
    let address: *mut T = memory.as_mut_ptr().doing("have pinned memory")?;
    // SAFETY: the memory has as many elements, and any bits are one.
    unsafe { address.write_bytes(0, len.max(1)) };
    Ok(memory)
}

/// The device's pool of memory, which from now on keeps what is freed. By default it gives all of it back to the driver whenever the stream is
/// waited for, and what every evaluation allocates is mapped anew.
fn keeping_pool(context: &CudaContext) -> Result<CUmemoryPool> {
    let (mut pool, mut threshold) = (std::ptr::null_mut(), u64::MAX);
    // SAFETY: the driver writes the handle into a variable that is there, and reads the attribute, a number of 64 bits, as `threshold` is.
    unsafe {
        cuDeviceGetDefaultMemPool(&raw mut pool, context.cu_device()).result().doing("give its memory pool")?;
        let attribute = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()).result().doing("keep memory")?;
    }
    Ok(pool)
}
