//! The GPUs that this process sees, without opening any of them.

use std::fmt;

use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::check::{Doing, refuse};
use super::libraries::{Library, find};
use crate::Result;

/// The oldest compute capability that the kernels are written for.
pub const OLDEST: (i32, i32) = (7, 0);

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Name of the GPU.
    pub name: String,
    /// Compute capability.
    pub capability: (i32, i32),
    /// Memory, in bytes.
    pub memory: u64,
    /// UUID, by which a GPU, or an instance that MIG has made of a part of one, differs from every other one.
    pub uuid: [u8; 16],
    /// Whether the UUID is of such an instance.
    pub is_mig: bool,
}

/// All GPUs that this process sees, in the driver's order.
///
/// # Errors
/// [`crate::Error::Device`] where the driver is missing, too old or sees none.
pub fn list() -> Result<Vec<Description>> {
    find(Library::Driver)?;
    let none =
        || refuse("expected a GPU, found none that this process may see; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu");
    match result::init() {
        Err(cause) if cause.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_NO_DEVICE => return Err(none()),
        outcome => outcome.doing("be initialised")?,
    }
    let count = device::get_count().doing("be counted")?;
    if count == 0 {
        return Err(none());
    }
    (0..count).map(describe).collect()
}

fn describe(ordinal: i32) -> Result<Description> {
    let gpu = device::get(ordinal).doing("be found")?;
    // SAFETY: `gpu` is a device that the driver has just given.
    let of = |attribute| unsafe { device::get_attribute(gpu, attribute) }.doing("say what it can");
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: `gpu` is a device that the driver has just given; the driver writes the UUID into a variable that is there.
    unsafe { sys::cuDeviceGetUuid_v2(&raw mut uuid, gpu) }.result().doing("say its UUID")?;
    Ok(Description {
        name: device::get_name(gpu).doing("say its name")?,
        capability: (
            of(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            of(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        // SAFETY: `gpu` is a device that the driver has just given.
        memory: unsafe { device::total_mem(gpu) }.doing("say how much memory it has")? as u64,
        uuid: uuid.bytes.map(|byte| byte as u8),
        // The function's first version gives the whole GPU's UUID.
        is_mig: device::get_uuid(gpu).doing("say its UUID")?.bytes != uuid.bytes,
    })
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uuid: String = self.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let kind = if self.is_mig { "MIG" } else { "GPU" };
        let uuid = format!("{kind}-{}-{}-{}-{}-{}", &uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]);
        let gibibytes = self.memory as f64 / f64::from(1 << 30);
        write!(f, "{}, compute capability {}.{}, {gibibytes:.1} GiB, {uuid}", self.name, self.capability.0, self.capability.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_cuda_visible_devices_takes_them() {
        let whole =
            Description { name: "H200".into(), capability: (9, 0), memory: 3 << 29, uuid: std::array::from_fn(|i| i as u8), is_mig: false };
        assert_eq!(whole.to_string(), "H200, compute capability 9.0, 1.5 GiB, GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
        let instance = Description { is_mig: true, ..whole };
        assert!(instance.to_string().ends_with(" MIG-00010203-0405-0607-0809-0a0b0c0d0e0f"), "{instance}");
    }
}
