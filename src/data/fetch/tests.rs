//! Sources of all kinds, good and bad, on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::super::contents::describe;
use super::client::{LIMITS, download, run, with_extension};
use super::*;

const ONE: &[u8] = b"the first file";
const TWO: &[u8] = b"the second file, a little longer";

fn published(name: &'static str, bytes: &[u8]) -> DataFile {
    DataFile { name, bytes: bytes.len() as u64, sha256: format!("{:x}", Sha256::digest(bytes)).leak() }
}

fn files() -> [DataFile; 2] {
    [published("one-idx1-ubyte", ONE), published("two-idx3-ubyte", TWO)]
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
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> &'static str {
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
    address.leak()
}

/// Result of fetching the two files by the name of MNIST into a data folder, and everything that was said.
fn try_fetch(sources: &[Source], folder: &Path) -> (Result<PathBuf>, String) {
    let mut said = String::new();
    let result = fetch_files(DatasetName::Mnist, &files(), sources, folder, &mut |text| said += &format!("{text}\n"));
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

/// A second fetch into a folder waits for the first, and takes what the first has fetched.
#[test]
fn a_fetch_waits_for_another_one() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("mnist");
    fs::create_dir(&folder).unwrap();
    let first = fs::File::open(&folder).unwrap();
    first.lock().unwrap();
    let mut said = String::new();
    let result = fetch_files(DatasetName::Mnist, &files(), &[], data.path(), &mut |text| {
        said += &format!("{text}\n");
        if text.contains("waits") {
            fs::write(folder.join("one-idx1-ubyte"), ONE).unwrap();
            fs::write(folder.join("two-idx3-ubyte"), TWO).unwrap();
            first.unlock().unwrap();
        }
    });
    assert_eq!(result.unwrap(), folder);
    assert!(said.contains("waits for another program that is fetching mnist") && !said.contains("trying"), "{said}");
}

#[test]
fn files_put_there_by_hand_need_no_source() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("mnist");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("one.idx1-ubyte"), ONE).unwrap();
    fs::write(folder.join("two-idx3-ubyte.gz"), gzip(TWO)).unwrap();
    let (result, said) = try_fetch(&[], data.path());
    assert_eq!(result.unwrap(), folder);
    assert_eq!(entries(&folder), ["one.idx1-ubyte", "two-idx3-ubyte.gz"], "{said}");
}

#[test]
fn a_folder_elsewhere_is_copied_and_unpacked() {
    let (data, system) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(system.path().join("one-idx1-ubyte.gz"), gzip(ONE)).unwrap();
    fs::write(system.path().join("two-idx3-ubyte.gz"), gzip(TWO)).unwrap();
    let (result, _) = try_fetch(&[Source::Folder(system.path().into())], data.path());
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
    let (result, said) = try_fetch(&[Source::Web(address)], data.path());
    assert_complete(&result.unwrap());
    assert_eq!(fs::read(folder.join("one-idx1-ubyte.rejected")).unwrap(), b"the first File");
    assert!(said.contains("one-idx1-ubyte: not used: expected SHA-256") && said.contains(", found "), "{said}");
}

#[test]
fn the_next_source_is_tried_and_the_reason_of_the_last_is_said() {
    let data = tempfile::tempdir().unwrap();
    let wrong = serve(vec![("one-idx1-ubyte.gz", gzip(ONE)), ("two-idx3-ubyte.gz", gzip(b"the second file, a Little longer"))]);
    let right = serve(vec![("one-idx1-ubyte.gz", gzip(ONE)), ("two-idx3-ubyte.gz", gzip(TWO))]);
    let sources = [Source::Web(serve(vec![])), Source::Web(wrong), Source::Web(right)];
    let (result, said) = try_fetch(&sources, data.path());
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
    sources.push(Source::Web(format!("http://{closed}").leak()));
    let (result, _) = try_fetch(&sources, data.path());
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
    let web = |path: &str| Source::WebArchive(format!("{address}/{path}").leak(), known);

    let (result, said) = try_fetch(&[web("wrong"), web("right")], data.path());
    let folder = result.unwrap();
    assert_complete(&folder);
    assert_eq!(entries(&folder), ["one-idx1-ubyte", "two-idx3-ubyte"]);
    assert!(said.contains("wrong: expected"), "{said}");

    fs::write(by_hand.path().join("all.tar.gz"), &bytes).unwrap();
    let (result, _) = try_fetch(&[web("missing")], by_hand.path());
    assert_complete(&result.unwrap());
}

#[test]
fn package_clients_say_why_they_fail() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(LIMITS, "no-such-client", &[], folder.path(), &mut |_| ()).unwrap_err(), "the command no-such-client is not installed");
    let reason = run(LIMITS, "sh", &["-c", "echo no such package >&2; exit 3"], folder.path(), &mut |_| ()).unwrap_err();
    assert!(reason.contains("sh failed") && reason.ends_with("no such package"), "{reason}");
    assert_eq!(run(LIMITS, "sh", &["-c", "echo > there.tgz"], folder.path(), &mut |_| ()), Ok(()));
    assert_eq!(with_extension(folder.path(), "tgz").unwrap(), folder.path().join("there.tgz"));
    assert!(with_extension(folder.path(), "deb").is_err());
}

#[test]
fn a_data_folder_that_is_a_file_is_an_error() {
    let file = NamedTempFile::new().unwrap();
    let (result, _) = try_fetch(&[], file.path());
    assert!(result.unwrap_err().to_string().contains("the folder cannot be made"));
}

#[test]
fn a_client_that_hangs_is_spoken_of_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let limits = (Duration::from_millis(1000), Duration::from_millis(400));
    let reason = run(limits, "sleep", &["60"], folder.path(), &mut |line| said.push(line.to_owned())).unwrap_err();
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
    let read = download(&address, Duration::from_millis(700)).map(|mut body| body.read_to_end(&mut Vec::new()));
    // The reason is curl's, and no damage of the file.
    let reason = read.map_or_else(|reason| reason, |read| describe(&read.unwrap_err()));
    assert!(reason.starts_with("curl failed ("), "{reason}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}
