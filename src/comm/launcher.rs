//! Who started this process, by what launchers leave in the environment of those they start.

use std::env;

/// Variables with a process's number among those that its launcher started: Open MPI's, MPICH's and Intel's, and PMIx's (srun, prterun).
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

/// How the variables of launchers begin, of those, too, that give no number: mpirun, srun and sbatch, PALS, ALPS, Flux, MVAPICH.
const PREFIXES: [&str; 9] = ["OMPI_", "PMI_", "PMIX_", "PRTE_", "SLURM_PROCID", "PALS_", "ALPS_", "FLUX_", "MV2_"];

/// This process's number as its launcher says, before MPI is started; 0 where none does.
pub fn rank() -> usize {
    let mut names = RANKS.iter().chain(&["SLURM_PROCID"]);
    names.find_map(|name| env::var(name).ok()?.parse().ok()).unwrap_or(0)
}

/// Whether an MPI launcher started this process.
pub fn is_certain() -> bool {
    RANKS.iter().any(|name| env::var_os(name).is_some())
}

/// Whether a launcher may have started this process. A process on its own need not start MPI, which may not be able to: Open MPI starts a program of its own
/// for such a process, and ends it without a word of ours where it does not find that program.
pub fn is_possible() -> bool {
    env::vars_os().any(|(name, _)| PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())))
}
