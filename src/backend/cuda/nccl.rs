//! placeholder
use crate::Result;
pub struct Nccl;
impl Nccl {
    pub fn new(_: &dyn crate::comm::Communicator, _: std::time::Duration) -> Result<Nccl> { Err(super::check::refuse("no NCCL yet")) }
    pub fn all_reduce(&self, _: u64, _: usize, _: cudarc::driver::sys::CUstream) -> Result<()> { Ok(()) }
    pub fn all_gather(&self, _: u64, _: u64, _: usize, _: cudarc::driver::sys::CUstream) -> Result<()> { Ok(()) }
    pub fn wait(&self, _: cudarc::driver::sys::CUstream) -> Result<()> { Ok(()) }
}
