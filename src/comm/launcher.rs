//! The MPI launcher that started this process, recognised by the environment variables that launchers set.

use std::env;

/// Variables with a process's number among those that its launcher started: Open MPI's, MPICH's and Intel's, and PMIx's (srun, prterun).
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

/// How launchers' variables begin: those of mpirun, srun and sbatch, PALS, ALPS, Flux and MVAPICH. Some of these launchers give no number.
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

/// Whether a launcher may have started this process. A process on its own does not start MPI: Open MPI would start a helper program for it, and
/// end the process with a message of its own where the helper is not installed.
pub fn is_possible() -> bool {
    env::vars_os().any(|(name, _)| PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())))
}
