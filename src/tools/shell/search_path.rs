//! Search path for the programs in a line. If the line is allowed by the names of its programs, `PATH` entries to which
//! a command could have written are ignored.

use crate::policy::programs;
use crate::tools::sandbox::{SandboxPaths, SandboxPolicy};
use crate::tools::settings::ToolSettings;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Default program directories, used because without `PATH`, a shell may search the current directory.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
/// Maximum number of `PATH` entries to examine.
const MAX_ENTRIES: usize = 256;

/// `PATH`, divided into trusted (`outside`) and untrusted (`inside`) entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SearchPath {
    outside: Vec<PathBuf>,
    inside: Vec<PathBuf>,
}

impl SearchPath {
    /// Splits a `PATH` value into trusted and untrusted entries, resolving symlinks. Entries that cannot be resolved
    /// are untrusted.
    pub(super) fn split(path: Option<&OsStr>, settings: &ToolSettings) -> Self {
        let mut split = Self::default();
        for entry in path.unwrap_or(OsStr::new(USUAL)).as_bytes().split(|byte| *byte == b':').take(MAX_ENTRIES) {
            let entry = PathBuf::from(OsString::from_vec(entry.to_vec()));
            if !entry.is_absolute() {
                split.inside.push(settings.workspace.join(entry));
                continue;
            }
            let Ok(real) = entry.canonicalize() else { continue };
            let within = is_within(&real, settings) || is_within(&entry, settings);
            if within { split.inside.push(entry) } else { split.outside.push(entry) }
        }
        split
    }

    /// Returns the `PATH` value that consists of the trusted entries only, for use by a command.
    pub(super) fn outside(&self) -> OsString {
        if self.outside.is_empty() {
            return USUAL.into();
        }
        let entries: Vec<&[u8]> = self.outside.iter().map(|entry| entry.as_os_str().as_bytes()).collect();
        OsString::from_vec(entries.join(&b':'))
    }

    /// Returns the first program in a line that is found only in untrusted entries, with its path. Returns `None` if
    /// there is none.
    pub(super) fn only_inside(&self, line: &str, settings: &ToolSettings) -> Option<(String, PathBuf)> {
        programs(line).into_iter().filter(|name| !name.contains('/') && !name.is_empty()).find_map(|name| {
            let found = |entries: &[PathBuf]| entries.iter().map(|entry| entry.join(&name)).find(|path| is_program(path));
            match found(&self.outside) {
                // A trusted entry may contain a symlink to an untrusted program.
                Some(path) => {
                    let real = path.canonicalize().ok().filter(|real| is_within(real, settings))?;
                    Some((name, real))
                }
                None => found(&self.inside).map(|path| (name, path)),
            }
        })
    }
}

/// Returns whether a command in this workspace could write to a path.
fn is_within(place: &Path, settings: &ToolSettings) -> bool {
    let SandboxPolicy { paths: SandboxPaths { roots, writable, .. }, caches, .. } = &settings.command.sandbox;
    let places = roots.iter().chain(writable).chain(&caches.directories).map(PathBuf::as_path);
    places.chain([settings.workspace.as_path()]).any(|above| place.starts_with(above))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
