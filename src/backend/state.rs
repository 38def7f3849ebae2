//! A lane's state as it outlives a process: the same on any device, any number of ranks.

use serde::{Deserialize, Serialize};

/// All that a lane's next step depends on, besides what its trial's seed and metaparameters say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneState {
    /// The parameters, flat as the network lays them out.
    #[serde(with = "floats")]
    pub weights: Vec<f32>,
    /// The optimizer's velocity, or Adam's average of the gradients, in the same order; empty for SGD.
    #[serde(with = "floats")]
    pub velocity: Vec<f32>,
    /// Adam's average of the gradients' squares, in the same order; empty for other optimizers.
    #[serde(with = "floats")]
    pub squares: Vec<f32>,
    /// The averaged weights, in the same order; empty where the weights themselves are evaluated.
    #[serde(with = "floats")]
    pub average: Vec<f32>,
    /// Mean training loss over the batch of the last step.
    pub loss: f32,
    /// The step whose loss was not finite, where the lane has stopped.
    pub broken: Option<u32>,
}

/// Floats as one run of little-endian bytes: element by element, a checkpoint of 12 million would take seconds.
pub mod floats {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    /// Four bytes a float.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = vec![0; size_of_val(values)];
        for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        serializer.serialize_bytes(&bytes)
    }

    /// Reads floats that [`serialize`] wrote.
    ///
    /// # Errors
    /// The deserializer's, or that the bytes are no multiple of four.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<f32>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("four bytes a float")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<f32>, E> {
                let (values, rest) = bytes.as_chunks();
                if rest.is_empty() {
                    Ok(values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
                } else {
                    Err(E::invalid_length(bytes.len(), &self))
                }
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
