//! The kernels as Rust declares them against what `kernels/` says; what NVRTC compiles for.

use std::collections::BTreeMap;

use super::{Target, declarations, source};
use crate::backend::cuda::gpu::Arithmetic;
use crate::network::{Network, NetworkName};

/// A kernel of `kernels/`: its launch bounds' threads, and names and types of its parameters.
#[derive(Debug, PartialEq)]
struct Kernel {
    threads: Option<usize>,
    parameters: Vec<(String, String)>,
}

/// The kernels of a CUDA C++ program, by name.
fn kernels(source: &str) -> BTreeMap<String, Kernel> {
    let source: String = source.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect();
    let source = source.replace("\\\n", " ");
    // Both parameter lists and numbers of threads may be macros.
    let macros: BTreeMap<&str, &str> =
        source.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' ')).map(|(name, text)| (name, text.trim())).collect();
    let expanded = |text: &str| macros.get(text.trim()).copied().unwrap_or(text).trim().to_owned();
    let mut found = BTreeMap::new();
    for declaration in source.split("extern \"C\" __global__ void").skip(1) {
        let mut declaration = declaration.trim_start();
        let mut threads = None;
        if let Some(bounds) = declaration.strip_prefix("__launch_bounds__(") {
            let (inner, rest) = bounds.split_once(')').unwrap();
            let factors = inner.split(',').next().unwrap().split('*');
            threads = Some(factors.map(|factor| expanded(factor).parse::<usize>().unwrap()).product());
            declaration = rest.trim_start();
        }
        let (name, rest) = declaration.split_once('(').unwrap();
        let parameters = expanded(rest.split_once(')').unwrap().0);
        let parameters = parameters.split(',').map(|parameter| {
            let (of, name) = parameter.trim().rsplit_once([' ', '*']).unwrap();
            let pointer = if parameter.contains('*') { "*" } else { "" };
            (name.to_owned(), of.trim().trim_end_matches('*').trim().to_owned() + pointer)
        });
        found.insert(name.to_owned(), Kernel { threads, parameters: parameters.collect() });
    }
    found
}

#[test]
fn kernels_are_declared_as_they_are_written() {
    let network = Network::new(NetworkName::Resnet8);
    let source = source(&network, Arithmetic::Single);
    let mut written = kernels(&source);
    for declaration in declarations() {
        let parameters: Vec<_> = (declaration.parameters)().into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
        let symbols = declaration.symbols_in(&source);
        assert!(!symbols.is_empty(), "{:?}", declaration.symbols);
        for symbol in symbols {
            let kernel = written.remove(&symbol).unwrap_or_else(|| panic!("kernels/ has no {symbol}, or it is declared twice"));
            assert_eq!(parameters, kernel.parameters, "{symbol}");
            let same = kernel.threads.is_none_or(|threads| declaration.threads.is_none_or(|declared| threads == declared));
            assert!(same, "{symbol}: {:?} threads", kernel.threads);
        }
    }
    assert!(written.is_empty(), "kernels that nobody declares: {:?}", written.keys());
}

#[test]
fn declarations_of_kernels_are_understood() {
    let found = kernels(
        "#define LIST \\\n    Shape c, const float* from, \\\n        u8 *to\n#define THREADS 64\n\
         extern \"C\" __global__ void __launch_bounds__(THREADS * 2, 3) one(LIST) {}\n\
         extern \"C\" __global__ void two(\n    int n, // a number\n    i64 m) { f(n, m); }\n",
    );
    let list = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect::<Vec<_>>();
    let one = Kernel { threads: Some(128), parameters: list(&[("c", "Shape"), ("from", "const float*"), ("to", "u8*")]) };
    let two = Kernel { threads: None, parameters: list(&[("n", "int"), ("m", "i64")]) };
    assert_eq!(found, BTreeMap::from([("one".to_owned(), one), ("two".to_owned(), two)]));
}

#[test]
fn machine_code_is_made_where_nvrtc_knows_the_gpu() {
    let known = [50, 75, 80, 86, 90];
    assert_eq!(Target::of((9, 0), &known), Some(Target::Machine(90)));
    assert_eq!(Target::of((10, 3), &known), Some(Target::Ptx(90)), "the driver compiles for a newer GPU");
    assert_eq!(Target::of((8, 9), &known), Some(Target::Ptx(86)));
    assert_eq!(Target::of((3, 5), &known), None);
    assert_eq!(Target::Machine(90).option(), "--gpu-architecture=sm_90");
}
