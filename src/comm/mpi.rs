//! The ranks of an MPI world.

use ::mpi::collective::{CommunicatorCollectives as _, Root as _};
use ::mpi::datatype::{Partition, PartitionMut};
use ::mpi::environment::Universe;
use ::mpi::topology::{Color, Communicator as _, SimpleCommunicator};

use super::Communicator;
use super::watch::{limit, watched};
use crate::{Error, Result};

/// MPI_COMM_WORLD; dropping it finalises MPI, so it must outlive every communicator split from it.
pub struct MpiWorld {
    ranks: MpiRanks,
    // Declared last: fields drop in order, and a communicator must go before MPI does.
    _started: Started,
}

/// MPI, until this is dropped. Its end waits for all ranks, under the limit of waits.
struct Started(Option<Universe>);

impl Drop for Started {
    fn drop(&mut self) {
        watched(|| drop(self.0.take()));
    }
}

impl MpiWorld {
    /// Starts MPI. Collectives are only ever called from the calling thread.
    pub fn start() -> Result<MpiWorld> {
        let (universe, _threading) = ::mpi::initialize_with_threading(::mpi::Threading::Funneled).ok_or_else(|| Error::Communication {
            rank: 0,
            problem: "expected to start MPI, found it running in this process already; start it once".into(),
        })?;
        Ok(MpiWorld { ranks: MpiRanks(universe.world()), _started: Started(Some(universe)) })
    }

    /// The world's ranks.
    pub fn ranks(&self) -> &dyn Communicator {
        &self.ranks
    }
}

/// The MPI library's own description of itself, first line.
pub fn mpi_library() -> String {
    let version = ::mpi::environment::library_version().unwrap_or_default();
    let first = version.lines().next().unwrap_or_default().split(',').next().unwrap_or_default().trim_matches('\0');
    // MPICH has a tab behind "Version:".
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Some ranks of the world.
struct MpiRanks(SimpleCommunicator);

/// Bytes that a rank receives in one message, at most: MPI counts them in 32 bits, and a checkpoint may have more.
const MOST_BYTES: usize = 1 << 30;

/// A count as MPI takes it. Callers send long arrays in pieces.
fn count(len: usize) -> i32 {
    i32::try_from(len).expect("fewer than 2^31 elements in one message")
}

/// The counts as MPI takes them, and where each rank's part begins, of parts that follow each other.
fn parts(lengths: &[usize]) -> (Vec<i32>, Vec<i32>) {
    // The last end is the largest number of all.
    count(lengths.iter().sum());
    let offsets = lengths.iter().scan(0, |end, &len| Some(count(std::mem::replace(end, *end + len))));
    (lengths.iter().map(|&len| count(len)).collect(), offsets.collect())
}

impl Communicator for MpiRanks {
    fn rank(&self) -> usize {
        self.0.rank() as usize
    }

    fn size(&self) -> usize {
        self.0.size() as usize
    }

    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>) {
        receive.resize(counts.iter().sum(), 0.0);
        let (counts, offsets) = parts(counts);
        let mut partition = PartitionMut::new(&mut receive[..], counts, offsets);
        watched(|| self.0.all_gather_varcount_into(send, &mut partition));
    }

    fn all_to_all(&self, send: &[f32], sent: &[usize], received: &[usize], receive: &mut Vec<f32>) {
        receive.resize(received.iter().sum(), 0.0);
        let (counts, offsets) = parts(sent);
        let partition = Partition::new(send, counts, offsets);
        let (counts, offsets) = parts(received);
        let mut receive = PartitionMut::new(&mut receive[..], counts, offsets);
        watched(|| self.0.all_to_all_varcount_into(&partition, &mut receive));
    }

    fn all_gather_words(&self, send: &[u64]) -> Vec<u64> {
        let mut receive = vec![0; send.len() * self.size()];
        watched(|| self.0.all_gather_into(send, &mut receive[..]));
        receive
    }

    fn broadcast(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let root = self.0.process_at_rank(0);
        let mut len = bytes.len() as u64;
        watched(|| root.broadcast_into(&mut len));
        // The bytes travel as words of 8: MPI counts elements in 32 bits, and a checkpoint may have more bytes than that.
        let mut words = vec![0_u64; len.div_ceil(8) as usize];
        bytes.resize(8 * words.len(), 0);
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        watched(|| root.broadcast_into(&mut words[..]));
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(len as usize);
        bytes
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let lengths: Vec<usize> = self.all_gather_words(&[bytes.len() as u64]).into_iter().map(|len| len as usize).collect();
        let root = self.0.process_at_rank(0);
        let is_root = self.rank() == 0;
        let mut all: Vec<Vec<u8>> = if is_root { lengths.iter().map(|&len| Vec::with_capacity(len)).collect() } else { Vec::new() };
        let piece = MOST_BYTES / self.size();
        for first in (0..lengths.iter().copied().max().unwrap_or(0)).step_by(piece) {
            let mine = &bytes[first.min(bytes.len())..(first + piece).min(bytes.len())];
            if !is_root {
                watched(|| root.gather_varcount_into(mine));
                continue;
            }
            let lengths: Vec<usize> = lengths.iter().map(|len| len.saturating_sub(first).min(piece)).collect();
            let mut received = vec![0; lengths.iter().sum()];
            let (counts, offsets) = parts(&lengths);
            let mut partition = PartitionMut::new(&mut received[..], counts, offsets);
            watched(|| root.gather_varcount_into_root(mine, &mut partition));
            drop(partition);
            let mut rest = &received[..];
            for (all, len) in all.iter_mut().zip(lengths) {
                all.extend_from_slice(rest.split_off(..len).unwrap_or_default());
            }
        }
        all
    }

    fn split(&self, color: usize) -> Box<dyn Communicator> {
        let color = Color::with_value(count(color));
        Box::new(MpiRanks(watched(|| self.0.split_by_color(color)).expect("a rank with a colour is in a communicator")))
    }

    fn limit_waits(&self, seconds: u32) {
        limit(seconds, self.rank());
    }

    fn abort(&self, code: i32) {
        self.0.abort(code)
    }
}
