//! How the ranks of a group add up their gradients: what travels, and by which way.

use std::time::Duration;

use cudarc::driver::CudaSlice;

use super::check::Doing;
use super::gpu::{Gpu, at, launch};
use super::lanes::CudaLanes;
use super::nccl::Nccl;
use super::sums::{Parts, Share};
use crate::Result;
use crate::comm::Communicator;
use crate::config::Reduction;

/// The way between the ranks of a group.
pub(super) enum Way {
    /// Between GPUs, in the stream.
    Nccl(Nccl),
    /// Through the hosts: ranks that share a GPU cannot use NCCL.
    Mpi,
}

/// A group's gradient sums. Kept entries alone travel, each lane's with its loss behind them.
pub(super) struct Exchange {
    way: Way,
    reduction: Reduction,
    /// `[node][lane][packed]`: what this rank sends.
    sent: Option<CudaSlice<f32>>,
    /// `[rank][node][lane][packed]`; unused by an all-reduce, which happens where the gradients are.
    received: Option<CudaSlice<f32>>,
}

/// What the update adds up, packed: where, which parts, and how far they are from each other.
pub(super) struct Sum {
    pub from: u64,
    pub parts: Parts,
    pub lane_stride: i64,
    pub part_stride: i64,
}

/// Floats of a lane's kept gradients and loss.
fn packed(lanes: &CudaLanes) -> usize {
    (lanes.most_kept + 1).next_multiple_of(4)
}

impl Exchange {
    /// Every rank of the group must call it.
    pub fn new(group: &dyn Communicator, shared: bool, reduction: Reduction, deadline: Duration) -> Result<Exchange> {
        let (way, reduction) =
            if shared { (Way::Mpi, Reduction::Reproducible) } else { (Way::Nccl(Nccl::new(group, deadline)?), reduction) };
        Ok(Exchange { way, reduction, sent: None, received: None })
    }

    /// Whether a step can be recorded with its exchange.
    pub fn in_stream(&self) -> bool {
        matches!(self.way, Way::Nccl(_))
    }

    /// Makes room for these lanes; where the buffers are afterwards tells whether a recorded step still serves.
    pub fn prepare(&mut self, gpu: &Gpu, lanes: &CudaLanes, share: &Share, ranks: usize) -> Result<[u64; 2]> {
        let nodes = match self.reduction {
            Reduction::Reproducible => share.most_nodes(),
            Reduction::Nccl => 1,
        };
        let size = nodes * lanes.len() * packed(lanes);
        let ensure = |buffer: &mut Option<CudaSlice<f32>>, floats: usize| -> Result<u64> {
            if buffer.as_ref().is_none_or(|buffer| buffer.len() < floats) {
                *buffer = None;
                *buffer = Some(gpu.room(floats)?);
            }
            Ok(buffer.as_ref().map_or(0, |buffer| at(buffer, 0)))
        };
        let sent = ensure(&mut self.sent, size)?;
        let received = ensure(&mut self.received, if self.reduction == Reduction::Nccl { 0 } else { ranks * size })?;
        Ok([sent, received])
    }

    /// The sum over the ranks of `sums`, `[lane][leaf][pitch]` of this rank, for the update to finish.
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        group: &dyn Communicator,
        lanes: &CudaLanes,
        share: &Share,
        sums: u64,
        parameters: usize,
    ) -> Result<Sum> {
        let (packed, places) = (packed(lanes), share.mine().len());
        let row = lanes.len() * packed;
        let sent = self.sent.as_ref().map_or(0, |buffer| at(buffer, 0));
        let nodes = match self.reduction {
            Reduction::Reproducible => share.sent(),
            // A rank without examples adds zeros.
            Reduction::Nccl => vec![(0, Parts::leaves(places))],
        };
        let [_, kept, kept_count, ..] = lanes.pointers();
        for (node, (first, parts)) in nodes.iter().enumerate() {
            launch!(
                gpu,
                &gpu.kernels()?.pack,
                [packed.div_ceil(256), 1, lanes.len()],
                256,
                parameters as i32,
                *first as i32,
                *parts,
                (places * lanes.pitch) as i64,
                lanes.pitch as i32,
                kept,
                kept_count,
                lanes.most_kept as i32,
                packed as i32,
                sums,
                sent + (node * row * size_of::<f32>()) as u64
            )?;
        }
        let (lane_stride, part_stride) = (packed as i64, row as i64);
        let received = self.received.as_ref().map_or(0, |buffer| at(buffer, 0));
        let count = share.most_nodes() * row;
        match (&self.way, self.reduction) {
            (Way::Nccl(nccl), Reduction::Nccl) => {
                nccl.all_reduce(sent, row, gpu.stream.cu_stream())?;
                return Ok(Sum { from: sent, parts: Parts::leaves(1), lane_stride, part_stride });
            }
            (Way::Nccl(nccl), Reduction::Reproducible) => nccl.all_gather(sent, received, count, gpu.stream.cu_stream())?,
            (Way::Mpi, _) => {
                if let (Some(sent), Some(received)) = (&self.sent, &mut self.received) {
                    let mine = gpu.download(sent, 0, count)?;
                    let mut all = Vec::new();
                    group.all_gather(&mine, &vec![count; group.size()], &mut all);
                    gpu.stream.memcpy_htod(&all, &mut received.slice_mut(..all.len())).doing("take the other ranks' gradients")?;
                }
            }
        }
        Ok(Sum { from: received, parts: share.received(), lane_stride, part_stride })
    }

    /// Waits until the stream is done, as long as all ranks of the group are there.
    pub fn wait(&self, gpu: &Gpu) -> Result<()> {
        match &self.way {
            Way::Nccl(nccl) => nccl.wait(gpu.stream.cu_stream()),
            Way::Mpi => gpu.wait(),
        }
    }
}
