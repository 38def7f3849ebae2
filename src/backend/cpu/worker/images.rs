//! Images on their way into a worker's first map.

use super::room::Worker;
use crate::data::{Examples, Pixels};

impl Worker {
    /// Puts normalised images into the network's first map.
    pub(in crate::backend::cpu) fn gather(&mut self, examples: &Examples, tables: &[[f32; 256]], indices: &[u32]) {
        let map = self.space.network.maps[0];
        let row = map.width * map.channels;
        for (image, &index) in indices.iter().enumerate() {
            self.labels[image] = examples.labels[index as usize];
            let to = &mut self.space.maps[0][image * map.len()..][..map.len()];
            let place = index as usize * map.inner_len();
            let bytes = match &examples.images {
                Pixels::Bytes(values) => &values[place..][..map.inner_len()],
                Pixels::Floats(values) => {
                    for (y, row_values) in values[place..][..map.inner_len()].chunks_exact(row).enumerate() {
                        to[map.at_row(y)..][..row].copy_from_slice(row_values);
                    }
                    continue;
                }
            };
            for (y, bytes) in bytes.chunks_exact(row).enumerate() {
                let to = &mut to[map.at_row(y)..][..row];
                if let [table] = tables {
                    for (to, &byte) in to.iter_mut().zip(bytes) {
                        *to = table[usize::from(byte)];
                    }
                } else {
                    for (to, bytes) in to.chunks_exact_mut(tables.len()).zip(bytes.chunks_exact(tables.len())) {
                        for ((to, &byte), table) in to.iter_mut().zip(bytes).zip(tables) {
                            *to = table[usize::from(byte)];
                        }
                    }
                }
            }
        }
    }

    /// The gathered images, `[image][bordered map]`, and their labels.
    pub(in crate::backend::cpu) fn gathered(&self, count: usize) -> (&[f32], &[u16]) {
        (&self.space.maps[0][..count * self.space.network.maps[0].len()], &self.labels[..count])
    }

    /// Copies gathered images to the first ones' places.
    pub(super) fn bring_first(&mut self, image: usize, count: usize) {
        if image > 0 {
            let len = self.space.network.maps[0].len();
            self.space.maps[0].copy_within(image * len..(image + count) * len, 0);
            self.labels.copy_within(image..image + count, 0);
        }
    }
}
