//! Which folder of `src/` may import which, and that no two files import each other: read from `use` lines and whole paths, tests left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules of `src/` (folders, and files beside them), each with the modules it may import. All of those stand above it.
const MODULES: &[(&str, &[&str])] = &[
    ("exit", &[]),
    ("allocator", &["exit"]),
    ("version", &[]),
    ("readable", &[]),
    ("random", &[]),
    ("error", &["exit"]),
    ("streams", &["error", "exit"]),
    ("signals", &["exit", "streams"]),
    ("storage", &[]),
    ("child", &[]),
    ("comm", &["child", "error", "exit", "streams"]),
    ("config", &["error", "readable", "storage"]),
    ("search", &["config"]),
    ("network", &["config", "random"]),
    ("optimizer", &["config", "search"]),
    ("pruning", &["config", "network", "random"]),
    ("data", &["child", "config", "error", "random", "readable"]),
    ("records", &["config", "exit", "search"]),
    ("forecast", &["random", "readable", "records"]),
    ("backend", &["comm", "config", "data", "error", "network", "optimizer", "pruning", "readable"]),
    ("training", &["backend", "comm", "config", "error", "network", "optimizer", "pruning", "records", "search"]),
    ("journal", &["backend", "config", "error", "records", "storage", "training"]),
    ("results", &["config", "error", "records", "search", "storage"]),
    ("progress", &["forecast", "readable", "records", "streams", "training"]),
    (
        "study",
        &[
            "backend", "comm", "config", "data", "error", "exit", "forecast", "journal", "network", "progress", "pruning", "readable",
            "records", "results", "signals", "storage", "training", "version",
        ],
    ),
    ("supervise", &["error", "exit", "journal", "results", "signals", "storage", "streams", "study"]),
    ("analysis", &["config", "error", "forecast", "optimizer", "readable", "records", "results", "storage"]),
    ("doctor", &["backend", "comm", "config", "data", "error", "exit", "readable", "version"]),
    ("init", &["config", "error"]),
    ("arguments", &["config", "data", "exit", "init", "progress", "version"]),
];

/// A module as its path, and the modules that its `use` lines name, as paths that may end in an item.
type Imports = BTreeMap<Vec<String>, Vec<Vec<String>>>;

#[test]
fn no_module_imports_what_it_may_not() {
    let imports = imports();
    let found: BTreeSet<&str> = imports.keys().filter_map(|module| module.first()).map(String::as_str).collect();
    let listed: BTreeSet<&str> = MODULES.iter().map(|(importer, _)| *importer).collect();
    assert_eq!(found, listed, "every module of src/ is listed once");
    let mut used = BTreeSet::new();
    for (module, targets) in &imports {
        let Some(place) = MODULES.iter().position(|(importer, _)| Some(importer) == module.first().map(String::as_str).as_ref()) else {
            continue;
        };
        let (importer, allowed) = MODULES[place];
        for target in targets {
            // The crate's error and result are re-exported at its root.
            let name = if ["Error", "Result"].contains(&target[0].as_str()) { "error" } else { target[0].as_str() };
            assert!(name == importer || allowed.contains(&name), "{} may not import {}", module.join("::"), target.join("::"));
            used.insert((importer, name.to_owned()));
        }
    }
    for (place, (importer, allowed)) in MODULES.iter().enumerate() {
        for name in *allowed {
            assert!(MODULES[..place].iter().any(|(above, _)| above == name), "{importer} would import {name}, which stands below it");
        }
    }
    let all = MODULES.iter().flat_map(|(importer, allowed)| allowed.iter().map(move |name| (*importer, (*name).to_owned())));
    let unused: Vec<_> = all.filter(|edge| !used.contains(edge)).collect();
    assert!(unused.is_empty(), "these imports are allowed, but nobody needs them: {unused:?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = imports();
    let file = |target: &[String]| (1..=target.len()).rev().map(|length| target[..length].to_vec()).find(|path| imports.contains_key(path));
    let mut edges: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, targets) in &imports {
        // A folder's mod.rs gathers what its files offer: it is no part of their order.
        let is_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module.join("/")).is_dir();
        let is_folder = is_folder && Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module.join("/")).join("mod.rs").exists();
        if is_folder {
            continue;
        }
        let others = targets.iter().filter_map(|target| file(target)).filter(|target| target != module);
        edges.insert(module, others.collect());
    }
    // Files that import none of those left are taken away until none is left, or only circles are.
    loop {
        let left: BTreeSet<Vec<String>> = edges.keys().map(|module| (*module).clone()).collect();
        let before = edges.len();
        edges.retain(|_, targets| targets.iter().any(|target| left.contains(target)));
        if edges.len() == before {
            break;
        }
    }
    let circles: Vec<String> = edges.keys().map(|module| module.join("::")).collect();
    assert!(circles.is_empty(), "these files import each other in a circle, or import such files: {circles:?}");
}

/// The page says of each module what [`MODULES`] says, in the same order.
#[test]
fn the_page_has_the_same_modules() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md")).unwrap();
    let table = page.split_once("| module of `src/` |").expect("the page has a table of modules").1.split("\n\n").next().unwrap();
    let names = |cell: &str| -> Vec<String> {
        let names = cell.split(',').map(|name| name.trim().trim_matches('`').to_owned());
        names.filter(|name| name != "nothing").collect()
    };
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        (names(cells[0]), names(cells.last().unwrap()))
    };
    let found: Vec<_> = table.lines().skip(2).map(row).collect();
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected: Vec<_> = MODULES.iter().map(|(importer, allowed)| (owned(&[importer]), owned(allowed))).collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "a row of the page (left) is not what MODULES says (right)");
    }
    assert_eq!(found.len(), expected.len(), "modules of the page, and of MODULES");
}

#[test]
fn use_lines_are_understood() {
    let module = ["a".to_owned(), "b".to_owned()];
    let found = targets(
        &module,
        "use crate::x::{y, z::W};\n    use super::c::{\n    D,\n};\nuse self::e::F as G;\nuse std::fs;\npub use super::*;\n// crate::f\nlet y = crate::g::h();\n",
    );
    let found: Vec<String> = found.iter().map(|target| target.join("::")).collect();
    assert_eq!(found, ["x::y", "x::z::W", "a::c::D", "a::b::e::F", "g"]);
}

/// Every module of the library but its root, which re-exports.
fn imports() -> Imports {
    let mut found = Imports::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(&source).unwrap().with_extension("");
            let mut module: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.last().is_some_and(|name| name == "mod") {
                module.pop();
            }
            if module[0] == "bin" || module == ["lib"] {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            found.insert(module.clone(), targets(&module, text));
        }
    }
    assert!(found.len() > 100, "src/ was not found");
    found
}

/// What the `use` lines of a module name, and what its other lines name by a whole path, from the crate's root on.
fn targets(module: &[String], text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("use ") {
        let before = rest[..start].lines().last().unwrap_or_default();
        let is_statement = rest[..start].ends_with('\n') || ["", "pub", "pub(super)", "pub(crate)"].contains(&before.trim());
        let Some(length) = rest[start..].find(';') else { break };
        if is_statement {
            let tree: String = rest[start + 4..start + length].split_whitespace().collect::<Vec<_>>().join(" ");
            expand(Vec::new(), &tree, &mut found);
        }
        rest = &rest[start + 4..];
    }
    let absolute = |path: Vec<String>| {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let base = match path[0].as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len() - ups].to_vec(),
            _ => return None,
        };
        let own = path.into_iter().skip(ups.max(1)).filter(|part| part != "*" && part != "self");
        Some(base.into_iter().chain(own).collect::<Vec<String>>()).filter(|path| !path.is_empty() && path != &module[..module.len() - 1])
    };
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//") && !line.contains("use crate::"));
    let whole = lines.flat_map(|line| line.match_indices("crate::").map(move |(at, word)| &line[at + word.len()..]));
    let name = |rest: &str| rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect::<String>();
    let whole = whole.map(name).filter(|name| !name.is_empty()).map(|name| vec![name]);
    found.into_iter().filter_map(absolute).chain(whole).collect()
}

/// The paths of a `use` tree, `as` names left out.
fn expand(prefix: Vec<String>, tree: &str, found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    match tree.split_once("::{") {
        Some((head, inner)) if !head.contains(',') => {
            let prefix: Vec<String> = prefix.into_iter().chain(head.split("::").map(str::to_owned)).collect();
            let inner = inner.strip_suffix('}').unwrap_or(inner);
            let (mut depth, mut part) = (0, String::new());
            for letter in inner.chars().chain([',']) {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        let part = std::mem::take(&mut part);
                        if !part.trim().is_empty() {
                            expand(prefix.clone(), &part, found);
                        }
                        continue;
                    }
                    _ => {}
                }
                part.push(letter);
            }
        }
        _ => {
            let path = tree.split(" as ").next().unwrap_or_default();
            found.push(prefix.into_iter().chain(path.split("::").map(|part| part.trim().to_owned())).collect());
        }
    }
}
