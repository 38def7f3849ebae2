//! Which folder of `src/` may import which, and that no files import each other in a circle: read from `use` lines and whole paths, tests left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules of `src/` (folders, and files beside them), each with the modules it may import. All of those stand above it.
#[rustfmt::skip] // A name a line would hide the order.
const MODULES: &[(&str, &[&str])] = &[
    ("exit", &[]),
    ("version", &[]),
    ("readable", &[]),
    ("random", &[]),
    ("error", &["exit"]),
    ("streams", &["error", "exit", "readable"]),
    ("signals", &["streams"]),
    ("storage", &[]),
    ("statistics", &[]),
    ("child", &[]),
    ("reader", &["child", "error", "exit"]),
    ("comm", &["child", "error", "readable"]),
    ("config", &["error", "readable"]),
    ("network", &["config", "error", "random"]),
    ("optimizer", &["config", "readable"]),
    ("search", &["config", "optimizer"]),
    ("pruning", &["config", "network", "random"]),
    ("data", &["child", "config", "error", "random", "readable", "reader", "storage"]),
    ("settings", &["config", "data", "error", "network", "optimizer", "pruning", "readable", "search", "storage"]),
    ("records", &["data", "exit", "optimizer", "readable", "settings", "statistics"]),
    ("forecast", &["random", "readable", "records"]),
    ("backend", &["comm", "data", "error", "network", "optimizer", "pruning", "readable", "settings", "storage"]),
    ("training", &["backend", "comm", "error", "network", "optimizer", "pruning", "records", "settings"]),
    ("journal", &["backend", "error", "readable", "records", "settings", "storage", "training"]),
    ("results", &["error", "optimizer", "reader", "records", "search", "settings", "storage"]),
    ("progress", &["forecast", "readable", "records", "streams", "training"]),
    ("study", &[
        "backend", "comm", "data", "error", "exit", "forecast", "journal", "network", "optimizer", "progress", "pruning", "readable",
        "records", "results", "settings", "signals", "storage", "training", "version",
    ]),
    ("supervise", &["error", "exit", "journal", "results", "signals", "storage", "streams", "study"]),
    ("analysis", &[
        "data", "error", "forecast", "optimizer", "pruning", "readable", "records", "results", "search", "settings", "statistics",
        "storage",
    ]),
    ("pilot", &["analysis", "config", "network", "optimizer", "readable", "records", "results", "settings"]),
    ("doctor", &["backend", "comm", "data", "error", "exit", "readable", "reader", "version"]),
    ("init", &["config", "data", "error", "network", "optimizer", "settings"]),
    ("arguments", &["analysis", "config", "data", "exit", "init", "optimizer", "pilot", "progress", "settings", "version"]),
];

/// The folders of `src/analysis`, each with those that it may import. All of these stand above it.
const ROOMS: &[(&str, &[&str])] = &[
    ("studies", &[]),
    ("statistics", &["studies"]),
    ("chart", &[]),
    ("figures", &["studies", "statistics", "chart"]),
    ("claims", &["studies", "statistics"]),
    ("others", &["studies"]),
    ("report", &["studies", "statistics", "chart", "figures", "claims"]),
];

/// The files of `src/` but its root and the programs, each as its module's path with its code: comments, strings and tests left out.
type Files = BTreeMap<Vec<String>, String>;

/// Imports of each module, as paths from the crate's root on.
type Imports = BTreeMap<Vec<String>, Vec<Vec<String>>>;

#[test]
fn no_module_imports_what_it_may_not() {
    let imports = imports(&files());
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
fn no_room_of_the_analysis_imports_what_it_may_not() {
    let imports = imports(&files());
    let rooms = imports.iter().filter(|(module, _)| module[0] == "analysis" && module.len() > 1);
    let all: BTreeSet<(&str, &str)> = rooms
        .flat_map(|(module, targets)| targets.iter().map(move |target| (module, target)))
        .filter(|(module, target)| target[0] == "analysis" && target[1] != module[1])
        .map(|(module, target)| (module[1].as_str(), target[1].as_str()))
        .collect();
    let allowed = ROOMS.iter().flat_map(|(importer, allowed)| allowed.iter().map(move |name| (*importer, *name)));
    assert_eq!(all, allowed.collect(), "imports of the analysis's rooms (left) are those of ROOMS (right)");
    for (place, (importer, allowed)) in ROOMS.iter().enumerate() {
        let above = |name: &&str| ROOMS[..place].iter().any(|(other, _)| other == name);
        assert!(allowed.iter().all(above), "{importer} would import a room that stands below it");
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let circles = circles(&files());
    assert!(circles.is_empty(), "these files import each other in a circle: {circles:?}");
}

/// Modules that open files to write to them, and how they follow no link: `storage` and the lock say so to the system, a new configuration is made or
/// refused, and a terminal is no file.
const WRITERS: [&str; 4] = ["storage", "journal::lock", "init", "progress::terminal"];

#[test]
fn files_are_written_where_links_are_thought_of() {
    let ways = ["fs::write(", "File::create(", "fs::copy(", "fs::hard_link(", ".write(true)", ".append(true)"];
    for (module, code) in files().into_iter().filter(|(module, _)| !module.ends_with(&["tests".to_owned()])) {
        let module = module.join("::");
        let found = ways.into_iter().find(|way| code.contains(way));
        assert!(found.is_none() || WRITERS.contains(&module.as_str()), "{module} has {found:?}: write with Storage or results::publish");
    }
}

#[test]
fn circles_are_found() {
    let file = |path: &str, code: &str| (path.split("::").map(str::to_owned).collect::<Vec<_>>(), code_of(code));
    let found = |files: &[(&str, &str)]| circles(&files.iter().map(|(path, code)| file(path, code)).collect());
    let expected = ["a", "a::b"];
    assert_eq!(found(&[("a", "mod b;\nuse b::C;\nfn f(c: C) {}"), ("a::b", "use super::f;\nstruct C;")]), expected, "by a plain path");
    assert_eq!(found(&[("a", "mod b;\nfn f() { b::g() }"), ("a::b", "pub fn g() { super::f() }")]), expected, "without a use");
    assert_eq!(found(&[("a", "mod b;\npub use b::C;\nfn f(c: C) {}"), ("a::b", "use crate::a::f;")]), expected, "by what is passed on");
    let through = [("a", "mod b;\nmod c;\npub use b::D;"), ("a::b", "use super::c::E;"), ("a::c", "use super::D;")];
    assert_eq!(found(&through), ["a::b", "a::c"], "through a folder that passes it on");
    assert!(found(&[("a", "mod b;\nmod c;\npub use b::D;"), ("a::b", ""), ("a::c", "use super::D;")]).is_empty(), "a folder may gather");
    assert!(found(&[("a", "mod b;\nfn f() { b::g() }"), ("a::b", "pub fn g() {}")]).is_empty(), "a folder may use its files");
}

/// Programs end themselves; the library returns to its caller, also from threads and signal handlers. MPI_Abort, which ends the caller with the
/// others, is a method of the communicator and says so.
#[test]
fn the_library_ends_no_process() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (module, code) in files() {
        assert_eq!(end_of_the_process(&code), None, "{} may not end its caller's process", module.join("::"));
    }
    for (code, end) in [
        ("fn f() { std::process::exit(1) }", "exit"),
        ("fn f() { unsafe { libc::_exit(1) } }", "_exit"),
        ("fn f(e: clap::Error) { e.exit() }", "exit"),
        ("fn f() -> ! { std::process::abort () }", "process::abort"),
        ("flag::register_conditional_shutdown(SIGINT, 1, flag)?;", "register_conditional_shutdown"),
    ] {
        assert_eq!(end_of_the_process(&code_of(code)), Some(end), "{code}");
    }
    assert_eq!(end_of_the_process("use crate::exit;\nfn exit_code() -> u8 { exit::DONE }\nfn f() { exchange.abort() }"), None);
    let programs = ["bin/common/mod.rs", "bin/dps-train/main.rs"].map(|file| code_of(&fs::read_to_string(source.join(file)).unwrap()));
    assert_eq!(programs.each_ref().map(|code| end_of_the_process(code)), [Some("exit"), Some("register_conditional_shutdown")]);
}

/// The call in this code that would end the process, if there is one.
fn end_of_the_process(code: &str) -> Option<&'static str> {
    const ENDS: [&str; 10] = [
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "process::abort",
        "libc::abort",
        "handle_alloc_error",
        "raise",
        "emulate_default_handler",
        "register_conditional_shutdown",
    ];
    let is_call = |(at, end): (usize, &str)| {
        let (before, after) = (code[..at].chars().next_back(), &code[at + end.len()..]);
        !before.is_some_and(is_part_of_a_word) && after.trim_start().starts_with('(')
    };
    ENDS.into_iter().find(|end| code.match_indices(end).any(is_call))
}

/// A public function's error is `dps::Error`, which a caller can match on and which has an exit code. A sentence alone stays inside the library.
#[test]
fn no_public_function_fails_with_a_sentence_alone() {
    for (module, code) in files() {
        let found = sentences(&code);
        assert!(found.is_empty() || module[0] == "analysis", "{}: fails with a text, not dps::Error: {found:?}", module.join("::"));
    }
    for code in [
        "pub fn f(a: u32) -> Result<u32, String> {",
        "impl A {\n    pub fn f(\n        a: u32,\n    ) -> std::result::Result<Vec<u32>, String> {",
        "pub struct A { pub b: Result<u32, String> }",
        "pub fn f() -> Found<u32> {",
        "type Err = String;",
    ] {
        assert_eq!(sentences(code).len(), 1, "{code}");
    }
    let code = "pub(crate) fn f() -> Result<u32, String> { g() }\npub fn h() -> Result<String> { f() }\nfn i() -> Result<u32, String> {";
    assert!(sentences(code).is_empty());
}

/// The public signatures of this code whose error is a text.
fn sentences(code: &str) -> Vec<&str> {
    let public = code.split("pub ").skip(1).map(|part| part.split(['{', '}', ';']).next().unwrap_or_default());
    // The field of a public struct comes after a brace of its own.
    let is_text = |part: &&str| part.contains("Result<") && part.contains(", String>") || part.contains("-> Found<");
    public.filter(is_text).chain(code.matches("type Err = String")).collect()
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
    let module = "a::b".split("::").map(str::to_owned).collect::<Vec<_>>();
    let code = "use crate::x::{y, z::W};\n    use super::c::{\n    D,\n};\nuse self::e::F as G;\nuse h::I;\nuse std::fs;\npub use super::*;\n\
                // crate::f\nlet y = crate::g::h();\nlet z = \"crate::k\";\n";
    let files = Files::from([(module.clone(), code_of(code)), ([module, vec!["h".to_owned()]].concat(), String::new())]);
    let found: Vec<String> = imports(&files).into_values().flatten().map(|target| target.join("::")).collect();
    assert_eq!(found, ["x::y", "x::z::W", "a::c::D", "a::b::e::F", "a::b::h::I", "g::h"]);
}

fn files() -> Files {
    let mut found = Files::new();
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
            if module[0] != "bin" && module != ["lib"] {
                found.insert(module, code_of(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 100, "src/ was not found");
    found
}

/// A file's text without its tests, comments, strings and `mod` lines.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let line = |line: &str| {
        let code = line.split("//").next().unwrap();
        let (mut kept, mut inside, mut escaped) = (String::new(), false, false);
        for letter in code.chars() {
            match letter {
                '"' if !escaped => inside = !inside,
                _ if !inside => kept.push(letter),
                _ => {}
            }
            escaped = letter == '\\' && !escaped;
        }
        kept + "\n"
    };
    let is_module = |line: &&str| line.ends_with(';') && line.split_whitespace().rev().nth(1) == Some("mod");
    text.lines().filter(|line| !is_module(line)).map(line).collect()
}

/// A `use` line: the path from the crate's root on, the name that it gets here, and whether it is passed on.
struct Use {
    path: Vec<String>,
    name: String,
    is_passed_on: bool,
}

fn imports(files: &Files) -> Imports {
    let all = |module: &Vec<String>| {
        let (uses, body) = split(files, module);
        uses.into_iter().map(|found| found.path).chain(whole_paths(files, module, &body)).collect()
    };
    files.keys().map(|module| (module.clone(), all(module))).collect()
}

/// The files that lie on a circle. A folder's `mod.rs` that passes a name on without using it does not depend on the file that has it.
fn circles(files: &Files) -> Vec<String> {
    let uses: BTreeMap<&Vec<String>, (Vec<Use>, String)> = files.keys().map(|module| (module, split(files, module))).collect();
    let mut edges: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (&module, (found, body)) in &uses {
        let is_used = |one: &&Use| !one.is_passed_on || has_word(body, &one.name);
        let targets = found.iter().filter(is_used).map(|one| one.path.clone()).chain(whole_paths(files, module, body));
        let targets = targets.filter_map(|target| defined_in(&uses, &target, 0)).filter(|target| target != module);
        edges.insert(module, targets.collect());
    }
    // A file that imports none of those left is on no circle, nor is one that none of those left imports.
    loop {
        let before = edges.len();
        let left: BTreeSet<Vec<String>> = edges.keys().map(|module| (*module).clone()).collect();
        edges.retain(|_, targets| targets.iter().any(|target| left.contains(target)));
        let wanted: BTreeSet<Vec<String>> = edges.values().flatten().cloned().collect();
        edges.retain(|module, _| wanted.contains(*module));
        if edges.len() == before {
            return edges.keys().map(|module| module.join("::")).collect();
        }
    }
}

/// The file that defines what a path names, through the `use` lines that pass it on.
fn defined_in(uses: &BTreeMap<&Vec<String>, (Vec<Use>, String)>, path: &[String], depth: usize) -> Option<Vec<String>> {
    let (file, rest) = (1..=path.len()).rev().find_map(|length| Some((uses.get_key_value(&path[..length].to_vec())?, &path[length..])))?;
    let ((module, (found, _)), Some(name)) = (file, rest.first()) else { return Some(file.0.to_vec()) };
    let next = found.iter().find(|one| one.name == *name && one.path.len() > 1 && depth < 10);
    let through = next.and_then(|one| defined_in(uses, &[&one.path, &rest[1..]].concat(), depth + 1));
    Some(through.unwrap_or_else(|| module.to_vec()))
}

fn is_part_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter| !is_part_of_a_word(letter)).any(|found| found == word)
}

/// A file's `use` lines, and what is left of its code.
fn split(files: &Files, module: &[String]) -> (Vec<Use>, String) {
    let (mut found, mut body, mut rest) = (Vec::new(), String::new(), files[module].as_str());
    while let Some(start) = rest.find("use ") {
        let before = rest[..start].lines().last().unwrap_or_default().trim();
        let is_statement = rest[..start].ends_with('\n') || before.is_empty() || before == "pub" || before.starts_with("pub(");
        let Some(length) = rest[start..].find(';').filter(|_| is_statement) else {
            body += &rest[..start + 4];
            rest = &rest[start + 4..];
            continue;
        };
        body += &rest[..start];
        let tree: String = rest[start + 4..start + length].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paths = Vec::new();
        expand(Vec::new(), &tree, &mut paths);
        for (path, name) in paths {
            let path = absolute(files, module, path).filter(|path| !path.is_empty() && path != &module[..module.len() - 1]);
            found.extend(path.map(|path| Use { path, name, is_passed_on: before.starts_with("pub") }));
        }
        rest = &rest[start + length + 1..];
    }
    (found, body + rest)
}

/// A path as the file has it, from the crate's root on; none of another crate's.
fn absolute(files: &Files, module: &[String], path: Vec<String>) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (base, skipped) = match path[0].as_str() {
        "crate" => (&[][..], 1),
        "self" => (module, 1),
        "super" => (&module[..module.len() - ups], ups),
        child if files.contains_key(&[module, &[child.to_owned()]].concat()) => (module, 0),
        _ => return None,
    };
    let own = path.into_iter().skip(skipped).filter(|part| part != "*" && part != "self");
    Some(base.iter().cloned().chain(own).collect())
}

/// The paths that code names without a `use` line.
fn whole_paths(files: &Files, module: &[String], body: &str) -> Vec<Vec<String>> {
    let paths = body.split(|letter| !(is_part_of_a_word(letter) || letter == ':')).filter(|path| path.contains("::"));
    let paths = paths.map(|path| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>());
    paths.filter(|path| path.len() > 1).filter_map(|path| absolute(files, module, path)).filter(|path| !path.is_empty()).collect()
}

/// The paths of a `use` tree, each with the name that it gets.
fn expand(prefix: Vec<String>, tree: &str, found: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    match tree.split_once('{') {
        Some((head, inner)) if !head.contains(',') => {
            let prefix: Vec<String> =
                prefix.into_iter().chain(head.split("::").filter(|part| !part.is_empty()).map(str::to_owned)).collect();
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
            let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
            let path: Vec<String> = prefix.into_iter().chain(path.split("::").map(|part| part.trim().to_owned())).collect();
            let name = name.rsplit("::").next().unwrap_or(name).trim().to_owned();
            found.push((path, name));
        }
    }
}
