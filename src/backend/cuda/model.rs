//! A network and a data set on a GPU, for a group of ranks.

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::dataset::{DeviceDataset, DeviceExamples, Selection};
use super::device::Cuda;
use super::gpu::{Arithmetic, Gpu, Stored};
use super::lanes::{CudaLanes, pitch};
use super::launch::Kernels;
use super::layer::{lowered, propagate};
use super::micro_batch::MicroBatch;
use super::pointer::{ConstPointer, at, at_mut};
use super::products::Blas;
use crate::Result;
use crate::backend::cpu::check_network;
use crate::backend::task::Task;
use crate::comm::Communicator;
use crate::data::Dataset;
use crate::network::{Layer, Network};

/// Sends lanes' images through a network: the GPU, its kernels, the network and the data set.
pub(super) struct Model<'a> {
    pub cuda: &'a Cuda,
    /// How the kernels multiply.
    pub arithmetic: Arithmetic,
    /// cuBLAS, where products are its own.
    pub blas: Option<&'a Blas>,
    pub kernels: Rc<Kernels>,
    /// The study's network, and how many examples it trains on.
    pub task: Task,
    /// The network as the kernels see it.
    pub network: Arc<Network>,
    pub dataset: Rc<DeviceDataset>,
    /// The ranks that share every batch.
    pub group: &'a dyn Communicator,
}

impl<'a> Model<'a> {
    /// # Panics
    /// The shapes of the network do not fit together, the images are none that the network reads, or a label is none of its classes: the kernels
    /// would read what is not there.
    pub fn new(
        cuda: &'a Cuda,
        (arithmetic, blas): (Arithmetic, Option<&'a Blas>),
        network: Arc<Network>,
        dataset: &Dataset,
        group: &'a dyn Communicator,
    ) -> Result<Model<'a>> {
        check_network(&network);
        let is_of_classes = |layer: &Layer| matches!(layer, Layer::Dense(dense) if dense.outputs == network.classes);
        assert!(network.layers.last().is_some_and(is_of_classes), "a logit for each class");
        let is_whole = |layer: &Layer| !matches!(layer, Layer::GroupNorm(norm) if norm.groups * norm.group_channels != norm.channels);
        assert!(network.layers.iter().all(is_whole), "groups of all channels");
        // A loop adds the number of its threads to an index before it compares.
        assert!(pitch(network.parameters()) <= 1 << 30, "parameters that kernels can count");
        assert!(!dataset.training.labels.is_empty(), "a training example");
        let (map, shape) = (network.maps[0], dataset.shape);
        assert_eq!([map.height, map.width, map.channels], [shape.height, shape.width, shape.channels], "images of the network");
        assert_eq!(dataset.normalisation.len(), shape.channels, "a normalisation a channel");
        for set in [&dataset.training, &dataset.validation, &dataset.test] {
            assert_eq!(set.images.len(), set.labels.len() * shape.values(), "images of the data set's shape");
            assert!(set.labels.iter().all(|&label| usize::from(label) < network.classes), "labels of the network's classes");
        }
        let task = Task::new("cuda", network, dataset.training.len());
        let network = Arc::new(lowered(&task.network));
        let kernels = cuda.load(&network, arithmetic)?;
        let dataset = cuda.dataset(dataset)?;
        Ok(Model { task, cuda, arithmetic, blas, kernels, network, dataset, group })
    }

    /// Refuses lanes that were made for another network, or on another GPU.
    pub fn check_lanes(&self, lanes: &CudaLanes) -> Result<()> {
        self.task.check_lanes(&lanes.task)?;
        if Arc::ptr_eq(lanes.weights.stream(), &self.gpu().stream) {
            return Ok(());
        }
        Err(refuse(
            "expected lanes in this back end's own stream, found those of another GPU; make the lanes by the back end that trains them",
        ))
    }

    pub fn gpu(&self) -> &'a Gpu {
        &self.cuda.gpu
    }

    /// Floats from one lane's parameters to the next one's.
    pub fn pitch(&self) -> usize {
        pitch(self.network.parameters())
    }

    /// Whether numbers of maps, and the weights that convolutions read, are words of another form than floats.
    pub fn in_pairs(&self) -> bool {
        self.arithmetic == Arithmetic::Pairs
    }

    /// The weights as convolutions read them: written into `room`, or, where there is none, the weights themselves.
    ///
    /// # Safety
    /// `room` is for as many.
    pub unsafe fn stored<'b>(&self, weights: &'b CudaSlice<f32>, room: Option<&'b CudaSlice<Stored>>) -> Result<ConstPointer<'b, Stored>> {
        let Some(room) = room else { return Ok(at(weights, 0).cast()) };
        // SAFETY: the buffer has so many weights, and the caller vouches for room.
        unsafe { self.kernels.store(weights.len() as i64, at(weights, 0), at_mut(room, 0)) }?;
        Ok(at(room, 0))
    }

    /// Gathers a micro-batch's examples, and sends them through the network.
    ///
    /// # Safety
    /// The numbers that `selection` points to select examples that `set` has, for every lane of the batch. The workspace has room for the batch. Its
    /// weights, and its output's memory, are there for all of its lanes and groups.
    pub unsafe fn run(&self, batch: &MicroBatch, set: &DeviceExamples, selection: Selection) -> Result<()> {
        // SAFETY: the caller vouches for selection, workspace, weights and output; what is gathered are images of this network, and labels of its
        // classes (`Model::new`).
        unsafe {
            self.dataset.gather(&self.kernels, set, selection, batch.space, [batch.lanes, batch.images])?;
            propagate(batch, self.blas)
        }
    }
}
