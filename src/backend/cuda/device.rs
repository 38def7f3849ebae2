//! This rank's GPU: which one it is, and what all back ends on it share.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;

use super::cache::Cache;
use super::check::refuse;
use super::dataset::DeviceDataset;
use super::gpu::{Arithmetic, Gpu};
use super::gpus::list;
use super::launch::Kernels;
use super::libraries::{Library, find};
use super::products::Blas;
use super::program;
use super::workspace::Workspace;
use crate::Result;
use crate::comm::{self, Communicator, host_hash, together};
use crate::data::Dataset;
use crate::network::Network;
use crate::settings::{Execution, Products, Reduction};

/// A rank's GPU, and what all its back ends share.
pub struct Cuda {
    pub(super) gpu: Gpu,
    pub(super) reduction: Reduction,
    /// Whether ranks of this study share a GPU, so that NCCL cannot serve them.
    pub(super) shared: bool,
    pub(super) workspace: RefCell<Workspace>,
    products: Products,
    /// Kernels that were loaded when back ends were made: a plan needs none.
    loaded: RefCell<Vec<Loaded>>,
    /// The cache of compiled kernels, or why it is not used; none where the environment names no folder for it.
    cache: Option<std::result::Result<Cache, String>>,
    /// Threads of the host for what a GPU does not compute.
    pub(super) threads: usize,
    /// Bytes that patches and sums may take.
    scratch: usize,
    blas: OnceCell<Blas>,
    dataset: RefCell<Option<Rc<DeviceDataset>>>,
}

/// The kernels of a network that multiply by one arithmetic.
struct Loaded {
    network: Arc<Network>,
    arithmetic: Arithmetic,
    kernels: Rc<Kernels>,
}

impl Cuda {
    /// Opens this rank's GPU: rank n of a host takes the n-th GPU that it sees, counted round again where there are more ranks than GPUs. Every rank
    /// must call `open`.
    ///
    /// # Errors
    /// The error is the same on every rank: a library or a GPU is missing on one of them, or two of them have the same GPU, which
    /// `execution.share_gpu` would allow.
    pub fn open(execution: &Execution, world: &dyn Communicator) -> Result<Cuda> {
        let count = together(world, count(execution.products))?;
        let hosts = world.all_gather_words(&[host_hash()]);
        let local = hosts[..world.rank()].iter().filter(|&&host| host == hosts[world.rank()]).count();
        let (gpu, identity) = together(world, Gpu::open(local % count, execution))?;
        // A UUID alone, without the host: containers of one host have names of their own.
        let all = world.all_gather_words(&identity);
        let identities: Vec<&[u64]> = all.chunks_exact(2).collect();
        let pair = (0..identities.len()).flat_map(|b| (0..b).map(move |a| (a, b))).find(|&(a, b)| identities[a] == identities[b]);
        if let (Some((a, b)), false) = (pair, execution.share_gpu) {
            return Err(refuse(format!(
                "expected a GPU for every rank, but ranks {a} and {b} have the same one ({}, UUID {:016x}{:016x}); start as many ranks a host as it \
                 has GPUs, or allow it with --set execution.share_gpu=true",
                gpu.name, identities[a][0], identities[a][1]
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
            dataset: RefCell::new(None),
            loaded: RefCell::default(),
            cache: Cache::open(),
        })
    }

    /// This GPU, with micro-batches of at most so many images: the same bits in more launches.
    pub fn with_slots(self, slots: usize) -> Cuda {
        self.workspace.borrow_mut().limit = slots;
        self
    }

    /// How often memory for the images under way was allocated: each time steps are recorded anew.
    pub fn workspaces(&self) -> u64 {
        self.workspace.borrow().generation
    }

    /// Limits the bytes for the patches that cuBLAS multiplies, to no less than 1 MiB: less memory gives the same sums in more launches.
    pub fn with_scratch(self, bytes: usize) -> Cuda {
        Cuda { scratch: bytes, ..self }
    }

    /// cuBLAS, started where that has not been done, where `execution.products = "cublas"`; else none.
    pub(super) fn blas(&self) -> Result<Option<&Blas>> {
        if self.products == Products::Cublas && self.blas.get().is_none() {
            let _ = self.blas.set(Blas::new(&self.gpu, self.scratch)?);
        }
        Ok(self.blas.get())
    }

    /// The GPU's name, as messages and results have it.
    pub fn name(&self) -> &str {
        &self.gpu.name
    }

    /// Why compiled kernels are not kept, a sentence, where they are not.
    pub fn uncached(&self) -> Option<&str> {
        self.cache.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// FLOP a second of the GPU's 32-bit units at the clock that the GPU states, two for each unit: 64 units a multiprocessor for compute
    /// capabilities 7.x and 8.0, else 128. 0 where the GPU states no clock.
    pub fn peak_flop(&self) -> f64 {
        let of = |attribute| self.gpu.context.attribute(attribute).map_or(0.0, f64::from);
        let (clock, processors) = (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        let units = if matches!(self.gpu.capability, (7, _) | (8, 0)) { 64.0 } else { 128.0 };
        of(clock) * 1000.0 * of(processors) * units * 2.0
    }

    /// A network's kernels that multiply by `arithmetic`, compiled where that has not been done.
    pub(super) fn load(&self, network: &Arc<Network>, arithmetic: Arithmetic) -> Result<Rc<Kernels>> {
        let mut loaded = self.loaded.borrow_mut();
        if let Some(known) = loaded.iter().find(|known| known.network == *network && known.arithmetic == arithmetic) {
            return Ok(known.kernels.clone());
        }
        let cache = self.cache.as_ref().and_then(|cache| cache.as_ref().ok());
        let kernels = Rc::new(program::load(&self.gpu, network, arithmetic, cache)?);
        loaded.push(Loaded { network: network.clone(), arithmetic, kernels: kernels.clone() });
        Ok(kernels)
    }

    /// The data set on the device, uploaded once.
    pub(super) fn dataset(&self, dataset: &Dataset) -> Result<Rc<DeviceDataset>> {
        let mut kept = self.dataset.borrow_mut();
        match &*kept {
            Some(resident) if resident.is_of(dataset) => Ok(resident.clone()),
            _ => Ok(kept.insert(Rc::new(DeviceDataset::new(&self.gpu, dataset)?)).clone()),
        }
    }
}

/// GPUs that this process sees, at least one.
fn count(products: Products) -> Result<usize> {
    // The driver comes first: without it a missing NVRTC does not matter.
    let count = list()?.len();
    find(Library::Nvrtc)?;
    if products == Products::Cublas {
        find(Library::Cublas)?;
    }
    Ok(count)
}
