//! How the ranks of a group add up their gradients: what travels, and by which way.

use std::time::Duration;

use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::gpu::Gpu;
use super::lanes::CudaLanes;
use super::launch::{Kernels, Parts};
use super::nccl::Nccl;
use super::partition::BatchPartition;
use super::pointer::{ConstPointer, at, at_mut};
use crate::Result;
use crate::comm::{Communicator, Exchanged, Rows, add};
use crate::settings::Reduction;

/// The library that carries gradients between the ranks of a group.
enum Transport {
    /// Between GPUs, in the stream.
    Nccl(Nccl),
    /// Through the hosts: ranks that share a GPU cannot use NCCL.
    Mpi(Exchanged),
}

/// A group's gradient sums. Kept entries alone travel, each lane's with its loss behind them.
pub(super) struct Exchange {
    transport: Transport,
    reduction: Reduction,
    /// `[node][lane][packed]`: what this rank sends.
    sent: Option<CudaSlice<f32>>,
    /// `[rank][node][lane][packed]`: what NCCL's all-gather writes. An all-reduce and a sum over MPI put the total into `sent`, and leave this buffer
    /// unused.
    received: Option<CudaSlice<f32>>,
}

/// Partial sums that the update adds up: where they begin, which parts they are, and how many floats lie from one lane or part to the next.
pub(super) struct PartialSums<'a> {
    pub from: ConstPointer<'a, f32>,
    pub parts: Parts,
    pub lane_stride: usize,
    pub part_stride: usize,
}

/// Floats of a lane's kept gradients and loss.
fn packed(lanes: &CudaLanes) -> usize {
    (lanes.most_kept + 1).next_multiple_of(4)
}

impl Exchange {
    /// Every rank of the group must call it.
    pub fn new(group: &dyn Communicator, shared: bool, reduction: Reduction, deadline: Duration) -> Result<Exchange> {
        let (transport, reduction) = if shared {
            (Transport::Mpi(Exchanged::default()), Reduction::Reproducible)
        } else {
            (Transport::Nccl(Nccl::new(group, deadline)?), reduction)
        };
        Ok(Exchange { transport, reduction, sent: None, received: None })
    }

    /// Whether a step can be recorded with its exchange.
    pub fn in_stream(&self) -> bool {
        matches!(self.transport, Transport::Nccl(_))
    }

    /// Makes room for these lanes; where the buffers are afterwards tells whether a recorded step still serves.
    pub fn prepare(&mut self, gpu: &Gpu, lanes: &CudaLanes, partition: &BatchPartition, ranks: usize) -> Result<[u64; 2]> {
        let nodes = match self.reduction {
            Reduction::Reproducible => partition.most_nodes(),
            Reduction::Nccl => 1,
        };
        let size = nodes * lanes.len() * packed(lanes);
        let sent = gpu.make_room(&mut self.sent, size)?;
        let gathers = self.in_stream() && self.reduction == Reduction::Reproducible;
        let received = gpu.make_room(&mut self.received, if gathers { ranks * size } else { 0 })?;
        Ok([sent, received])
    }

    /// The sum over the ranks of `sums`, `[lane][leaf][pitch]` of this rank, for the update to finish. [`Exchange::prepare`] has made room.
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        kernels: &Kernels,
        group: &dyn Communicator,
        lanes: &CudaLanes,
        partition: &BatchPartition,
        sums: &CudaSlice<f32>,
    ) -> Result<PartialSums<'_>> {
        let (Some(sent), Some(received)) = (&mut self.sent, &mut self.received) else {
            return Err(refuse("expected room for the ranks' gradients, found none; report this as a bug"));
        };
        let (packed, places) = (packed(lanes), partition.own_leaves().len());
        let row = lanes.len() * packed;
        let nodes = match self.reduction {
            Reduction::Reproducible => partition.sent(),
            // A rank without examples adds zeros.
            Reduction::Nccl => vec![(0, Parts::leaves(places))],
        };
        for (node, (first, parts)) in nodes.iter().enumerate() {
            // SAFETY: there is a row in `sent` for each node, and `sums` has `places` leaves of each lane; kept indices are the network's
            // (`Task::check_start`).
            unsafe {
                kernels.pack(
                    lanes.len(),
                    lanes.task.network.parameters() as i32,
                    *first as i32,
                    *parts,
                    (places * lanes.pitch) as i64,
                    lanes.pitch as i32,
                    lanes.kept(),
                    Some(at(&lanes.kept_count, 0)),
                    lanes.most_kept as i32,
                    packed as i32,
                    at(sums, 0),
                    at_mut(sent, node * row),
                )
            }?;
        }
        let (from, parts) = match (&mut self.transport, self.reduction) {
            (Transport::Nccl(nccl), Reduction::Nccl) => {
                nccl.all_reduce(sent, row)?;
                (at(sent, 0), Parts::leaves(1))
            }
            (Transport::Nccl(nccl), Reduction::Reproducible) => {
                nccl.all_gather(sent, received, partition.most_nodes() * row)?;
                (at(received, 0), partition.received())
            }
            (Transport::Mpi(exchanged), _) => {
                let mut rows = Rows { columns: row, floats: gpu.download(sent, 0, nodes.len() * row)? };
                exchanged.sum(group, partition.leaves, &mut rows, add);
                gpu.write(&rows.floats[..row], &mut sent.slice_mut(..row))?;
                (at(sent, 0), Parts::leaves(1))
            }
        };
        Ok(PartialSums { from, parts, lane_stride: packed, part_stride: row })
    }

    /// Whether NCCL has failed, so that nothing but [`Exchange::abort`] is left.
    pub fn has_failed(&self) -> bool {
        matches!(&self.transport, Transport::Nccl(nccl) if nccl.has_failed())
    }

    /// Ends what is under way after an error. Recorded steps must be gone.
    pub fn abort(&self) {
        if let Transport::Nccl(nccl) = &self.transport {
            nccl.abort();
        }
    }

    /// Waits until the stream is done, as long as all ranks of the group are there.
    pub fn wait(&self, gpu: &Gpu) -> Result<()> {
        match &self.transport {
            Transport::Nccl(nccl) => nccl.wait(&gpu.stream),
            Transport::Mpi(_) => gpu.wait(),
        }
    }
}
