//! Which host and which processors a rank has.

use std::path::Path;

use super::{Communicator, cgroup};

/// Words of a processor mask: 1,024 processors.
const MASK: usize = 16;

/// This host's name.
pub fn host_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer outlives the call, which writes no more than the length that it is given.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    if failed { "unknown".into() } else { String::from_utf8_lossy(&name[..end]).into_owned() }
}

/// The model of this host's processors, as Linux says; where it does not, their architecture.
pub fn processor_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| Some(line.strip_prefix("model name")?.trim_start().strip_prefix(':')?.trim()));
    model.unwrap_or(std::env::consts::ARCH).to_owned()
}

/// A number for this host: ranks with the same one are on the same host.
pub fn host_hash() -> u64 {
    hash(host_name().as_bytes())
}

/// Threads for this rank: the processors it may run on, each shared out among the ranks of its host that may run on it too, and no more than its
/// share of the processors' time that its control group may use; at least one. So ranks bound to a core each get one thread, and two unbound ranks
/// on eight cores get four each. Every rank must call it.
pub fn threads(world: &dyn Communicator) -> usize {
    let mine = allowed();
    let mut words = vec![host_hash()];
    words.extend(mine);
    let all = world.all_gather_words(&words);
    let here = || all.chunks_exact(words.len()).filter(|theirs| theirs[0] == words[0]);
    let sharers = |processor: usize| here().filter(|theirs| has(&theirs[1..], processor)).count();
    let share: f64 = (0..64 * MASK).filter(|&processor| has(&mine, processor)).map(|processor| 1.0 / sharers(processor) as f64).sum();
    let quota = cgroup::processors(Path::new("/")).map_or(f64::INFINITY, |quota| quota / here().count() as f64);
    whole_threads(share.min(quota))
}

/// Threads for a share of the processors; three thirds add up to a little less than one.
fn whole_threads(share: f64) -> usize {
    ((share + 1e-6) as usize).max(1)
}

/// How many ranks this host has. Every rank must call it.
pub(super) fn ranks_of_host(world: &dyn Communicator) -> u64 {
    let host = host_hash();
    world.all_gather_words(&[host]).into_iter().filter(|&theirs| theirs == host).count().max(1) as u64
}

fn has(mask: &[u64], processor: usize) -> bool {
    mask[processor / 64] >> (processor % 64) & 1 == 1
}

/// The processors this process may run on; where the system does not say, the first ones, as many as there are.
fn allowed() -> [u64; MASK] {
    let mut mask = [0_u64; MASK];
    // SAFETY: the kernel writes no more than the size that it is told, which is the mask's, of words of which any bits are one.
    #[cfg(target_os = "linux")]
    if unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) } == 0 {
        return mask;
    }
    let count = std::thread::available_parallelism().map_or(1, usize::from).min(64 * MASK);
    (0..count).for_each(|processor| mask[processor / 64] |= 1 << (processor % 64));
    mask
}

/// FNV-1a.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Single;

    #[test]
    fn one_rank_has_all_processors_it_may_run_on() {
        let allowed: u32 = allowed().iter().map(|word| word.count_ones()).sum();
        let quota = cgroup::processors(Path::new("/")).unwrap_or(f64::INFINITY);
        assert_eq!(threads(&Single), whole_threads(quota.min(allowed.into())));
    }

    #[test]
    fn less_than_a_processor_is_a_thread() {
        assert_eq!([0.0, 0.5, 1.0, 1.9, 2.0, 7.0 / 3.0 + 2.0 / 3.0].map(whole_threads), [1, 1, 1, 1, 2, 3]);
    }
}
