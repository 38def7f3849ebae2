//! Errors that all ranks share: where one rank fails, all end with its error.

use super::Communicator;
use super::placement::hash;
use crate::{Error, Result};

/// The result of a step that each rank takes alone: where one failed, all fail, with that rank's error. Every rank must call it.
pub fn together<T>(world: &dyn Communicator, result: Result<T>) -> Result<T> {
    let text = result.as_ref().err().map(ToString::to_string).unwrap_or_default().into_bytes();
    let code = result.as_ref().err().map_or(0, Error::exit_code);
    let all = world.all_gather_words(&[code.into(), text.len() as u64]);
    let Some(rank) = all.chunks_exact(2).position(|theirs| theirs[0] != 0) else { return result };
    let words = all.chunks_exact(2).map(|theirs| theirs[1] as usize).max().unwrap_or(0).div_ceil(8);
    let mut padded = text;
    padded.resize(8 * words, 0);
    let mine: Vec<u64> = padded.chunks_exact(8).map(|bytes| u64::from_le_bytes(std::array::from_fn(|i| bytes[i]))).collect();
    let texts = world.all_gather_words(&mine);
    if rank == world.rank() {
        return result;
    }
    let bytes: Vec<u8> = texts[rank * words..][..words].iter().flat_map(|word| word.to_le_bytes()).collect();
    let problem = String::from_utf8_lossy(&bytes[..all[2 * rank + 1] as usize]).into_owned();
    Err(Error::Elsewhere { rank, code: all[2 * rank] as u8, problem })
}

/// Checks that all ranks have the same `text`; `what` names it in the error. Every rank must call it.
///
/// # Errors
/// [`Error::Communication`] on every rank, naming the first rank that differs from rank 0.
pub fn agree(world: &dyn Communicator, what: &str, text: &str) -> Result<()> {
    let all = world.all_gather_words(&[hash(text.as_bytes())]);
    match all.iter().position(|&theirs| theirs != all[0]) {
        None => Ok(()),
        Some(rank) => Err(Error::Communication {
            rank,
            problem: format!("expected the same {what} as rank 0, found another; give every rank the same program, configuration and data"),
        }),
    }
}
