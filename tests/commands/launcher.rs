//! Launchers that do not fit: what they start is refused at once, instead of studies side by side that wait for each other's files.

use crate::support::study::{Study, mpirun, succeed, train};

/// Variables as srun and the mpiruns of other MPIs set them. This test is the launcher.
#[test]
fn processes_that_have_not_found_each_other_are_told_so_by_the_first_of_them() {
    let study = Study::new(&[]);
    let run = |variables: &[(&str, &str)]| {
        let output = study.measuring(train(), "x.h5", &["--plan"]).envs(variables.iter().copied()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let srun = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")];
    let (code, said) = run(&srun);
    assert_eq!(code, 5, "{said}");
    for words in ["expected 4 ranks of one study", "srun started 4 processes (SLURM_STEP_NUM_TASKS)", "srun --mpi=pmix"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The command is whole: as it stands, it runs.
    let [sentence, command] = said.lines().collect::<Vec<_>>().try_into().expect("a sentence and a command");
    assert!(sentence.ends_with("; or run"), "{sentence}");
    assert!(command.contains("mpirun -n 4 ") && command.ends_with(" --plan"), "{command}");
    let variables = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|name| (name, "1"));
    let oversubscribed = command.replacen(" -n 4", " --oversubscribe -n 4", 1);
    succeed(std::process::Command::new("sh").args(["-c", &oversubscribed]).envs(variables));
    assert_eq!(run(&[srun[0], ("SLURM_PROCID", "3")]), (5, String::new()), "the first one speaks");
    let (code, said) = run(&[("PMI_SIZE", "2"), ("PMI_RANK", "0")]);
    assert!(
        code == 5
            && said.contains("MPICH's mpirun or srun --mpi=pmi2 started 2 processes (PMI_SIZE)")
            && said.contains("built with Open MPI"),
        "{said}"
    );
    // One process, and ranks that have found each other.
    assert_eq!(run(&[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")]).0, 0);
    succeed(study.measuring(mpirun(2), "x.h5", &["--plan"]).env("SLURM_STEP_NUM_TASKS", "4"));
}
