//! Every kernel, compiled by NVIDIA's own compiler for three generations of GPUs; that needs no GPU. Prints registers, and fails where a
//! kernel does not compile or spills them.
//!
//! `make nvrtc` installs the compiler, `make test` asks for it by DPS_NEED_NVRTC=1. Without it the test says that it is skipped.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use cudarc::nvrtc::{result, sys};
use dps::backend::cuda::libraries::{Library, take};
use dps::backend::cuda::{Arithmetic, architectures};
use dps::network::{Initialisation, LayerSpec, Network, NetworkName, Padding};
use dps::settings;

/// Architectures, and how the fused kernels multiply: the first has no TF32.
const VARIANTS: [(&str, Arithmetic); 6] = [
    ("sm_70", Arithmetic::Single),
    ("sm_80", Arithmetic::Single),
    ("sm_90", Arithmetic::Single),
    ("sm_80", Arithmetic::Tf32),
    ("sm_90", Arithmetic::Split),
    ("sm_90", Arithmetic::Pairs),
];

/// Registers, shared memory and spilled bytes of a kernel for an architecture, by the compiler.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    registers: u32,
    shared: u32,
    spilled: u32,
}

/// NVRTC's file: in the folder $DPS_NVRTC, else where `make nvrtc` puts it.
pub fn nvrtc() -> Option<PathBuf> {
    let made = || Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("nvrtc/nvidia/cuda_nvrtc/lib");
    let folder = std::env::var_os("DPS_NVRTC").map_or_else(made, PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().find(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so")))
}

/// The compiler's messages about `source` for `architecture`, and the machine code; an error where it does not compile.
fn compile(source: &str, (architecture, arithmetic): (&str, Arithmetic)) -> Result<(String, Vec<u8>), String> {
    let program = result::create_program(&CString::new(source).unwrap(), Some(&CString::new("kernels").unwrap())).unwrap();
    let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".into(), "--ptxas-options=-v".into()];
    options.extend(arithmetic.definition().map(str::to_owned));
    // SAFETY: the program was just made, and is not used afterwards.
    unsafe {
        let outcome = result::compile_program(program, &options);
        let log = result::get_program_log(program).unwrap();
        let mut bytes = 0;
        if outcome.is_ok() {
            sys::nvrtcGetCUBINSize(program, &mut bytes).result().unwrap();
        }
        let mut code = vec![0_u8; bytes];
        if outcome.is_ok() {
            sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()).result().unwrap();
        }
        result::destroy_program(program).unwrap();
        let log = std::ffi::CStr::from_ptr(log.as_ptr()).to_string_lossy().into_owned();
        outcome.map(|()| (log.clone(), code)).map_err(|cause| format!("{cause:?}\n{log}"))
    }
}

fn products(arithmetic: Arithmetic) -> &'static str {
    match arithmetic {
        Arithmetic::Single => "fused",
        Arithmetic::Tf32 => "TF32",
        Arithmetic::Split => "split",
        Arithmetic::Pairs => "pairs",
    }
}

fn name((architecture, arithmetic): (&str, Arithmetic)) -> String {
    if arithmetic == Arithmetic::Single { architecture.to_owned() } else { format!("{architecture} {}", products(arithmetic)) }
}

/// The number before `unit` in a message such as "ptxas info    : Used 40 registers, 8192 bytes smem".
fn before(line: &str, unit: &str) -> u32 {
    let Some(end) = line.find(unit) else { return 0 };
    line[..end].trim_end().rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap_or(0)
}

/// Resources that each kernel uses, from the messages of `ptxas -v`.
fn uses(log: &str) -> BTreeMap<String, Use> {
    let mut all = BTreeMap::<String, Use>::new();
    let mut name = String::new();
    for line in log.lines() {
        if line.contains("Compiling entry function") {
            name = line.split('\'').nth(1).unwrap().to_owned();
        }
        let kernel = all.entry(name.clone()).or_default();
        kernel.spilled += before(line, " bytes spill stores") + before(line, " bytes spill loads");
        if line.contains("Used ") {
            (kernel.registers, kernel.shared) = (before(line, " registers"), before(line, " bytes smem"));
        }
    }
    all.retain(|_, kernel| kernel.registers > 0);
    all
}

/// A network with what the paper's have not: channels that are no multiple of 4, layers that plain kernels compute, hidden fully connected layers,
/// and more classes than a thread has registers for.
fn unlike_the_papers() -> Network {
    let (same, valid) = (Padding::Same, Padding::Valid);
    let biasless =
        LayerSpec::Convolution { channels: 50, kernel: 2, stride: 1, padding: same, initialisation: Initialisation::He, bias: false };
    let layers = [
        LayerSpec::convolution(18, 5, 1, valid),
        LayerSpec::Relu,
        LayerSpec::MaxPool { size: 3, stride: 2 },
        biasless,
        LayerSpec::Relu,
        LayerSpec::AveragePool { size: 2, stride: 1 },
        LayerSpec::convolution(6, 3, 2, same),
        LayerSpec::residual(9, 1),
        LayerSpec::Relu,
        LayerSpec::Flatten,
        LayerSpec::dense(33),
        LayerSpec::Relu,
        LayerSpec::dense(100),
    ];
    Network::listed(&layers, [21, 21, 3], 100).unwrap()
}

/// The network of configs/examples/listed-residual.toml.
fn residual() -> Network {
    let study = settings::parse("listed-residual", include_str!("../../configs/examples/listed-residual.toml"), &[]).unwrap().study;
    Network::listed(&study.workload.network.layers(10), [28, 28, 1], 10).unwrap()
}

#[test]
fn every_kernel_compiles_for_every_generation_and_spills_no_register() {
    let Some(library) = nvrtc() else {
        assert!(std::env::var_os("DPS_NEED_NVRTC").is_none(), "NVRTC is not installed; run: make nvrtc");
        eprintln!("\nSKIPPED: no kernel was compiled, because NVRTC is not installed; run: make nvrtc\n");
        return;
    };
    take(Library::Nvrtc, &library).unwrap();
    let known = architectures().unwrap();
    // NVRTC 13 knows no GPU older than 7.5.
    let (variants, unknown): (Vec<_>, Vec<_>) =
        VARIANTS.into_iter().partition(|(architecture, _)| known.contains(&architecture.trim_start_matches("sm_").parse().unwrap()));
    unknown.iter().for_each(|&variant| eprintln!("\nNOT COMPILED for {}: this NVRTC does not know it\n", name(variant)));
    assert!(variants.len() >= 4, "NVRTC knows {known:?}");
    let built_in = [NetworkName::SimpleCnn, NetworkName::Resnet8].map(|name| (name.to_string(), Network::new(name)));
    let programs = [&built_in[..], &[("listed-residual".to_owned(), residual()), ("unlike".to_owned(), unlike_the_papers())]].concat();
    let source = |network, (_, arithmetic): (&str, Arithmetic)| dps::backend::cuda::source(network, arithmetic);
    let simple = source(&programs[0].1, VARIANTS[1]);
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(simple.contains(&text), "a file of kernels/ is not part of the program");
    }
    // The compiler is one: it refuses what is wrong, down to the instructions.
    assert!(compile(&simple.replace("threadIdx.x", "threadIdx.u"), VARIANTS[1]).is_err());
    assert!(compile("extern \"C\" __global__ void f() { asm(\"this is no instruction;\"); }", VARIANTS[1]).is_err());
    // A struct that is not laid out as Rust's does not compile.
    for (field, other, words) in [
        ("int row, len, before;\n};\n\nextern", "int row, len, before, more;\n};\n\nextern", "the size of MapShape"),
        ("int row, len, before;\n};\n\nextern", "int row, before, len;\n};\n\nextern", "the order of fields in MapShape"),
        ("float momentum;\n    int optimizer;", "int momentum;\n    int optimizer;", "the type of UpdateRule::momentum"),
    ] {
        assert!(simple.contains(field), "{field}");
        let problem = compile(&simple.replace(field, other), VARIANTS[1]).expect_err(words);
        assert!(problem.contains(words), "{problem}");
    }

    let mut lines =
        vec![format!("{:32}{}", "kernel", VARIANTS.iter().map(|&variant| format!("  {:>14}", name(variant))).collect::<String>())];
    let mut table = BTreeMap::<String, [String; VARIANTS.len()]>::new();
    let mut spilling = Vec::new();
    // Folder of the code whose instructions `make gpu-cost` counts.
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    std::fs::create_dir_all(&kept).unwrap();
    for variant in variants {
        let architecture = name(variant);
        for (network, layers) in &programs {
            // The newest architecture stands for all where a network has many layers.
            if network != "simple-cnn" && !architecture.starts_with("sm_90") {
                continue;
            }
            let source = source(layers, variant);
            let (log, code) = compile(&source, variant).unwrap_or_else(|problem| panic!("{architecture}, {network}: {problem}"));
            if architecture.starts_with("sm_90") && network != "unlike" {
                let file = kept.join(format!("{network}-{}", products(variant.1)));
                std::fs::write(file.with_extension("cu"), &source).unwrap();
                std::fs::write(file.with_extension("cubin"), code).unwrap();
            }
            let uses = uses(&log);
            let kernels = source.matches("extern \"C\" __global__").count();
            assert!(uses.len() >= kernels, "{architecture}: {} of {kernels} kernels in the compiler's messages:\n{log}", uses.len());
            for (name, kernel) in uses {
                if kernel.spilled > 0 {
                    spilling.push(format!("{name} of {network} for {architecture}: {} bytes", kernel.spilled));
                }
                // Kernels of no layer are the same in all networks.
                let is_layers = name.ends_with(|end: char| end.is_ascii_digit());
                let row = if is_layers { format!("{network} {name}") } else { name };
                let row = table.entry(row).or_insert_with(|| [const { String::new() }; VARIANTS.len()]);
                row[VARIANTS.iter().position(|&of| of == variant).unwrap()] = format!("{:>4} {:>6} B", kernel.registers, kernel.shared);
            }
        }
    }
    lines.extend(
        table.iter().map(|(name, columns)| format!("{name:32}{}", columns.iter().map(|text| format!("  {text:>14}")).collect::<String>())),
    );
    println!("registers a thread and shared memory a block, by {}\n{}", library.display(), lines.join("\n"));
    assert!(spilling.is_empty(), "kernels that spill registers: {}", spilling.join(", "));
}
