//! Limits of memory and processors that control groups (cgroups) of Linux, version 1 and 2, set for this process. Containers and Slurm set them.
//!
//! A group's limits hold for all groups inside it, so the process's own group and all above it are asked. Files are looked for under a root
//! folder, `/` but in tests.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// No limit: version 1 writes a number near 2^63.
const UNLIMITED: u64 = 1 << 62;

/// Most groups above each other that are asked.
const DEEPEST: usize = 64;

/// A limit of the memory of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    /// Name of the limit, in words.
    pub name: String,
    /// Bytes that the processes may have together.
    pub bytes: u64,
    /// Bytes of these that nothing has, or files' contents that the system gives up for others.
    pub free: u64,
}

/// The group with least free memory among those that limit this process's.
pub(super) fn memory(root: &Path) -> Option<Limit> {
    groups(root, "memory").into_iter().filter_map(|folder| memory_of(&folder)).min_by_key(|group| group.free)
}

/// Processors' worth of time that the groups of this process let their processes have together, the least of them.
pub(super) fn processors(root: &Path) -> Option<f64> {
    groups(root, "cpu").iter().filter_map(|folder| processors_of(folder)).min_by(f64::total_cmp)
}

fn memory_of(folder: &Path) -> Option<Limit> {
    let value = |name| number(&fs::read_to_string(folder.join(name)).ok()?);
    let bytes =
        ["memory.max", "memory.high", "memory.limit_in_bytes"].into_iter().filter_map(value).min().filter(|&limit| limit < UNLIMITED)?;
    let used = value("memory.current").or_else(|| value("memory.usage_in_bytes"))?;
    let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let stat = |name: &str| text.lines().find_map(|line| number(line.strip_prefix(name)?.strip_prefix(' ')?));
    // In version 1, the sums that include the groups inside have names that begin with `total_`.
    let files = |name: &str| stat(&format!("total_{name}")).or_else(|| stat(name)).unwrap_or(0);
    let kept = used.saturating_sub(files("inactive_file").saturating_add(files("active_file")));
    Some(Limit { name: format!("the cgroup {}", folder.display()), bytes, free: bytes.saturating_sub(kept) })
}

fn processors_of(folder: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let mut words = text.split_whitespace();
            (number(words.next()?)?, number(words.next()?)?)
        }
        // −1, which is no limit, is no number here.
        None => (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?),
    };
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The folders of the groups that this process is in for a controller of version 1, and of those of version 2; the innermost ones first.
fn groups(root: &Path, controller: &str) -> Vec<PathBuf> {
    let read = |name| fs::read_to_string(root.join(name)).unwrap_or_default();
    let mounts = read("proc/self/mountinfo");
    let own = read("proc/self/cgroup");
    own.lines().filter_map(|line| group(&mounts, line, controller)).flat_map(|(mount, path)| chain(root, &mount, &path)).collect()
}

/// Where the hierarchy of a line of `/proc/self/cgroup` is mounted, and the process's group below that; none where the line is another controller's.
fn group(mounts: &str, line: &str, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, Path::new(fields.next()?));
    let first = !controllers.is_empty();
    if first && controllers.split(',').all(|name| name != controller) {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or_default());
        let fits = if first { kind == "cgroup" && options.split(',').any(|name| name == controller) } else { kind == "cgroup2" };
        let mut before = before.split(' ').skip(3);
        let (top, mount) = (PathBuf::from(plain(before.next()?)), PathBuf::from(plain(before.next()?)));
        // In a container the mount may begin at the process's group, which the path names from outside.
        fits.then(|| (mount, path.strip_prefix(&top).unwrap_or(Path::new("")).to_owned()))
    })
}

/// A path of `mountinfo` without its octal escapes, as of a space.
fn plain(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The folders from a group up to the top of its mount; the top alone where the path leads out of the mount or nowhere.
fn chain(root: &Path, mount: &Path, path: &Path) -> Vec<PathBuf> {
    let top = root.join(mount.strip_prefix("/").unwrap_or(mount));
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::RootDir));
    let group = top.join(path.strip_prefix("/").unwrap_or(path));
    if !inside || !group.is_dir() {
        return vec![top];
    }
    group.ancestors().take_while(|folder| folder.starts_with(&top)).take(DEEPEST).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders and files of a machine, as paths with their contents.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const SECOND: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_least_of_all_groups_of_version_two_counts() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/system.slice/job_7/step_0\n"),
            ("proc/self/mountinfo", SECOND),
            ("sys/fs/cgroup/system.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/system.slice/memory.current", "9000\n"),
            ("sys/fs/cgroup/system.slice/job_7/memory.max", "1000\n"),
            ("sys/fs/cgroup/system.slice/job_7/memory.current", "700\n"),
            ("sys/fs/cgroup/system.slice/job_7/memory.stat", "anon 500\nfile 200\ninactive_file 100\nactive_file 50\n"),
            ("sys/fs/cgroup/system.slice/job_7/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/system.slice/job_7/step_0/memory.max", "2000\n"),
            ("sys/fs/cgroup/system.slice/job_7/step_0/memory.current", "600\n"),
            ("sys/fs/cgroup/system.slice/job_7/step_0/cpu.max", "max 100000\n"),
        ]);
        let name = format!("the cgroup {}", root.path().join("sys/fs/cgroup/system.slice/job_7").display());
        assert_eq!(memory(root.path()), Some(Limit { name, bytes: 1000, free: 450 }));
        assert_eq!(processors(root.path()), Some(2.5));
    }

    #[test]
    fn version_one_has_a_mount_for_each_controller() {
        let root = machine(&[
            ("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job/task\n1:cpu,cpuacct:/half\n0::/\n"),
            (
                "proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n\
                 32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n",
            ),
            ("sys/fs/cgroup/my memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/my memory/job/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/my memory/job/memory.usage_in_bytes", "3000\n"),
            ("sys/fs/cgroup/my memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 0\n"),
            ("sys/fs/cgroup/my memory/job/task/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/half/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/half/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(memory(root.path()).map(|group| (group.bytes, group.free)), Some((5000, 2500)));
        assert_eq!(processors(root.path()), Some(0.5));
    }

    #[test]
    fn a_containers_mount_begins_at_its_group() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("sys/fs/cgroup/memory.max", "4096\n"),
            ("sys/fs/cgroup/memory.current", "96\n"),
        ]);
        assert_eq!(memory(root.path()).map(|group| group.free), Some(4000));
        // A namespace that shows its groups from inside, and a path that leads out of the mount.
        for path in ["0::/\n", "0::/../../other\n", "0::/gone\n"] {
            fs::write(root.path().join("proc/self/cgroup"), path).unwrap();
            assert_eq!(memory(root.path()).map(|group| group.free), Some(4000), "{path}");
        }
    }

    #[test]
    fn nonsense_limits_nothing() {
        let files = [
            ("proc/self/cgroup", "0::/\nx\n::\n"),
            ("proc/self/mountinfo", SECOND),
            ("sys/fs/cgroup/memory.max", "much"),
            ("sys/fs/cgroup/cpu.max", "0"),
        ];
        for known in 0..=files.len() {
            let root = machine(&files[..known]);
            assert_eq!((memory(root.path()), processors(root.path())), (None, None));
        }
    }
}
