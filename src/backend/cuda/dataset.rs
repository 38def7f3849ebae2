//! The data set on the device, and the gathering of examples from it.

use cudarc::driver::CudaSlice;

use super::buffers::Buffers;
use super::gpu::Gpu;
use super::launch::Kernels;
use super::pointer::{ConstPointer, at, at_mut};
use crate::Result;
use crate::backend::EvaluationSet;
use crate::data::{Dataset, Examples, ImageShape, Pixels};

/// Pixels and labels of the three sets, and the table that normalises them.
pub(super) struct DeviceDataset {
    digest: String,
    shape: ImageShape,
    /// One more than the largest label of the data set.
    labels_below: usize,
    pub training: DeviceExamples,
    pub validation: DeviceExamples,
    pub test: DeviceExamples,
    /// `[channel][256]`.
    table: CudaSlice<f32>,
}

/// One set: `[example][height][width][channel]` and `[example]`.
pub(super) struct DeviceExamples {
    pub count: usize,
    images: DeviceImages,
    labels: CudaSlice<u16>,
}

/// Images as bytes, or as floats that are normalised.
enum DeviceImages {
    Bytes(CudaSlice<u8>),
    Floats(CudaSlice<f32>),
}

impl DeviceExamples {
    fn new(gpu: &Gpu, examples: &Examples) -> Result<DeviceExamples> {
        let images = match &examples.images {
            Pixels::Bytes(bytes) => DeviceImages::Bytes(gpu.upload(bytes)?),
            Pixels::Floats(floats) => DeviceImages::Floats(gpu.upload(floats)?),
        };
        Ok(DeviceExamples { count: examples.len(), images, labels: gpu.upload(&examples.labels)? })
    }
}

/// Which examples of a set each lane gets.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    /// From this one on, the same for every lane.
    Consecutive(usize),
    /// A part of a shuffled batch of `batch` examples, from the batch's example `first` on. `clock` points to the number of the batch's step, and
    /// `seeds` to the seeds of the lanes' orders.
    Shuffled { first: usize, batch: usize, clock: ConstPointer<'a, u32>, seeds: ConstPointer<'a, u64> },
    /// Examples that the lane's own list says: `lists` is where the first lane's begins, and the next one's is `pitch` further.
    Listed { lists: ConstPointer<'a, u32>, pitch: usize },
}

impl DeviceDataset {
    pub fn new(gpu: &Gpu, dataset: &Dataset) -> Result<DeviceDataset> {
        Ok(DeviceDataset {
            digest: dataset.digest.clone(),
            shape: dataset.shape,
            labels_below: labels_below(dataset),
            training: DeviceExamples::new(gpu, &dataset.training)?,
            validation: DeviceExamples::new(gpu, &dataset.validation)?,
            test: DeviceExamples::new(gpu, &dataset.test)?,
            table: gpu.upload(&dataset.lookup_table().concat())?,
        })
    }

    /// Whether this is `dataset` on the device. The function compares the digests and also what the kernels rely on, since safe code can make a
    /// [`Dataset`] with any digest.
    pub fn is_of(&self, dataset: &Dataset) -> bool {
        let counts = [&dataset.training, &dataset.validation, &dataset.test].map(Examples::len);
        self.digest == dataset.digest
            && self.shape == dataset.shape
            && [&self.training, &self.validation, &self.test].map(|set| set.count) == counts
            && self.labels_below == labels_below(dataset)
    }

    /// A set to evaluate on.
    pub fn set(&self, which: EvaluationSet) -> &DeviceExamples {
        match which {
            EvaluationSet::Validation => &self.validation,
            EvaluationSet::Test => &self.test,
        }
    }

    /// Normalised images of `lanes` lanes, `images` each, into the workspace's first map, and their labels.
    ///
    /// # Safety
    /// The kernels are those of a network whose first map has this data set's images in it. The workspace has room for them, and what `selection`
    /// points to selects examples that `set` has.
    pub unsafe fn gather(
        &self,
        kernels: &Kernels,
        set: &DeviceExamples,
        selection: Selection,
        space: &Buffers,
        [lanes, images]: [usize; 2],
    ) -> Result<()> {
        let (mut first, mut batch, mut clock, mut seeds, mut lists, mut pitch) = (0, 0, None, None, None, 0);
        match selection {
            Selection::Consecutive(from) => first = from,
            Selection::Shuffled { first: from, batch: size, clock: step, seeds: of_lanes } => {
                (first, batch, clock, seeds) = (from, size, Some(step), Some(of_lanes));
            }
            Selection::Listed { lists: from, pitch: apart } => (lists, pitch) = (Some(from), apart),
        }
        let (pixels, floats) = match &set.images {
            DeviceImages::Bytes(bytes) => (Some(at(bytes, 0)), None),
            DeviceImages::Floats(floats) => (None, Some(at(floats, 0))),
        };
        // SAFETY: the caller vouches for the workspace and the selection; images, labels and table are whole (`Model::new` has compared their
        // lengths).
        unsafe {
            kernels.gather(
                lanes,
                images as i32,
                clock.is_some().into(),
                first as i32,
                batch as i32,
                set.count as i32,
                seeds,
                clock,
                lists,
                pitch as i32,
                pixels,
                at(&self.table, 0),
                floats,
                at(&set.labels, 0),
                at_mut(&space.maps[0], 0),
                at_mut(&space.labels, 0),
            )
        }
    }
}

/// One more than the largest label of a data set.
fn labels_below(dataset: &Dataset) -> usize {
    let sets = [&dataset.training, &dataset.validation, &dataset.test];
    sets.iter().flat_map(|set| &set.labels).max().map_or(0, |&label| usize::from(label) + 1)
}
