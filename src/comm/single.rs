//! A world of one process.

use super::Communicator;

/// The only rank there is.
#[derive(Debug, Clone, Copy)]
pub struct Single;

impl Communicator for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&self, send: &[f32], _counts: &[usize], receive: &mut Vec<f32>) {
        receive.clear();
        receive.extend_from_slice(send);
    }

    fn all_to_all(&self, send: &[f32], _sent: &[usize], _received: &[usize], receive: &mut Vec<f32>) {
        receive.clear();
        receive.extend_from_slice(send);
    }

    fn all_gather_words(&self, send: &[u64]) -> Vec<u64> {
        send.to_vec()
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }

    fn split(&self, _color: usize) -> Box<dyn Communicator> {
        Box::new(Single)
    }

    fn limit_waits(&self, _seconds: u32) {}

    fn abort(&self, _code: i32) {}
}
