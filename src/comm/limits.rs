//! How much memory a rank may take: the least of what the host, control groups, `ulimit` and Slurm allow.

use std::fmt;
use std::path::Path;

use super::Communicator;
use super::cgroup::{self, Limit};
use super::placement::ranks_of_host;
use crate::readable::si;

/// The memory that a rank may take beyond what it had when it asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes that this process had.
    pub program: u64,
    /// Ranks of this host.
    ranks: u64,
    /// The least of the limits that hold for all ranks of this host together.
    host: Option<Limit>,
    /// The least of the limits that hold for each process by itself.
    process: Option<Limit>,
}

impl MemoryLimit {
    /// No limit.
    pub const NONE: MemoryLimit = MemoryLimit { program: 0, ranks: 1, host: None, process: None };

    /// A limit of `free` bytes for each process.
    pub fn of_process(free: u64) -> MemoryLimit {
        MemoryLimit { process: Some(Limit { name: "a limit for each process".into(), bytes: free, free }), ..MemoryLimit::NONE }
    }

    /// The limit of this process, which is to have so many threads. Every rank must ask, before it takes memory.
    pub fn of(world: &dyn Communicator, threads: usize) -> MemoryLimit {
        let program = bytes_of(Path::new("/"), "proc/self/status", "VmRSS:").unwrap_or(0);
        let ranks = ranks_of_host(world);
        let variable = |name: &str| std::env::var(name).ok();
        let of_host = [host(Path::new("/")), cgroup::memory(Path::new("/")), slurm(&variable, program * ranks)];
        MemoryLimit { program, ranks, host: least(of_host), process: least(resources(threads as u64)) }
    }

    /// Whether each rank of this host can have `bytes` in all, and one of them `most`, in a `share` of the free memory.
    pub fn holds(&self, share: f64, bytes: u64, most: u64) -> bool {
        let [bytes, most] = [bytes, most].map(|bytes| bytes.saturating_sub(self.program));
        let room = |limit: &Option<Limit>, needed: u64| limit.as_ref().is_none_or(|limit| needed as f64 <= share * limit.free as f64);
        room(&self.host, bytes.saturating_mul(self.ranks - 1).saturating_add(most)) && room(&self.process, most)
    }
}

/// Describes in words which limit is the least for each rank.
impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |limit: &Limit, ranks: u64| limit.free / ranks;
        let (limit, ranks) = match (&self.host, &self.process) {
            (Some(host), Some(process)) if share(host, self.ranks) > process.free => (process, 1),
            (Some(host), _) => (host, self.ranks),
            (None, Some(process)) => (process, 1),
            (None, None) => return f.write_str("no limit known"),
        };
        write!(f, "{} free of {} by {}", si(limit.free as f64, "B"), si(limit.bytes as f64, "B"), limit.name)?;
        if ranks > 1 { write!(f, ", for {ranks} ranks") } else { Ok(()) }
    }
}

fn least(limits: impl IntoIterator<Item = Option<Limit>>) -> Option<Limit> {
    limits.into_iter().flatten().min_by_key(|limit| limit.free)
}

fn host(root: &Path) -> Option<Limit> {
    let bytes = |name| bytes_of(root, "proc/meminfo", name);
    Some(Limit { name: "the host".into(), bytes: bytes("MemTotal:")?, free: bytes("MemAvailable:")? })
}

/// Memory that Slurm promised a job on each node. Not every cluster holds a job to it by a control group: some kill it.
fn slurm(variable: &dyn Fn(&str) -> Option<String>, used: u64) -> Option<Limit> {
    let number = |name| variable(name)?.trim().parse::<u64>().ok().filter(|&number| number > 0);
    variable("SLURM_JOB_ID")?;
    let of_processors = || {
        let megabytes = number("SLURM_MEM_PER_CPU")?.saturating_mul(number("SLURM_CPUS_ON_NODE")?);
        Some((megabytes, "SLURM_MEM_PER_CPU × SLURM_CPUS_ON_NODE"))
    };
    let (megabytes, name) = number("SLURM_MEM_PER_NODE").map(|megabytes| (megabytes, "SLURM_MEM_PER_NODE")).or_else(of_processors)?;
    let bytes = megabytes.saturating_mul(1 << 20);
    Some(Limit { name: name.into(), bytes, free: bytes.saturating_sub(used) })
}

/// Addresses that the C library reserves for the allocations of a thread, and those of its stack.
const THREAD: u64 = (64 << 20) + (2 << 20);

/// Threads besides those that train: the first one, one that waits for signals, one that writes files.
const OTHER_THREADS: u64 = 3;

/// Limits that `ulimit` sets for each process.
fn resources(threads: u64) -> [Option<Limit>; 2] {
    let limit = |resource, used: &str, reserved: u64, name: &str| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure outlives the call, which writes nothing else.
        let failed = unsafe { libc::getrlimit(resource, &mut limit) } != 0;
        let bytes = limit.rlim_cur;
        let used = bytes_of(Path::new("/"), "proc/self/status", used).unwrap_or(0) + reserved;
        (!failed && limit.rlim_cur != libc::RLIM_INFINITY).then(|| Limit { name: name.into(), bytes, free: bytes.saturating_sub(used) })
    };
    [
        limit(libc::RLIMIT_AS, "VmSize:", (threads + OTHER_THREADS) * THREAD, "ulimit -v"),
        limit(libc::RLIMIT_DATA, "VmData:", 0, "ulimit -d"),
    ]
}

/// The number of bytes on the line of a file that begins with `name`.
fn bytes_of(root: &Path, file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(free: u64) -> Option<Limit> {
        Some(Limit { name: "a test".into(), bytes: 2 * free, free })
    }

    #[test]
    fn the_ranks_of_a_host_share_it() {
        let four = MemoryLimit { program: 10, ranks: 4, host: limit(4_000_000), process: None };
        assert_eq!(four.to_string(), "4.00 MB free of 8.00 MB by a test, for 4 ranks");
        assert!(four.holds(0.75, 750_010, 750_010) && !four.holds(0.75, 750_011, 750_011) && four.holds(1.0, 750_011, 750_011));
        // One rank may have more where the others have less.
        assert!(four.holds(0.75, 500_010, 1_500_010) && !four.holds(0.75, 500_010, 1_500_011));
        let limited = MemoryLimit { process: limit(100_000), ..four };
        assert_eq!(limited.to_string(), "100 kB free of 200 kB by a test");
        assert!(limited.holds(0.75, 75_010, 75_010) && !limited.holds(0.75, 10, 75_011));
        assert!(MemoryLimit::NONE.holds(0.75, u64::MAX, u64::MAX));
    }

    #[test]
    fn slurm_says_what_a_job_has_on_a_node() {
        let bytes = |variables: &[(&str, &str)]| {
            let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            slurm(&variable, 1 << 20).map(|limit| (limit.bytes >> 20, limit.free >> 20))
        };
        let job = ("SLURM_JOB_ID", "7");
        assert_eq!(bytes(&[job, ("SLURM_MEM_PER_NODE", "2048")]), Some((2048, 2047)));
        assert_eq!(bytes(&[job, ("SLURM_MEM_PER_CPU", "512"), ("SLURM_CPUS_ON_NODE", "4")]), Some((2048, 2047)));
        // No limit follows from a 0, which means all of the node's memory, from memory per processor without a number of processors, without a
        // job's number, or from a size with a unit.
        assert_eq!(bytes(&[job, ("SLURM_MEM_PER_NODE", "0")]), None);
        assert_eq!(bytes(&[job, ("SLURM_MEM_PER_CPU", "512")]), None);
        assert_eq!(bytes(&[("SLURM_MEM_PER_NODE", "2048")]), None);
        assert_eq!(bytes(&[job, ("SLURM_MEM_PER_NODE", "2G")]), None);
    }
}
