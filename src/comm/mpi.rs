//! The ranks of an MPI world.

use ::mpi::datatype::PartitionMut;
use ::mpi::environment::Universe;
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator as _, CommunicatorCollectives as _};

use super::Communicator;
use crate::{Error, Result};

/// MPI_COMM_WORLD; dropping it finalises MPI.
pub struct MpiWorld {
    world: SimpleCommunicator,
    // Declared after `world`: fields drop in order, and a communicator must go before MPI does.
    _universe: Universe,
}

impl MpiWorld {
    /// Starts MPI. Collectives are only ever called from the calling thread.
    pub fn start() -> Result<MpiWorld> {
        let (universe, _threading) = ::mpi::initialize_with_threading(::mpi::Threading::Funneled)
            .ok_or_else(|| Error::Communication { rank: 0, problem: "MPI is already running in this process; start it once".into() })?;
        Ok(MpiWorld { world: universe.world(), _universe: universe })
    }

    /// The library's own description of itself, first line.
    pub fn library() -> String {
        let version = ::mpi::environment::library_version().unwrap_or_default();
        version.lines().next().unwrap_or_default().trim_matches(['\0', ' ']).to_string()
    }
}

/// A count as MPI takes it; a message of 2³¹ elements is beyond any study's size, and the plan refuses it by memory long before.
fn count(len: usize) -> i32 {
    i32::try_from(len).expect("fewer than 2^31 elements in one message")
}

impl Communicator for MpiWorld {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>) {
        let counts: Vec<i32> = counts.iter().map(|&len| count(len)).collect();
        let offsets: Vec<i32> = counts.iter().scan(0, |end, &len| Some(std::mem::replace(end, *end + len))).collect();
        receive.resize(counts.iter().map(|&len| len as usize).sum(), 0.0);
        let mut partition = PartitionMut::new(&mut receive[..], counts, offsets);
        self.world.all_gather_varcount_into(send, &mut partition);
    }

    fn all_gather_words(&self, send: &[u64]) -> Vec<u64> {
        let mut receive = vec![0; send.len() * self.size()];
        self.world.all_gather_into(send, &mut receive[..]);
        receive
    }

    fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }
}
