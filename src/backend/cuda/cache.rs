//! The cache of compiled kernels: a folder of the user's own. A GPU runs what a file of it holds, so nothing is taken from a folder or a file that
//! somebody else owns or may write to.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::readable::first_line;
use crate::storage::open_regular;

/// Bytes of a file at most: far more than the kernels of a network.
const MOST_BYTES: u64 = 1 << 30;

/// The folder, which has been looked at.
#[derive(Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    /// `dps` in the user's cache folder ($XDG_CACHE_HOME or ~/.cache), made where it is not there, for nobody else to read. None where the
    /// environment names no such folder.
    ///
    /// # Errors
    /// A sentence: why it is not used.
    pub(super) fn open() -> Option<Result<Cache, String>> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Some(Cache::at(&set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("dps")))
    }

    fn at(folder: &Path) -> Result<Cache, String> {
        let unused = |path: &Path, why: String| {
            let path = first_line(&path.display().to_string());
            format!(
                "compiled kernels are not kept in {}, nor taken from there, since {path} {why}",
                first_line(&folder.display().to_string())
            )
        };
        let failed = |cause: io::Error| unused(folder, format!("cannot be used ({cause})"));
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            // The path exists and leads to no folder, as a file or a broken link does: `is_dir` below refuses both.
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
            other => other.map_err(failed)?,
        }
        let found = fs::symlink_metadata(folder).map_err(failed)?;
        if !found.is_dir() {
            return Err(unused(folder, "is no folder; move it away".to_owned()));
        }
        distrusted(&found).map_or(Ok(()), |why| Err(unused(folder, why)))?;
        // Earlier versions of dps made the folder readable for everybody.
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
            let path = entry.path();
            let is_code = ["cubin", "ptx"].iter().any(|kind| path.extension() == Some(OsStr::new(kind)));
            let why = match fs::symlink_metadata(&path) {
                Ok(found) if is_code && !found.is_file() => Some("is no regular file; remove it".to_owned()),
                Ok(found) if is_code => distrusted(&found),
                _ => None,
            };
            why.map_or(Ok(()), |why| Err(unused(&path, why)))?;
        }
        Ok(Cache(folder.to_owned()))
    }

    /// The code in the file of that name, where it is whole and nobody else can have written it.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let file = open_regular(&self.0.join(name), OpenOptions::new().read(true)).ok()?;
        // The open file is checked again: since the folder was checked, the name may have gone to another file.
        let found = file.metadata().ok().filter(|found| distrusted(found).is_none() && found.len() <= MOST_BYTES)?;
        let mut bytes = Vec::with_capacity(found.len() as usize);
        file.take(found.len()).read_to_end(&mut bytes).ok()?;
        let (sum, code) = bytes.split_at_checked(64)?;
        (sum == seal(name, code).as_bytes()).then(|| code.to_vec())
    }

    /// Writes a file that other ranks may be reading or writing at the same time.
    pub fn keep(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let mut temporary = tempfile::NamedTempFile::new_in(&self.0)?;
        temporary.write_all(seal(name, code).as_bytes())?;
        temporary.write_all(code)?;
        temporary.persist(self.0.join(name))?;
        Ok(())
    }
}

/// Why a file or folder is not trusted and what to do, as a clause, where another user owns it or may write to it; else none.
fn distrusted(found: &Metadata) -> Option<String> {
    // SAFETY: it reads a number of this process and cannot fail.
    let user = unsafe { libc::geteuid() };
    match (found.uid(), found.mode() & 0o022) {
        (owner, _) if owner != user => {
            Some(format!("belongs to user {owner}, and this is user {user}; remove it, or name another folder by XDG_CACHE_HOME"))
        }
        (_, 0) => None,
        _ => Some(format!("may be written to by others (mode {:o}); remove it", found.mode() & 0o777)),
    }
}

/// SHA-256 in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// First bytes of a file: a sum of its name and its code, so that neither a damaged file is loaded, which a driver might take all the same, nor one
/// that got the name of another.
fn seal(name: &str, code: &[u8]) -> String {
    hexadecimal(&[name.as_bytes(), b"\n", code].concat())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn whole_files_of_the_users_own_are_taken_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new/dps");
        let cache = Cache::at(&place).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
        cache.keep("a.cubin", b"code").unwrap();
        let file = place.join("a.cubin");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o077, 0);
        assert_eq!(cache.read("a.cubin"), Some(b"code".to_vec()));
        assert_eq!(cache.read("none.cubin"), None);
        // Another name, a damaged byte, a file that is short.
        fs::copy(&file, place.join("b.cubin")).unwrap();
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(place.join("c.cubin"), &bytes).unwrap();
        fs::write(place.join("d.cubin"), "short").unwrap();
        for name in ["b.cubin", "c.cubin", "d.cubin"] {
            assert_eq!(cache.read(name), None, "{name}");
        }
        Cache::at(&place).unwrap();
        let refused = |spoil: &dyn Fn(&Path), words: &str| {
            spoil(&file);
            assert_eq!(cache.read("a.cubin"), None, "{words}");
            let problem = Cache::at(&place).unwrap_err();
            assert!(problem.contains(words) && problem.contains("a.cubin"), "{problem}");
            let _ = fs::remove_file(&file);
            cache.keep("a.cubin", b"code").unwrap();
        };
        refused(&|file| fs::set_permissions(file, Permissions::from_mode(0o666)).unwrap(), "written to by others (mode 666)");
        refused(&|file| fs::set_permissions(file, Permissions::from_mode(0o620)).unwrap(), "written to by others");
        refused(
            &|file| {
                fs::rename(file, file.with_extension("moved")).unwrap();
                symlink(file.with_extension("moved"), file).unwrap();
            },
            "is no regular file",
        );
        // SAFETY: it reads a number of this process.
        if unsafe { libc::geteuid() } == 0 {
            refused(&|file| chown(file, Some(65_534), None).unwrap(), "belongs to user 65534");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("dps");
        let with_mode = |mode: u32| {
            fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
            Cache::at(&place)
        };
        fs::create_dir(&place).unwrap();
        with_mode(0o755).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700, "what an earlier version made is closed");
        for mode in [0o777, 0o1777, 0o770, 0o702] {
            let problem = with_mode(mode).unwrap_err();
            assert!(problem.contains("may be written to by others") && problem.contains("remove it"), "{problem}");
        }
        with_mode(0o700).unwrap();
        let link = folder.path().join("link");
        symlink(&place, &link).unwrap();
        assert!(Cache::at(&link).unwrap_err().contains("is no folder"));
        symlink("nothing", folder.path().join("dangling")).unwrap();
        assert!(Cache::at(&folder.path().join("dangling")).is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(Cache::at(&folder.path().join("file")).unwrap_err().contains("is no folder"));
        assert!(Cache::at(Path::new("/dev/null/dps")).unwrap_err().contains("cannot be used"));
    }
}
