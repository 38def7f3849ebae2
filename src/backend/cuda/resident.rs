//! The data set on the device, as bytes.

use cudarc::driver::CudaSlice;

use super::gpu::{Gpu, at, launch};
use crate::Result;
use crate::data::{Dataset, Examples};
use crate::network::Map;

/// Pixels and labels of the three sets, and the table that normalises them.
pub(super) struct Resident {
    pub digest: String,
    pub training: Set,
    pub validation: Set,
    pub test: Set,
    /// `[channel][256]`.
    table: CudaSlice<f32>,
}

/// One set: `[example][height][width][channel]` and `[example]`.
pub(super) struct Set {
    pub examples: usize,
    pixels: CudaSlice<u8>,
    labels: CudaSlice<u8>,
}

impl Set {
    fn new(gpu: &Gpu, examples: &Examples) -> Result<Set> {
        Ok(Set { examples: examples.len(), pixels: gpu.upload(&examples.images)?, labels: gpu.upload(&examples.labels)? })
    }
}

/// The twin of Images in gather.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Images {
    height: i32,
    width: i32,
    channels: i32,
    row: i32,
    len: i32,
    before: i32,
}

/// Images that a block of `gather` takes at a time.
const GATHERED: usize = 8;

/// Which examples of a set to gather.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    /// From this one on, the same for every lane.
    InOrder(usize),
    /// Those of the step that the clock (third) says, from this one of its batch (first; second, its size); fourth: the lanes' seeds.
    Shuffled(usize, usize, u64, u64),
    /// Those that the lane's own list says: where the first lane's begins, and from one lane's to the next.
    Listed(u64, usize),
}

impl Resident {
    pub fn new(gpu: &Gpu, dataset: &Dataset) -> Result<Resident> {
        Ok(Resident {
            digest: dataset.digest.clone(),
            training: Set::new(gpu, &dataset.training)?,
            validation: Set::new(gpu, &dataset.validation)?,
            test: Set::new(gpu, &dataset.test)?,
            table: gpu.upload(&dataset.lookup_table().concat())?,
        })
    }

    /// A set to evaluate on.
    pub fn set(&self, which: crate::backend::Set) -> &Set {
        match which {
            crate::backend::Set::Validation => &self.validation,
            crate::backend::Set::Test => &self.test,
        }
    }

    /// Normalised images of `lanes` lanes, `images` each, into the bordered `map` at `to`, and their labels.
    #[allow(clippy::too_many_arguments)]
    pub fn gather(&self, gpu: &Gpu, set: &Set, draw: Draw, map: Map, lanes: usize, images: usize, to: u64, labels: u64) -> Result<()> {
        let shape = Images {
            height: map.height as i32,
            width: map.width as i32,
            channels: map.channels as i32,
            row: map.row() as i32,
            len: map.len() as i32,
            before: map.before as i32,
        };
        let (mut list, mut pitch) = (0_u64, 0);
        let (shuffled, first, batch, clock, seeds) = match draw {
            Draw::InOrder(first) => (0_i32, first, 0, 0_u64, 0_u64),
            Draw::Shuffled(first, batch, clock, seeds) => (1, first, batch, clock, seeds),
            Draw::Listed(from, apart) => {
                (list, pitch) = (from, apart);
                (0, 0, 0, 0, 0)
            }
        };
        launch!(
            gpu,
            &gpu.kernels()?.gather,
            [images.div_ceil(GATHERED), 1, lanes],
            256,
            shape,
            images as i32,
            shuffled,
            first as i32,
            batch as i32,
            set.examples as i32,
            seeds,
            clock,
            list,
            pitch as i32,
            at(&set.pixels, 0),
            at(&set.labels, 0),
            at(&self.table, 0),
            to,
            labels
        )
    }
}
