//! This rank's GPU: which one it is, its stream, and launches on it.

use std::cell::{OnceCell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUdevice_attribute_enum as Attribute, CUresult, cuStreamQuery};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, PinnedHostSlice, result};

use super::check::{Doing, refuse};
use super::engine::CudaBackend;
use super::gpus::list;
use super::kernels::Kernels;
use super::libraries::{Library, find};
use super::products::Blas;
use super::resident::Resident;
use super::workspace::Workspace;
use crate::Result;
use crate::backend::Device;
use crate::comm::{self, Communicator, host_hash, together};
use crate::config::{Execution, Products, Reduction};
use crate::data::Dataset;
use crate::network::Network;

/// A rank's GPU, and what all its back ends share.
pub struct Cuda {
    pub(super) gpu: Gpu,
    pub(super) reduction: Reduction,
    /// Whether ranks of this study share a GPU, so that NCCL cannot serve them.
    pub(super) shared: bool,
    pub(super) workspace: RefCell<Workspace>,
    products: Products,
    /// Threads of the host for what a GPU does not compute.
    pub(super) threads: usize,
    /// Bytes that patches and sums may take.
    scratch: usize,
    blas: OnceCell<Blas>,
    resident: RefCell<Option<Rc<Resident>>>,
}

/// A GPU and the one stream that everything runs in, in order.
pub(super) struct Gpu {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    pub name: String,
    capability: (i32, i32),
    /// Whether products are TF32's.
    pub tf32: bool,
    /// How long a wait for the GPU may last; 0: for ever.
    pub deadline: Duration,
    /// Compiled when a back end is made: a plan needs none.
    kernels: OnceCell<Kernels>,
}

impl Cuda {
    /// This rank's GPU: of those it sees, the one with its number among the ranks of its host. Every rank must call it.
    ///
    /// # Errors
    /// The same on every rank: a library or a GPU is missing on one of them, or two of them have the same GPU, which `execution.share_gpu`
    /// would allow.
    pub fn open(execution: &Execution, world: &dyn Communicator) -> Result<Cuda> {
        let count = together(world, count(execution.products))?;
        let hosts = world.all_gather_words(&[host_hash()]);
        let local = hosts[..world.rank()].iter().filter(|&&host| host == hosts[world.rank()]).count();
        let (gpu, identity) = together(world, Gpu::open(local % count, execution))?;
        let all = world.all_gather_words(&[host_hash(), identity[0], identity[1]]);
        let identities: Vec<&[u64]> = all.chunks_exact(3).collect();
        let pair = (0..identities.len()).flat_map(|b| (0..b).map(move |a| (a, b))).find(|&(a, b)| identities[a] == identities[b]);
        if let (Some((a, b)), false) = (pair, execution.share_gpu) {
            return Err(refuse(format!(
                "expected a GPU for every rank, but ranks {a} and {b} have the same one ({}, UUID {:016x}{:016x}); start as many ranks a host as it \
                 has GPUs, or allow it with --set execution.share_gpu=true",
                gpu.name, identities[a][1], identities[a][2]
            )));
        }
        let threads = if execution.threads > 0 { execution.threads as usize } else { comm::threads(world) };
        Ok(Cuda {
            gpu,
            threads,
            reduction: execution.reduction,
            shared: pair.is_some(),
            workspace: RefCell::new(Workspace::default()),
            products: execution.products,
            scratch: usize::MAX,
            blas: OnceCell::new(),
            resident: RefCell::new(None),
        })
    }

    /// The same, with passes of at most so many images: the same bits in more launches.
    pub fn with_slots(self, slots: usize) -> Cuda {
        self.workspace.borrow_mut().limit = slots;
        self
    }

    /// The same, with at most so many bytes for the patches that cuBLAS multiplies, but for an image's at least: the same sums in more
    /// launches.
    pub fn with_scratch(self, bytes: usize) -> Cuda {
        Cuda { scratch: bytes, ..self }
    }

    /// cuBLAS, where the products are its own.
    pub(super) fn blas(&self) -> Option<&Blas> {
        self.blas.get()
    }

    /// The GPU's name, as messages and results have it.
    pub fn name(&self) -> &str {
        &self.gpu.name
    }

    /// FLOP a second of its 32-bit units at the clock it states: two for each of 128 a multiprocessor; 0 where it states none.
    pub fn peak_flop(&self) -> f64 {
        let of = |attribute| self.gpu.context.attribute(attribute).map_or(0.0, f64::from);
        let (clock, processors) = (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        of(clock) * 1000.0 * of(processors) * 128.0 * 2.0
    }

    /// The data set on the device, uploaded once.
    pub(super) fn resident(&self, dataset: &Dataset) -> Result<Rc<Resident>> {
        let mut kept = self.resident.borrow_mut();
        match &*kept {
            Some(resident) if resident.digest == dataset.digest => Ok(resident.clone()),
            _ => Ok(kept.insert(Rc::new(Resident::new(&self.gpu, dataset)?)).clone()),
        }
    }
}

impl Device for Cuda {
    type Backend<'a> = CudaBackend<'a>;

    fn backend<'a>(&'a self, network: &Arc<Network>, dataset: &'a Dataset, group: &'a dyn Communicator) -> Result<CudaBackend<'a>> {
        self.gpu.load()?;
        if self.products == Products::Cublas && self.blas.get().is_none() {
            let _ = self.blas.set(Blas::new(&self.gpu, self.scratch)?);
        }
        CudaBackend::new(self, network.clone(), dataset, self.resident(dataset)?, group)
    }
}

/// GPUs that this process sees, at least one.
fn count(products: Products) -> Result<usize> {
    // Who has no driver need not hear of a compiler.
    let count = list()?.len();
    find(Library::Nvrtc)?;
    if products == Products::Cublas {
        find(Library::Cublas)?;
    }
    Ok(count)
}

impl Gpu {
    /// GPU `ordinal` and its UUID.
    fn open(ordinal: usize, execution: &Execution) -> Result<(Gpu, [u64; 2])> {
        let context = CudaContext::new(ordinal).doing("be opened")?;
        // One stream, in order: no event ever has to be waited for, and none may be recorded while a graph is captured.
        unsafe { context.disable_event_tracking() };
        let name = context.name().doing("say its name")?;
        let capability = context.compute_capability().doing("say what it can")?;
        let tf32 = execution.tf32;
        let oldest = if tf32 { 8 } else { 7 };
        if capability.0 < oldest {
            return Err(refuse(format!(
                "expected compute capability {oldest}.0 or newer{}, found {}.{} ({name}); use another GPU, or --device cpu",
                if tf32 { " for execution.tf32 = true" } else { "" },
                capability.0,
                capability.1
            )));
        }
        let uuid = context.uuid().doing("say its UUID")?.bytes.map(|byte| byte as u8);
        let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|i| uuid[from + i]));
        let stream = context.new_stream().doing("make a stream")?;
        let deadline = Duration::from_secs(execution.deadline_seconds.into());
        Ok((Gpu { context, stream, name, capability, tf32, deadline, kernels: OnceCell::new() }, [half(0), half(8)]))
    }

    fn load(&self) -> Result<()> {
        if self.kernels.get().is_none() {
            let kernels = Kernels::load(&self.context, &self.name, self.capability, self.tf32)?;
            let _ = self.kernels.set(kernels);
        }
        Ok(())
    }

    /// The kernels, which [`Device::backend`] has loaded.
    pub fn kernels(&self) -> Result<&Kernels> {
        self.kernels.get().ok_or_else(|| refuse("expected compiled kernels, found none; report this as a bug"))
    }

    /// Memory without a value, at least one element.
    pub fn room<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>> {
        // Whoever asks for it writes it before it is read.
        unsafe { self.stream.alloc(len.max(1)) }.doing(&format!("have {} bytes", len * size_of::<T>()))
    }

    /// Memory set to zero bytes, at least one element.
    pub fn zeros<T: DeviceRepr + cudarc::driver::ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        self.stream.alloc_zeros(len.max(1)).doing(&format!("have {} bytes", len * size_of::<T>()))
    }

    /// A copy of `values` on the device.
    pub fn upload<T: DeviceRepr + Default + Clone>(&self, values: &[T]) -> Result<CudaSlice<T>> {
        if values.is_empty() {
            return self.upload(&[T::default()]);
        }
        self.stream.clone_htod(values).doing("take data")
    }

    /// Host memory that the device can write at any time, at least one element.
    pub fn pinned(&self, len: usize) -> Result<PinnedHostSlice<i32>> {
        // Not write-combined, which is slow to read; whoever asks for it reads it after a copy to it.
        unsafe { self.context.alloc_pinned_with_flags(len.max(1), 0) }.doing("have pinned memory")
    }

    /// A copy of `len` elements from `from` on the host.
    pub fn download<T: DeviceRepr + Default + Clone>(&self, slice: &CudaSlice<T>, from: usize, len: usize) -> Result<Vec<T>> {
        let mut values = vec![T::default(); len];
        // A copy to memory that is not pinned waits for the stream, however long.
        self.wait()?;
        if len > 0 {
            self.stream.memcpy_dtoh(&slice.slice(from..from + len), &mut values).doing("give data")?;
        }
        self.wait()?;
        Ok(values)
    }

    /// Waits until everything asked of the GPU is done, up to the deadline.
    pub fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            // This thread's context has the stream.
            match unsafe { cuStreamQuery(self.stream.cu_stream()) } {
                CUresult::CUDA_ERROR_NOT_READY => {}
                outcome => return outcome.result().doing("finish its work"),
            }
            let waited = begun.elapsed();
            if !self.deadline.is_zero() && waited > self.deadline {
                return Err(refuse(format!(
                    "expected the GPU to finish its work within {} s (execution.deadline_seconds), waited in vain; look at nvidia-smi, then run the \
                     same command again to continue",
                    self.deadline.as_secs()
                )));
            }
            // A step at small batches takes less than this; longer waits leave the processor to others.
            if waited < Duration::from_millis(2) { std::thread::yield_now() } else { std::thread::sleep(Duration::from_micros(50)) }
        }
    }

    /// Free memory, in bytes.
    pub fn free(&self) -> Result<u64> {
        self.wait()?;
        Ok(self.context.mem_get_info().doing("say how much memory is free")?.0 as u64)
    }

    /// All memory, in bytes.
    pub fn memory(&self) -> Result<u64> {
        Ok(self.context.mem_get_info().doing("say how much memory it has")?.1 as u64)
    }

    /// Starts a kernel; [`launch!`] is the way to call it.
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel takes, in its order, and the pointers among these to what it may touch.
    pub unsafe fn launch(&self, kernel: &CudaFunction, grid: [usize; 3], threads: usize, arguments: &mut [*mut c_void]) -> Result<()> {
        let grid = (grid[0].clamp(1, 1 << 30) as u32, grid[1] as u32, grid[2] as u32);
        self.context.bind_to_thread().doing("be this thread's")?;
        unsafe { result::launch_kernel(kernel.cu_function(), grid, (threads as u32, 1, 1), 0, self.stream.cu_stream(), arguments) }
            .doing("start a kernel")
    }
}

/// Where an element of a buffer lies.
pub(super) fn at<T>(slice: &CudaSlice<T>, element: usize) -> u64 {
    // No guard is needed: nothing is tracked, because there is one stream.
    let (pointer, _guard) = slice.device_ptr(slice.stream());
    pointer + (element * size_of::<T>()) as u64
}

/// Starts a kernel with values as arguments: `u64` for pointers, `i32` for int, else the kernel's own types.
macro_rules! launch {
    ($gpu:expr, $kernel:expr, $grid:expr, $threads:expr, $($argument:expr),+ $(,)?) => {
        // The kernels' signatures stand beside each call's arguments in kernels/, and tests/cuda.rs runs every one of them.
        unsafe { $gpu.launch($kernel, $grid, $threads, &mut [$(std::ptr::from_ref(&$argument).cast_mut().cast()),+]) }
    };
}
pub(super) use launch;
