//! Which device a study gets.

use super::cpu::VectorUnit;
use crate::comm::Communicator;
use crate::settings::{DeviceName, Execution, Products, Study};
use crate::{Error, Result};

/// A device that this version can train on.
pub enum Chosen {
    /// The processor's cores, by this vector unit.
    Cpu(VectorUnit),
    /// This rank's GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<super::cuda::Cuda>),
}

/// One kind of device for a study on every rank, and what a person should know of it, a sentence each: the choice where it was left to us, and a
/// cache that is not used. Every rank must call it.
///
/// # Errors
/// [`Error::Device`] for `cuda` where a rank has no usable GPU of its own, and for products or TF32 that it alone has, without one: never a
/// silent fallback.
pub fn choose(study: &Study, world: &dyn Communicator) -> Result<(Chosen, Vec<String>)> {
    let execution = &study.execution;
    let unit = VectorUnit::best();
    let wanted = match execution {
        Execution { tf32: true, .. } => Some("execution.tf32 = true".to_owned()),
        Execution { products, .. } if *products != Products::Fused => Some(format!("execution.products = \"{products}\"")),
        _ => None,
    };
    if let (DeviceName::Cpu, Some(wanted)) = (execution.device, &wanted) {
        return Err(Error::Device {
            device: "cpu".into(),
            problem: format!(
                "expected a GPU for {wanted}, found device = \"cpu\", which has 32-bit products of its own alone; change one of the two"
            ),
        });
    }
    if execution.device == DeviceName::Cpu {
        return Ok((Chosen::Cpu(unit), Vec::new()));
    }
    match (gpu(study, world), execution.device) {
        (Ok(chosen), DeviceName::Auto) => {
            let line = format!("device auto: {}", chosen.name());
            let notes = [line].into_iter().chain(chosen.uncached()).collect();
            Ok((chosen, notes))
        }
        (Err(Error::Device { problem, .. } | Error::Elsewhere { problem, .. }), DeviceName::Auto) if wanted.is_none() => {
            let why = problem.split(';').next().unwrap_or_default();
            let line = format!("device auto: CPU with {}, for want of a GPU: {why}", unit.name());
            Ok((Chosen::Cpu(unit), vec![line]))
        }
        (outcome, _) => outcome.map(|chosen| {
            let notes = chosen.uncached().into_iter().collect();
            (chosen, notes)
        }),
    }
}

impl Chosen {
    /// Why this rank does not keep what it compiles for the device, where that is so.
    fn uncached(&self) -> Option<String> {
        match self {
            Chosen::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.uncached().map(str::to_owned),
        }
    }

    /// The device's name in messages.
    pub fn name(&self) -> String {
        match self {
            Chosen::Cpu(unit) => format!("CPU with {}", unit.name()),
            #[cfg(feature = "cuda")]
            Chosen::Cuda(cuda) => cuda.name().to_owned(),
        }
    }
}

#[cfg(feature = "cuda")]
fn gpu(study: &Study, world: &dyn Communicator) -> Result<Chosen> {
    super::cuda::Cuda::open(&study.execution, world).map(|cuda| Chosen::Cuda(Box::new(cuda)))
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: &Study, _: &dyn Communicator) -> Result<Chosen> {
    Err(Error::Device {
        device: "cuda".into(),
        problem: "expected a build with the feature \"cuda\", found one without; build with it, or use --device cpu".into(),
    })
}
