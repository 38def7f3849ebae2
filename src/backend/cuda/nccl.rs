//! A group's NCCL communicator: reductions between GPUs, in the stream of the step.
//!
//! Over `cudarc::nccl::sys`, because the safe owner there can neither abort nor ask for errors nor wait with a deadline, and its drop may
//! panic (cudarc issue 584).

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use cudarc::driver::sys::{self as driver, CUcontext, CUresult};
use cudarc::driver::{CudaSlice, CudaStream};
use cudarc::nccl::sys::{self, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::check::Doing;
use super::gpu::outcome_within;
use super::libraries::{Library, Version, find};
use super::pointer::{at, at_mut};
use crate::comm::{Communicator, abandon, agree, together};
use crate::{Error, Result};

/// How long an abort may take: NCCL's own waits for other ranks may hang in it too.
const ABORT: Duration = Duration::from_secs(10);

/// Settings of NCCL that recorded steps need to be 0.
///
/// - `NCCL_GRAPH_REGISTER`: with 1 NCCL registers the buffers of recorded steps. They come from the driver's memory pool, and NCCL asks for memory of
///   its own allocator, or of one with the same properties (NCCL's user guide, "User Buffer Registration").
/// - `NCCL_RUNTIME_CONNECT`: with 1, the default from NCCL 2.22 on, ranks may connect in the first collective by an algorithm, not as they join. They
///   then wait for each other without a deadline, and perhaps while a step is recorded.
const SETTINGS: [&str; 2] = ["NCCL_GRAPH_REGISTER", "NCCL_RUNTIME_CONNECT"];

/// Sets the settings of NCCL that recorded steps need to 0, but for those that the environment has.
///
/// # Safety
/// No other thread may run: it might read the environment.
pub unsafe fn prepare_environment() {
    for setting in SETTINGS.into_iter().filter(|setting| std::env::var_os(setting).is_none()) {
        // SAFETY: the caller promises that no other thread runs.
        unsafe { std::env::set_var(setting, "0") };
    }
}

/// The communicator of a group, one rank a GPU.
pub struct Nccl {
    /// None once the communicator was aborted or destroyed.
    communicator: Cell<Option<ncclComm_t>>,
    /// Whether a call or a wait has failed. From then on it is good for [`Nccl::abort`] alone.
    failed: Cell<bool>,
    rank: usize,
    ranks: usize,
    deadline: Duration,
    version: Version,
}

/// A value that goes to a thread which may hang, or comes back from one.
struct Sendable<T>(T);

// SAFETY: the driver lets any thread make a context its current one, also several at a time.
unsafe impl Send for Sendable<CUcontext> {}

// SAFETY: any thread may use an NCCL communicator, but one at a time. `Nccl` takes the handle out of itself before it sends the handle to a thread,
// and keeps no copy.
unsafe impl Send for Sendable<ncclComm_t> {}

// SAFETY: a code is a number; a new communicator is nobody else's than the thread's that has made it and ends with it.
unsafe impl Send for Sendable<(ncclResult_t, ncclComm_t)> {}

impl Nccl {
    /// Joins the ranks of the group; every one of them must call it, with its GPU's context current. No wait lasts longer than `deadline`,
    /// for ever where that is 0.
    ///
    /// # Errors
    /// The error is the same on every rank: [`Error::Device`] where NCCL is missing or too old on one of them, [`Error::Communication`] where they
    /// have different versions or NCCL does not get them together. A rank that cannot join hands its error to `comm::abandon` first.
    pub fn new(group: &dyn Communicator, deadline: Duration) -> Result<Nccl> {
        let version = together(group, find(Library::Nccl).map(|found| found.version))?;
        agree(group, "version of NCCL", &version.to_string())?;
        let rank = group.rank();
        let failed = |code| Error::Communication { rank, problem: explain("make a communicator", code, None) };

        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        let made = match rank {
            // SAFETY: NCCL fills the id, which is there to be written.
            0 => checked(unsafe { sys::ncclGetUniqueId(&mut id) }).map_err(failed),
            _ => Ok(()),
        };
        together(group, made)?;
        let bytes = group.broadcast(id.internal.iter().map(|&byte| byte as u8).collect());
        for (to, byte) in id.internal.iter_mut().zip(bytes) {
            *to = byte as c_char;
        }

        let mut context = std::ptr::null_mut();
        // SAFETY: the driver writes the context, or null, into a variable that is there.
        unsafe { driver::cuCtxGetCurrent(&mut context) }.result().doing("say its context")?;
        let (context, size) = (Sendable(context), group.size());
        // NCCL waits for the other ranks, for ever: so in a thread that can be left behind.
        let joined = within(deadline, move || {
            let context = context;
            let mut communicator = std::ptr::null_mut();
            // SAFETY: the context is this process's, or null, which the driver takes; NCCL writes the handle into a variable that is there, for the
            // id that all ranks have.
            let code = unsafe {
                match driver::cuCtxSetCurrent(context.0) {
                    CUresult::CUDA_SUCCESS => sys::ncclCommInitRank(&mut communicator, size as i32, id, rank as i32),
                    _ => ncclResult_t::ncclUnhandledCudaError,
                }
            };
            Sendable((code, communicator))
        });
        let joined = match joined {
            Err(cause) => Err(Error::Communication { rank, problem: format!("no thread for NCCL could be started: {cause}") }),
            Ok(Some(Sendable((code, communicator)))) => checked(code).map(|()| communicator).map_err(failed),
            Ok(None) => Err(Error::Communication {
                rank,
                problem: format!(
                    "expected NCCL to join {size} ranks within {} s (execution.deadline_seconds), waited in vain; run it with \
                     NCCL_DEBUG=INFO to see what it waits for",
                    deadline.as_secs()
                ),
            }),
        };
        // The other ranks wait in NCCL for one that cannot join, and would hear of it by `together` only after their deadline.
        let communicator = together(group, joined.inspect_err(abandon))?;
        Ok(Nccl { communicator: Cell::new(Some(communicator)), failed: Cell::new(false), rank, ranks: group.size(), deadline, version })
    }

    /// Whether a call or a wait has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// NCCL's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Sums the first `count` floats over the ranks where they lie, in the buffer's stream; in which order is NCCL's choice. Returns at once.
    ///
    /// # Errors
    /// [`Error::Communication`].
    ///
    /// # Panics
    /// Where the buffer has fewer.
    pub fn all_reduce(&self, buffer: &mut CudaSlice<f32>, count: usize) -> Result<()> {
        assert!(count <= buffer.len(), "{count} floats of a buffer of {}", buffer.len());
        let stream = buffer.stream().cu_stream();
        let at = at_mut(buffer, 0).address() as *mut std::ffi::c_void;
        // SAFETY: the buffer has so many floats (the assert), and is freed in the order of its stream; `call` gives a communicator that lives.
        self.call("add up gradients", |communicator| unsafe {
            sys::ncclAllReduce(at, at, count, ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum, communicator, stream.cast())
        })
    }

    /// Puts every rank's first `count` floats one after another, in rank order, in the stream that both buffers have: `receive` has room for
    /// all. Returns at once.
    ///
    /// # Errors
    /// [`Error::Communication`].
    ///
    /// # Panics
    /// Where a buffer is too short, or the two have different streams.
    pub fn all_gather(&self, send: &CudaSlice<f32>, receive: &mut CudaSlice<f32>, count: usize) -> Result<()> {
        assert!(count <= send.len() && self.ranks * count <= receive.len(), "buffers of {} and {}", send.len(), receive.len());
        let stream = send.stream().cu_stream();
        assert!(receive.stream().cu_stream() == stream, "two streams");
        let (from, to) = (at(send, 0).address() as *const std::ffi::c_void, at_mut(receive, 0).address() as *mut std::ffi::c_void);
        // SAFETY: the buffers have so many floats (the assert), and are freed in the order of their stream; `call` gives a communicator that lives.
        self.call("gather gradients", |communicator| unsafe {
            sys::ncclAllGather(from, to, count, ncclDataType_t::ncclFloat32, communicator, stream.cast())
        })
    }

    /// Waits until the stream is done, NCCL reports an error, or the deadline passes.
    ///
    /// # Errors
    /// [`Error::Communication`] for the last two, [`Error::Device`] where the GPU failed. [`Nccl::abort`] is the only way on then.
    pub fn wait(&self, stream: &CudaStream) -> Result<()> {
        let Some(outcome) = outcome_within(stream, self.deadline, || self.look())? else {
            self.failed.set(true);
            return Err(self.lost(format!(
                "expected the other ranks' gradients within {} s (execution.deadline_seconds), waited in vain; one of them is lost or stuck: \
                 look at its host, then run the same command again to continue",
                self.deadline.as_secs()
            )));
        };
        outcome.result().inspect_err(|_| self.failed.set(true)).doing("finish its work")
    }

    /// Asks NCCL for errors of what is under way.
    fn look(&self) -> Result<()> {
        self.call("reach the other ranks", |communicator| {
            let mut state = ncclResult_t::ncclSuccess;
            // SAFETY: `call` gives a communicator that lives; NCCL writes the state into a variable that is there.
            match unsafe { sys::ncclCommGetAsyncError(communicator, &mut state) } {
                ncclResult_t::ncclSuccess if state == ncclResult_t::ncclInProgress => ncclResult_t::ncclSuccess,
                ncclResult_t::ncclSuccess => state,
                code => code,
            }
        })
    }

    /// Calls NCCL, unless an earlier call failed.
    fn call(&self, doing: &str, call: impl FnOnce(ncclComm_t) -> ncclResult_t) -> Result<()> {
        let Some(communicator) = self.communicator.get().filter(|_| !self.failed.get()) else {
            return Err(self.lost("expected a communicator, found one that failed before; run the same command again".into()));
        };
        checked(call(communicator)).map_err(|code| {
            let problem = explain(doing, code, Some(communicator));
            self.failed.set(true);
            self.lost(problem)
        })
    }

    fn lost(&self, problem: String) -> Error {
        Error::Communication { rank: self.rank, problem }
    }

    /// Ends what is under way on this rank, for at most ten seconds. Recorded steps that use the communicator must be gone: NCCL waits for them.
    pub fn abort(&self) {
        // Whether or not the abort ends in time, this rank goes on to report the error that led to the abort.
        self.end(sys::ncclCommAbort);
    }

    /// Gives up the communicator by one of NCCL's two ways, for at most ten seconds; what NCCL says of it is ignored.
    fn end(&self, way: unsafe fn(ncclComm_t) -> ncclResult_t) {
        let Some(communicator) = self.communicator.take().map(Sendable) else { return };
        let _ = within(ABORT, move || {
            let communicator = communicator;
            // SAFETY: the handle was taken out of `self`, so that nobody else uses it or frees it.
            unsafe { way(communicator.0) }
        });
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        if self.failed.get() {
            self.abort();
        }
        // A failure now has nobody to go to, and must not hold up the end of the process.
        self.end(sys::ncclCommDestroy);
    }
}

fn checked(code: ncclResult_t) -> std::result::Result<(), ncclResult_t> {
    match code {
        ncclResult_t::ncclSuccess | ncclResult_t::ncclInProgress => Ok(()),
        code => Err(code),
    }
}

/// A sentence with NCCL's code, its text and its last error.
fn explain(doing: &str, code: ncclResult_t, communicator: Option<ncclComm_t>) -> String {
    let text = |text: *const c_char| {
        // SAFETY: the text is NCCL's, a text of C that it keeps.
        if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned() }
    };
    let (meaning, last) =
        // SAFETY: any code has a text; the communicator lives, or is null, which NCCL takes.
        unsafe { (text(sys::ncclGetErrorString(code)), text(sys::ncclGetLastError(communicator.unwrap_or(std::ptr::null_mut())))) };
    let last = if last.is_empty() { String::new() } else { format!(": {last}") };
    format!(
        "expected NCCL to {doing}, but it says {code:?} ({}), {meaning}{last}; run it with NCCL_DEBUG=INFO to see more, or with --set \
         execution.data_parallel=1 to do without NCCL",
        code as u32
    )
}

/// Returns the result of `work`, or none where that takes longer than `limit` (0: for ever); then its thread is left behind.
///
/// # Errors
/// The system's error where it starts no further thread.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Option<T>> {
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new().name("nccl".into()).spawn(move || send.send(work()))?;
    Ok(if limit.is_zero() { receive.recv().ok() } else { receive.recv_timeout(limit).ok() })
}
