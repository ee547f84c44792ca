//! System calls that have an effect on files, and the affected files.

use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// System call that changes or syncs something below the roots.
pub(super) struct Effect {
    /// Description, such as `pwrite64 aye.db-wal`.
    pub words: String,
    /// Whether the call could fail on a full disk.
    pub takes_room: bool,
}

/// Argument that names the changed file.
enum Place {
    /// File descriptor in this argument.
    Fd(usize),
    /// Path relative to a directory descriptor: the arguments that contain the descriptor and the path.
    At(usize, usize),
    Path(usize),
}

/// Condition under which an open is an effect.
enum Opens {
    /// Flags in this argument.
    Flags(usize),
    /// Flags at the start of the structure to which this argument points.
    How(usize),
    No,
}

struct Kind {
    number: libc::c_long,
    name: &'static str,
    places: &'static [Place],
    takes_room: bool,
    opens: Opens,
}

const fn kind(number: libc::c_long, name: &'static str, places: &'static [Place], takes_room: bool) -> Kind {
    Kind { number, name, places, takes_room, opens: Opens::No }
}

const FD: &[Place] = &[Place::Fd(0)];
const AT: &[Place] = &[Place::At(0, 1)];
const TWO: &[Place] = &[Place::At(0, 1), Place::At(2, 3)];

const KINDS: &[Kind] = &[
    Kind { number: libc::SYS_openat, name: "open", places: AT, takes_room: true, opens: Opens::Flags(2) },
    Kind { number: libc::SYS_openat2, name: "open", places: AT, takes_room: true, opens: Opens::How(2) },
    kind(libc::SYS_write, "write", FD, true),
    kind(libc::SYS_pwrite64, "pwrite64", FD, true),
    kind(libc::SYS_writev, "writev", FD, true),
    kind(libc::SYS_pwritev, "pwritev", FD, true),
    kind(libc::SYS_copy_file_range, "copy_file_range", &[Place::Fd(2)], true),
    kind(libc::SYS_sendfile, "sendfile", FD, true),
    kind(libc::SYS_fsync, "fsync", FD, true),
    kind(libc::SYS_fdatasync, "fdatasync", FD, true),
    kind(libc::SYS_ftruncate, "ftruncate", FD, true),
    kind(libc::SYS_fallocate, "fallocate", FD, true),
    kind(libc::SYS_renameat2, "rename", TWO, true),
    kind(libc::SYS_unlinkat, "unlink", AT, false),
    kind(libc::SYS_mkdirat, "mkdir", AT, true),
    kind(libc::SYS_mknodat, "mknod", AT, true),
    kind(libc::SYS_linkat, "link", TWO, true),
    kind(libc::SYS_symlinkat, "symlink", &[Place::At(1, 2)], true),
    kind(libc::SYS_fchmod, "chmod", FD, false),
    kind(libc::SYS_fchmodat, "chmod", AT, false),
    kind(libc::SYS_fchown, "chown", FD, false),
    kind(libc::SYS_fchownat, "chown", AT, false),
    kind(libc::SYS_utimensat, "utimens", AT, false),
    kind(libc::SYS_fsetxattr, "setxattr", FD, true),
    kind(libc::SYS_lsetxattr, "setxattr", &[Place::Path(0)], true),
];

#[cfg(target_arch = "x86_64")]
const ONCE: &[Kind] = &[
    Kind { number: libc::SYS_open, name: "open", places: &[Place::Path(0)], takes_room: true, opens: Opens::Flags(1) },
    kind(libc::SYS_rename, "rename", &[Place::Path(0), Place::Path(1)], true),
    kind(libc::SYS_renameat, "rename", TWO, true),
    kind(libc::SYS_unlink, "unlink", &[Place::Path(0)], false),
    kind(libc::SYS_rmdir, "unlink", &[Place::Path(0)], false),
    kind(libc::SYS_mkdir, "mkdir", &[Place::Path(0)], true),
    kind(libc::SYS_link, "link", &[Place::Path(0), Place::Path(1)], true),
    kind(libc::SYS_symlink, "symlink", &[Place::Path(1)], true),
    kind(libc::SYS_chmod, "chmod", &[Place::Path(0)], false),
    kind(libc::SYS_truncate, "ftruncate", &[Place::Path(0)], true),
];

#[cfg(not(target_arch = "x86_64"))]
const ONCE: &[Kind] = &[kind(libc::SYS_renameat, "rename", TWO, true)];

const WRITES: i32 = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY | libc::O_RDWR;

impl Effect {
    /// Returns the effect of a system call, or `None` if the call has no effect below the roots.
    pub(super) fn of(thread: i32, number: i64, arguments: &[u64; 6], roots: &[PathBuf]) -> Option<Self> {
        let kind = KINDS.iter().chain(ONCE).find(|kind| kind.number == number)?;
        let memory = Memory { thread };
        let flags = match kind.opens {
            Opens::Flags(at) => arguments[at] as i32,
            Opens::How(at) => memory.word(arguments[at])? as i32,
            Opens::No => WRITES,
        };
        if flags & WRITES == 0 {
            return None;
        }
        let paths: Vec<PathBuf> = kind.places.iter().filter_map(|place| memory.path(place, arguments)).collect();
        let below = |path: &Path| roots.iter().find_map(|root| path.strip_prefix(root).ok().map(Path::to_owned));
        paths.iter().find_map(|path| below(path))?;
        let named = paths.iter().map(|path| below(path).unwrap_or_else(|| path.clone()).display().to_string());
        let words = std::iter::once(kind.name.to_owned()).chain(named).collect::<Vec<_>>().join(" ");
        Some(Self { words, takes_room: kind.takes_room })
    }
}

/// Memory of a stopped thread.
struct Memory {
    thread: i32,
}

impl Memory {
    fn path(&self, place: &Place, arguments: &[u64; 6]) -> Option<PathBuf> {
        match *place {
            Place::Fd(at) => self.link(&format!("fd/{}", arguments[at] as i32)),
            Place::Path(at) => Some(self.link("cwd")?.join(self.text(arguments[at])?)),
            Place::At(directory, at) => {
                let directory = arguments[directory] as i32;
                let base = if directory == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{directory}") };
                // A null path means the descriptor itself.
                let path = if arguments[at] == 0 { PathBuf::new() } else { self.text(arguments[at])? };
                if path.is_absolute() { Some(path) } else { Some(self.link(&base)?.join(path)) }
            }
        }
    }

    fn link(&self, name: &str) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/{name}", self.thread)).ok()
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.open()?.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// Reads a path up to its terminating zero.
    fn text(&self, at: u64) -> Option<PathBuf> {
        let memory = self.open()?;
        let mut text = Vec::new();
        // Reads never cross the end of a page, because the next page may not be mapped.
        while text.len() < libc::PATH_MAX as usize {
            let from = at + text.len() as u64;
            let mut part = vec![0; 4096 - (from % 4096) as usize];
            memory.read_exact_at(&mut part, from).ok()?;
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&part[..end]);
                return Some(PathBuf::from(std::ffi::OsString::from_vec(text)));
            }
            text.extend_from_slice(&part);
        }
        None
    }

    fn open(&self) -> Option<File> {
        File::open(format!("/proc/{}/mem", self.thread)).ok()
    }
}
