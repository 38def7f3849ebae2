//! HDF5 files as they may be read: regular files that have all of their values in themselves.

use std::ffi::c_uint;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Once;
use std::{env, io};

use hdf5::plist::dataset_create::Layout;
use hdf5::{Dataset, File, Group, LinkType};
use hdf5_sys::h5::herr_t;

use super::chunks::is_whole;
use super::one_line;
use crate::error::locked;

/// The first bytes of an HDF5 file, or of what follows its user block.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Groups in groups, and objects of a file, that are looked at.
const DEEPEST: usize = 8;
const MOST: usize = 10_000;

/// Opens a file, and nothing but a regular one: a pipe would be waited at for ever.
///
/// # Errors
/// The file cannot be opened, or is a folder, a pipe or a device.
pub(crate) fn regular(path: &Path) -> io::Result<fs::File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a folder, a pipe or a device"));
    }
    Ok(file)
}

/// Whether a file has HDF5's signature: at its start, or behind a user block of 512 bytes or another power of two.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn is_hdf5(file: &fs::File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut place = 0;
    while place + SIGNATURE.len() as u64 <= length {
        let mut start = [0; SIGNATURE.len()];
        file.read_exact_at(&mut start, place)?;
        if &start == SIGNATURE {
            return Ok(true);
        }
        place = (2 * place).max(512);
    }
    Ok(false)
}

/// Refuses a path that HDF5 does not take.
///
/// # Errors
/// The path is not UTF-8.
pub(crate) fn has_text_path(path: &Path) -> Result<(), String> {
    let refused = || "expected a path in UTF-8, as HDF5 takes them, found other bytes; rename the file, or its folder".to_owned();
    path.to_str().map(|_| ()).ok_or_else(refused)
}

// The binding of hdf5-sys takes a pointer, HDF5 a number.
unsafe extern "C" {
    fn H5PLset_loading_state(plugins: c_uint) -> herr_t;
}

/// Has HDF5 load filters that it lacks only from the folders that the environment names. By itself it would look in folders whose paths were compiled
/// in, with `static-hdf5` one below the folder of the build too: on another machine anybody may be able to make that folder.
fn load_named_plugins_only() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if env::var_os("HDF5_PLUGIN_PATH").is_none() {
            // SAFETY: the call takes any number, and nothing else runs in HDF5 meanwhile.
            hdf5::sync::sync(|| unsafe { H5PLset_loading_state(0) });
        }
    });
}

/// Whether this HDF5 was built with zlib, so that it compresses by deflate.
pub(crate) fn has_deflate() -> bool {
    // HDF5 looks for a plugin where it has no deflate of its own.
    load_named_plugins_only();
    hdf5::filters::deflate_available()
}

/// Opens an HDF5 file that [`is_hdf5`] has seen.
///
/// # Errors
/// HDF5's words, and what to do.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    has_text_path(path)?;
    load_named_plugins_only();
    File::open(path).map_err(|error| {
        let error = one_line(&error);
        match locked(&error) {
            Some(locked) => format!("{locked} ({error})"),
            None => format!("expected an HDF5 file, found one that is damaged, cut short or of a newer format ({error}); copy it again, or write it anew"),
        }
    })
}

/// Bytes that deflate makes of one stored byte, at most.
pub(crate) const MOST_INFLATED: u64 = 1_032;

/// Refuses a file of `length` bytes with a link, soft or to another file, or with values in another file, anywhere in its tree: reading it would open
/// whatever file, or pipe, it names. Also one with values that a file of its length cannot have, or with chunks of another length than theirs.
///
/// # Errors
/// A problem, in words that follow the file's name.
pub(crate) fn has_own_tree(file: &File, length: u64) -> Result<(), String> {
    tree(file, "", length.saturating_mul(MOST_INFLATED), &mut 0)
}

fn tree(group: &Group, prefix: &str, most: u64, seen: &mut usize) -> Result<(), String> {
    let links = group
        .links(Default::default(), Default::default())
        .map_err(|error| format!("damaged: its groups cannot be listed ({})", one_line(&error)))?;
    let shown = |name: &str| -> String { format!("{prefix}/{name}").chars().take(60).filter(|letter| !letter.is_control()).collect() };
    if let Some((name, _)) = links.iter().find(|(_, link)| link.link_type != LinkType::Hard) {
        return Err(format!("expected groups and tables of its own, found a link, {}; dps-train writes none", shown(name)));
    }
    *seen += links.len();
    if *seen > MOST || prefix.matches('/').count() > DEEPEST {
        return Err(format!("expected at most {MOST} groups and tables, at most {DEEPEST} deep, found more; dps-train writes fewer"));
    }
    for (name, _) in links {
        if let Ok(inner) = group.group(&name) {
            tree(&inner, &format!("{prefix}/{name}"), most, seen)?;
        } else if let Ok(dataset) = group.dataset(&name) {
            has_own_values(&dataset).and_then(|()| is_whole(&dataset, most)).map_err(|problem| format!("{}: {problem}", shown(&name)))?;
        }
    }
    Ok(())
}

/// Refuses a dataset of which values are in another file.
///
/// # Errors
/// A problem, in words that follow the dataset's name.
pub(crate) fn has_own_values(dataset: &Dataset) -> Result<(), String> {
    let plan = dataset.dcpl().map_err(|error| format!("the dataset cannot be opened ({}); write it again", one_line(&error)))?;
    let is_elsewhere = plan.get_external().map_or(true, |files| !files.is_empty());
    if is_elsewhere || matches!(plan.get_layout(), Ok(Layout::Virtual) | Err(_)) {
        return Err("expected values in the file itself, found them in other files; copy them into one".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdf5_sys::h5pl::H5PLget_loading_state;

    use super::*;

    #[test]
    fn plugins_are_loaded_from_a_folder_of_the_environment_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        File::create(&path).unwrap().close().unwrap();
        open(&path).unwrap();
        let mut plugins = -1;
        // SAFETY: the call writes one number.
        hdf5::sync::sync(|| unsafe { H5PLget_loading_state(&raw mut plugins) });
        assert_eq!(plugins == 0, env::var_os("HDF5_PLUGIN_PATH").is_none(), "{plugins}");
    }
}
