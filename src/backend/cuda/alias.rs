//! A second name for a shared library, given at run time.
//!
//! The loader looks for a bare name first among the open libraries, by their DT_SONAME. So `alias` makes an empty library in memory, whose DT_SONAME
//! is the wanted name and whose DT_NEEDED is the wanted file. Whoever opens the wanted name afterwards gets the empty library, and dlsym finds in it
//! all symbols of the wanted file. A changed LD_LIBRARY_PATH would not do: the loader reads that variable when the process starts.

use std::ffi::CString;
#[cfg(target_os = "linux")]
use std::fs::File;
use std::io::{Error, Result, Write};
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes `name` open the library at `path`, in this process and to its end.
///
/// # Errors
/// The system's error where it has no files in memory, or no such loader.
pub fn alias(name: &str, path: &Path) -> Result<()> {
    let (_kept, place) = file_of(&image(name.as_bytes(), path.as_os_str().as_bytes()))?;
    let open = |name: &str| {
        let name = CString::new(name)?;
        // SAFETY: the name is a text of C that lives here. The image has no code that runs, and what it needs is a library that the caller would open
        // anyway.
        if unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) }.is_null() {
            return Err(Error::other("the loader does not open it"));
        }
        Ok(())
    };
    open(&place)?;
    open(name)
}

/// A file in memory with these bytes, and the path by which the loader opens it while it is kept.
#[cfg(target_os = "linux")]
fn file_of(image: &[u8]) -> Result<(File, String)> {
    // SAFETY: the name is a text that ends in a zero; the call returns a new descriptor, or a negative number.
    let descriptor = unsafe { libc::memfd_create(c"library".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nothing else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(image)?;
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, place))
}

/// A temporary file with these bytes, and its path: other systems have no files in memory that the loader opens.
#[cfg(not(target_os = "linux"))]
fn file_of(image: &[u8]) -> Result<(tempfile::NamedTempFile, String)> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(image)?;
    let place = file.path().to_str().ok_or_else(|| Error::other("the folder of temporary files has no name in UTF-8"))?.to_owned();
    Ok((file, place))
}

/// A 64-bit little-endian ELF library: a header, three program headers, a dynamic section, an empty symbol table and its hash, strings.
fn image(name: &[u8], needed: &[u8]) -> Vec<u8> {
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    const DYNAMIC: usize = HEADER + 3 * SEGMENT;
    const ENTRIES: usize = 8;
    const SYMBOLS: usize = DYNAMIC + 16 * ENTRIES;
    const HASH: usize = SYMBOLS + 24;
    const STRINGS: usize = HASH + 16;
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let strings = [b"\0", name, b"\0", needed, b"\0"].concat();
    let len = STRINGS + strings.len();

    let mut image = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // ET_DYN, its machine, version 1, no entry, program headers behind this header, no sections.
    image.extend([3_u16, machine].iter().flat_map(|field| field.to_le_bytes()));
    image.extend(1_u32.to_le_bytes());
    image.extend([0, HEADER as u64, 0].iter().flat_map(|field: &u64| field.to_le_bytes()));
    image.extend(0_u32.to_le_bytes());
    image.extend([HEADER as u16, SEGMENT as u16, 3, 0, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    // PT_LOAD of everything; PT_DYNAMIC; PT_GNU_STACK, without which the loader would make all stacks executable. All readable and
    // writable: the loader notes addresses in the dynamic section. The alignment is that of the largest pages, 64 KiB on some Arm kernels.
    for (kind, from, bytes, align) in [(1_u32, 0, len, 65_536_u64), (2, DYNAMIC, 16 * ENTRIES, 8), (0x6474_e551, 0, 0, 16)] {
        image.extend([kind, 6].iter().flat_map(|field| field.to_le_bytes()));
        let (from, bytes) = (from as u64, bytes as u64);
        image.extend([from, from, from, bytes, bytes, align].iter().flat_map(|field| field.to_le_bytes()));
    }
    // DT_SONAME, NEEDED, HASH, SYMTAB, STRTAB, STRSZ, SYMENT, NULL
    let entries = [(14, 1), (1, 2 + name.len()), (4, HASH), (6, SYMBOLS), (5, STRINGS), (10, strings.len()), (11, 24), (0, 0)]
        .map(|(tag, value)| [tag, value as u64]);
    image.extend(entries.iter().flatten().flat_map(|field: &u64| field.to_le_bytes()));
    // The symbol that every table begins with; a hash of one bucket and one symbol.
    image.extend([0; 24]);
    image.extend([1_u32, 1, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    image.extend(strings);
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_opens_under_a_name_it_does_not_have() {
        // SAFETY: the names are texts of C; the libraries are the system's and the alias of one.
        let open = |name: &std::ffi::CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        let name = c"libdps-has-no-such-name.so";
        assert!(open(name).is_null());
        // A library that every process can have.
        let real = open(c"libm.so.6");
        assert!(!real.is_null());
        // SAFETY: addresses, for which zeros are null.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the library is open, and the name a text of C.
        let symbol = unsafe { libc::dlsym(real, c"lgamma_r".as_ptr()) };
        // SAFETY: `info` is there to be written.
        assert_ne!(unsafe { libc::dladdr(symbol, &mut info) }, 0);
        // SAFETY: dladdr has found the file, whose name lives as long as the library is open.
        let path = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_str().unwrap();
        alias(name.to_str().unwrap(), Path::new(path)).unwrap();
        let found = open(name);
        assert!(!found.is_null());
        // SAFETY: the library is open, and the name a text of C.
        assert_eq!(unsafe { libc::dlsym(found, c"lgamma_r".as_ptr()) }, symbol);
        assert!(alias("libother.so", Path::new("/nobody/has/this.so")).is_err());
    }
}
