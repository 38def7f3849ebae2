//! The kernel of `kernels/gather.cu`.

use super::{kernels, shared_structs};
use crate::backend::cuda::gpu::Stored;
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::network::Map;

/// Images that a block takes at a time.
pub const GATHERED: usize = 8;

shared_structs! {
    /// A map: rows, columns and channels without border, then floats of a bordered row and of an image, and the border's width before them.
    pub struct MapShape {
        pub height: i32,
        pub width: i32,
        pub channels: i32,
        pub row: i32,
        pub len: i32,
        pub before: i32,
    }
}

impl MapShape {
    pub fn new(map: Map) -> MapShape {
        MapShape {
            height: map.height as i32,
            width: map.width as i32,
            channels: map.channels as i32,
            row: map.row() as i32,
            len: map.len() as i32,
            before: map.before as i32,
        }
    }
}

kernels! {
    /// Copies examples, normalised, to maps.
    fn gather(
        images: i32,
        shuffled: i32,
        first: i32,
        batch: i32,
        n: i32,
        seeds: Option<ConstPointer<'_, u64>>,
        clock: Option<ConstPointer<'_, u32>>,
        listed: Option<ConstPointer<'_, u32>>,
        pitch: i32,
        pixels: Option<ConstPointer<'_, u8>>,
        table: ConstPointer<'_, f32>,
        floats: Option<ConstPointer<'_, f32>>,
        labels: ConstPointer<'_, u16>,
        map: MutPointer<'_, Stored>,
        slot_labels: MutPointer<'_, u16>
    )[lanes: usize] = ["gather"][0];
    blocks: [(images as usize).div_ceil(GATHERED), 1, lanes];
    threads: 256;
}
