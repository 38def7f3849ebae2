//! The CUDA double's own test: right programs give right numbers in every order of threads and streams, and each fault that it promises
//! to catch is caught. The ignored tests are its programs: the others run them as processes of their own, under the double.
// SAFETY of every block here: the stand-in checks each access and each handle, and some launches are wrong on purpose.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::sync::Arc;

use crate::support::double::{DEVICE, itself, passes_in_all_orders, run, run_command, under};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig, sys::cublasOperation_t};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

/// A device with the kernels of faults.cu.
struct Device {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
}

impl Device {
    fn new() -> Device {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.name().unwrap(), DEVICE);
        // One stream a test, unless it says otherwise, and then it waits by itself.
        unsafe { context.disable_event_tracking() };
        let options = CompileOptions { arch: Some("compute_80"), options: vec!["-DTWIN=1".into()], ..Default::default() };
        let image = compile_ptx_with_opts(include_str!("../cuda-double/faults.cu"), options).unwrap();
        let module = context.load_module(image).unwrap();
        Device { stream: context.new_stream().unwrap(), context, module }
    }

    fn kernel(&self, name: &str) -> CudaFunction {
        self.module.load_function(name).unwrap()
    }

    fn upload(&self, values: impl IntoIterator<Item = f32>) -> CudaSlice<f32> {
        self.stream.clone_htod(&values.into_iter().collect::<Vec<_>>()).unwrap()
    }

    fn zeros(&self, len: usize) -> CudaSlice<f32> {
        self.stream.alloc_zeros(len).unwrap()
    }

    fn download(&self, values: &CudaSlice<f32>) -> Vec<f32> {
        self.stream.clone_dtoh(values).unwrap()
    }
}

fn launch(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

fn values(len: usize, modulus: usize) -> Vec<f32> {
    (0..len).map(|i| (i % modulus) as f32 - (modulus / 2) as f32).collect()
}

#[test]
fn right_programs_are_right_in_every_order() {
    passes_in_all_orders("cuda_double::program_kernels");
    passes_in_all_orders("cuda_double::program_streams_and_graphs");
    passes_in_all_orders("cuda_double::program_cublas");
}

#[test]
#[ignore = "a program of right_programs_are_right_in_every_order"]
fn program_kernels() {
    let device = Device::new();
    let (a, b) = (values(10_003, 17), values(10_003, 5));
    let (on_a, on_b, mut out) = (device.upload(a.clone()), device.upload(b.clone()), device.zeros(10_003));
    unsafe {
        device.stream.launch_builder(&device.kernel("add")).arg(&mut out).arg(&on_a).arg(&on_b).arg(&10_003_i32).launch(launch(7, 96))
    }
    .unwrap();
    assert!(device.download(&out).iter().zip(a.iter().zip(&b)).all(|(sum, (a, b))| *sum == a + b));

    let mut out = device.zeros(2);
    unsafe { device.stream.launch_builder(&device.kernel("sum")).arg(&mut out).arg(&on_a).arg(&10_003_i32).launch(launch(9, 256)) }
        .unwrap();
    assert_eq!(device.download(&out), [a.iter().sum(), 9.0]);

    let (m, n, k) = (37, 50, 41);
    let (a, b) = (values(m * k, 7), values(k * n, 11));
    let expected: Vec<f32> = (0..m * n).map(|i| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum()).collect();
    let (on_a, on_b, mut out) = (device.upload(a), device.upload(b), device.zeros(m * n));
    let shape = LaunchConfig { grid_dim: (4, 3, 1), block_dim: (16, 16, 1), shared_mem_bytes: 2048 };
    let kernel = device.kernel("multiply");
    unsafe {
        device
            .stream
            .launch_builder(&kernel)
            .arg(&mut out)
            .arg(&on_a)
            .arg(&on_b)
            .arg(&(m as i32))
            .arg(&(n as i32))
            .arg(&(k as i32))
            .launch(shape)
    }
    .unwrap();
    assert_eq!(device.download(&out), expected);

    let mut out = device.zeros(1);
    unsafe { device.stream.launch_builder(&device.kernel("twin")).arg(&mut out).launch(launch(1, 1)) }.unwrap();
    assert_eq!(device.download(&out), [2.0], "the host's twin of a kernel in PTX");
}

#[test]
#[ignore = "a program of right_programs_are_right_in_every_order"]
fn program_streams_and_graphs() {
    let device = Device::new();
    let (kernel, stream) = (device.kernel("scale"), &device.stream);
    let scale = |stream: &Arc<CudaStream>, a: &mut CudaSlice<f32>, by: f32| unsafe {
        stream.launch_builder(&kernel).arg(a).arg(&by).arg(&8_i32).launch(launch(1, 32)).unwrap();
    };
    // Another stream that waits reads what was written.
    let (mut a, other) = (device.upload([1.0; 8]), device.context.new_stream().unwrap());
    stream.synchronize().unwrap();
    scale(stream, &mut a, 3.0);
    other.join(stream).unwrap();
    assert_eq!(other.clone_dtoh(&a).unwrap(), [3.0; 8]);
    other.synchronize().unwrap();
    // Pinned memory, read once an event has come.
    let mut pinned = unsafe { device.context.alloc_pinned::<f32>(8) }.unwrap();
    stream.memcpy_dtoh(&a, &mut pinned).unwrap();
    let begin = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    scale(stream, &mut a, 2.0);
    let end = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    end.synchronize().unwrap();
    assert_eq!(pinned.as_slice().unwrap(), [3.0; 8]);
    assert!(begin.elapsed_ms(&end).unwrap() >= 0.0);
    // A captured piece of work runs when it is replayed, and only then.
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    for _ in 0..3 {
        scale(stream, &mut a, 2.0);
    }
    let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap().unwrap();
    assert_eq!(device.download(&a), [6.0; 8]);
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(device.download(&a), [384.0; 8]);
    // Waiting inside a capture ends it.
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    assert_eq!(stream.synchronize().unwrap_err().0, sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(stream.end_capture(sys::CUgraphInstantiate_flags(0)).err().unwrap().0, sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    let (free, total) = device.context.mem_get_info().unwrap();
    let block = unsafe { stream.alloc::<u8>(1 << 20) }.unwrap();
    assert_eq!(device.context.mem_get_info().unwrap(), (free - (1 << 20), total));
    drop(block);
    assert_eq!(unsafe { stream.alloc::<u8>(total + 1) }.err().unwrap().0, sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY);
}

#[test]
#[ignore = "a program of right_programs_are_right_in_every_order"]
fn program_cublas() {
    let device = Device::new();
    let blas = CudaBlas::new(device.stream.clone()).unwrap();
    let (m, n, k, batch) = (70, 9, 33, 3);
    for (transa, transb) in [(false, false), (true, false), (false, true), (true, true)] {
        let (a, b, c) = (values(batch * m * k, 7), values(batch * k * n, 11), values(batch * m * n, 3));
        let (lda, ldb) = (if transa { k } else { m }, if transb { n } else { k });
        let mut expected = c.clone();
        for (i, to) in expected.iter_mut().enumerate() {
            let (which, column, row) = (i / (m * n), i / m % n, i % m);
            let (a, b) = (&a[which * m * k..], &b[which * k * n..]);
            let product =
                |p: usize| a[if transa { p + row * k } else { row + p * m }] * b[if transb { column + p * n } else { p + column * k }];
            *to = 2.0 * (0..k).map(product).sum::<f32>() + 0.5 * *to;
        }
        let operation = |transpose: bool| if transpose { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N };
        let gemm = GemmConfig {
            transa: operation(transa),
            transb: operation(transb),
            m: m as i32,
            n: n as i32,
            k: k as i32,
            alpha: 2.0,
            lda: lda as i32,
            ldb: ldb as i32,
            beta: 0.5,
            ldc: m as i32,
        };
        let (on_a, on_b, mut on_c) = (device.upload(a), device.upload(b), device.upload(c.clone()));
        let strided = StridedBatchedConfig {
            gemm,
            batch_size: batch as i32,
            stride_a: (m * k) as i64,
            stride_b: (k * n) as i64,
            stride_c: (m * n) as i64,
        };
        unsafe { blas.gemm_strided_batched(strided, &on_a, &on_b, &mut on_c) }.unwrap();
        assert_eq!(device.download(&on_c), expected);
        let mut one = device.upload(c);
        unsafe { blas.gemm(gemm, &on_a, &on_b, &mut one) }.unwrap();
        assert_eq!(device.download(&one)[..m * n], expected[..m * n]);
        let overlapping = StridedBatchedConfig { stride_c: 1, ..strided };
        assert!(unsafe { blas.gemm_strided_batched(overlapping, &on_a, &on_b, &mut on_c) }.is_err());
        let too_long = StridedBatchedConfig { batch_size: batch as i32 + 1, ..strided };
        assert!(unsafe { blas.gemm_strided_batched(too_long, &on_a, &on_b, &mut on_c) }.is_err());
    }
}

/// Runs the kernel of a fault with one block of 256 threads; what the stream says of it, and the 256 numbers it wrote.
fn faulty(name: &str, build: impl FnOnce(&mut cudarc::driver::LaunchArgs<'_>)) -> Result<(), DriverError> {
    let device = Device::new();
    let kernel = device.kernel(name);
    let mut arguments = device.stream.launch_builder(&kernel);
    build(&mut arguments);
    unsafe { arguments.launch(launch(1, 256)) }?;
    device.stream.synchronize()
}

/// The kernel must end the process, naming itself and the distance.
#[test]
fn an_access_outside_an_allocation_ends_the_process_with_the_kernels_name() {
    for (test, kernel, words) in [
        ("cuda_double::program_reads_behind", "reads_behind", "bytes behind the end of an allocation of 4096 bytes"),
        ("cuda_double::program_use_after_free", "scale", "argument 0"),
        ("cuda_double::program_misaligned", "misaligned", "perhaps misaligned"),
    ] {
        let (output, errors) = run(test, ("fwd", "lazy"));
        assert!(!output.status.success() && errors.contains(&format!("kernel {kernel}")) && errors.contains(words), "{test}: {errors}");
    }
}

#[test]
#[ignore = "a program of an_access_outside_an_allocation_ends_the_process_with_the_kernels_name"]
fn program_reads_behind() {
    let device = Device::new();
    let (mut out, a) = (device.zeros(1), device.zeros(1024));
    unsafe { device.stream.launch_builder(&device.kernel("reads_behind")).arg(&mut out).arg(&a).arg(&1024_i32).launch(launch(1, 1)) }
        .unwrap();
    device.stream.synchronize().unwrap();
}

#[test]
#[ignore = "a program of an_access_outside_an_allocation_ends_the_process_with_the_kernels_name"]
fn program_use_after_free() {
    let device = Device::new();
    let other = device.context.new_stream().unwrap();
    let mut a = device.upload([1.0; 8]);
    device.stream.synchronize().unwrap();
    unsafe { other.launch_builder(&device.kernel("scale")).arg(&mut a).arg(&2_f32).arg(&8_i32).launch(launch(1, 32)) }.unwrap();
    drop(a); // on its own stream, which does not wait for the other
    device.stream.synchronize().unwrap();
    other.synchronize().unwrap();
}

#[test]
#[ignore = "a program of an_access_outside_an_allocation_ends_the_process_with_the_kernels_name"]
fn program_misaligned() {
    let device = Device::new();
    let (mut out, a) = (device.zeros(4), device.zeros(8));
    unsafe { device.stream.launch_builder(&device.kernel("misaligned")).arg(&mut out).arg(&a).launch(launch(1, 1)) }.unwrap();
    device.stream.synchronize().unwrap();
}

#[test]
fn faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order() {
    passes_in_all_orders("cuda_double::program_faults_of_threads");
    passes_in_all_orders("cuda_double::program_faults_of_launches");
    // Each of these ends its context, so it has a process of its own.
    for (test, words) in [
        ("cuda_double::program_waits_apart", "__syncthreads is not the same for all"),
        ("cuda_double::program_leaves_before_the_barrier", "already gone"),
        ("cuda_double::program_half_a_warp", "full masks only"),
        ("cuda_double::program_writes_just_behind", "a write beside the allocation of 1000 bytes"),
        ("cuda_double::program_writes_before", "a write beside the allocation of 1024 bytes"),
    ] {
        for order in [("fwd", "eager"), ("rand", "lazy")] {
            let (output, errors) = run(test, order);
            assert!(output.status.success() && errors.contains(words), "{test} in {order:?}: {errors}");
        }
    }
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_faults_of_threads() {
    let device = Device::new();
    let (mut out, a) = (device.zeros(256), device.upload(values(256, 251)));
    unsafe { device.stream.launch_builder(&device.kernel("forgets_to_wait")).arg(&mut out).arg(&a).launch(launch(1, 256)) }.unwrap();
    let wrong = device.download(&out).into_iter().filter(|value| value.is_nan()).count();
    assert!((100..200).contains(&wrong), "{wrong} of 256 read before they were written");
    let mut out = device.zeros(32);
    unsafe { device.stream.launch_builder(&device.kernel("asks_a_lane_that_left")).arg(&mut out).launch(launch(1, 32)) }.unwrap();
    assert!(device.download(&out)[8..].iter().any(|value| value.is_nan()));
    let fresh = unsafe { device.stream.alloc::<f32>(7) }.unwrap();
    assert!(device.download(&fresh).iter().all(|value| value.is_nan()), "memory that nobody wrote");
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_faults_of_launches() {
    let device = Device::new();
    let mut a = device.zeros(8);
    let mut refused = |name: &str, grid: (u32, u32, u32), threads: u32, shared: u32| {
        let shape = LaunchConfig { grid_dim: grid, block_dim: (threads, 1, 1), shared_mem_bytes: shared };
        let kernel = device.kernel(name);
        let error = unsafe { device.stream.launch_builder(&kernel).arg(&mut a).arg(&1_f32).arg(&8_i32).launch(shape) }.unwrap_err();
        assert_eq!(error.0, sys::CUresult::CUDA_ERROR_INVALID_VALUE);
    };
    refused("scale", (1, 1, 1), 2048, 0);
    refused("scale", (0, 1, 1), 32, 0);
    refused("scale", (1, 70_000, 1), 32, 0);
    refused("scale", (1, 1, 1), 32, 60_000);
    refused("sum", (1, 1, 1), 512, 0);
    assert_eq!(device.module.load_function("nobody").err().unwrap().0, sys::CUresult::CUDA_ERROR_NOT_FOUND);
    // A function that the stand-in does not know is refused.
    assert_eq!(device.module.get_global("a", &device.stream).err().unwrap().0, sys::CUresult::CUDA_ERROR_NOT_SUPPORTED);
    // Another thread has no context until it says which.
    let refused = std::thread::spawn(|| unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) }).join().unwrap();
    assert_eq!(refused, sys::CUresult::CUDA_ERROR_INVALID_CONTEXT);
}

fn expect_failure(result: Result<(), DriverError>) {
    assert_eq!(result.unwrap_err().0, sys::CUresult::CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_waits_apart() {
    let out = Box::leak(Box::new(Device::new().zeros(256)));
    expect_failure(faulty("waits_apart", |arguments| {
        arguments.arg(out);
    }));
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_leaves_before_the_barrier() {
    let out = Box::leak(Box::new(Device::new().zeros(256)));
    expect_failure(faulty("leaves_before_the_barrier", |arguments| {
        arguments.arg(out).arg(&200_i32);
    }));
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_half_a_warp() {
    let out = Box::leak(Box::new(Device::new().zeros(256)));
    expect_failure(faulty("half_a_warp", |arguments| {
        arguments.arg(out);
    }));
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_writes_just_behind() {
    // 1000 bytes end 8 bytes before a guard page.
    let out = Box::leak(Box::new(Device::new().zeros(250)));
    expect_failure(faulty("writes_just_behind", |arguments| {
        arguments.arg(out).arg(&250_i32);
    }));
}

#[test]
#[ignore = "a program of faults_that_end_in_an_error_or_a_nan_are_caught_in_every_order"]
fn program_writes_before() {
    let out = Box::leak(Box::new(Device::new().zeros(256)));
    expect_failure(faulty("writes_before", |arguments| {
        arguments.arg(out);
    }));
}

/// The fault that eager streams hide and lazy ones show.
#[test]
fn a_missing_wait_between_streams_shows_in_lazy_streams() {
    let (output, errors) = run("cuda_double::program_forgets_a_stream", ("fwd", "eager"));
    assert!(output.status.success(), "{errors}");
    let (output, _) = run("cuda_double::program_forgets_a_stream", ("fwd", "lazy"));
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("left: [1.0"), "lazy streams did not show it");
}

#[test]
#[ignore = "a program of a_missing_wait_between_streams_shows_in_lazy_streams"]
fn program_forgets_a_stream() {
    let device = Device::new();
    let other = device.context.new_stream().unwrap();
    let mut a = device.upload([1.0; 8]);
    device.stream.synchronize().unwrap();
    unsafe { device.stream.launch_builder(&device.kernel("scale")).arg(&mut a).arg(&3_f32).arg(&8_i32).launch(launch(1, 32)) }.unwrap();
    assert_eq!(other.clone_dtoh(&a).unwrap(), [3.0; 8]);
}

/// Memory that is not pinned is read at once, or, by a GPU that reads the host's memory itself, when the stream comes there.
#[test]
fn memory_of_the_host_stays_until_it_is_read() {
    let name = "cuda_double::program_frees_what_the_gpu_reads";
    for (pageable, is_caught) in [("staged", false), ("late", true)] {
        let (output, errors) = run_command(name, under(&mut itself(name), ("fwd", "lazy")).env("CUDA_EMU_PAGEABLE", pageable));
        assert_eq!((output.status.success(), errors.contains("has changed on the host")), (!is_caught, is_caught), "{pageable}: {errors}");
    }
}

#[test]
#[ignore = "a program of memory_of_the_host_stays_until_it_is_read"]
fn program_frees_what_the_gpu_reads() {
    let device = Device::new();
    let mut memory = vec![1.0_f32; 8];
    let waited_for = device.stream.clone_htod(&memory).unwrap();
    device.stream.synchronize().unwrap();
    memory.fill(2.0);
    let late = device.stream.clone_htod(&memory).unwrap();
    memory.fill(3.0);
    device.stream.synchronize().unwrap();
    assert_eq!([device.download(&waited_for)[0], device.download(&late)[0]], [1.0, 2.0]);
}

#[test]
fn without_the_double_there_is_no_device_of_its_name() {
    // No product code may find the double by itself: a plain process does not.
    let output =
        under(&mut itself("cuda_double::program_forgets_a_stream"), ("fwd", "eager")).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(!output.status.success());
}
