//! Where the programs of a line come from: entries of PATH in which a command could have put a program do not serve a line that
//! is allowed by the names of its programs.

use crate::policy::programs;
use crate::tools::shell::confine::Holding;
use crate::tools::tool::Settings;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where systems keep their programs. A shell without PATH may look in the current directory.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
/// Entries that are looked at.
const MAX_ENTRIES: usize = 256;

/// PATH as two: what serves such a line, and what does not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SearchPath {
    outside: Vec<PathBuf>,
    inside: Vec<PathBuf>,
}

impl SearchPath {
    /// Follows the links of each entry. One that leads nowhere serves nothing.
    pub(super) fn of(path: Option<&OsStr>, settings: &Settings) -> Self {
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

    /// As a command is given it.
    pub(super) fn outside(&self) -> OsString {
        if self.outside.is_empty() {
            return USUAL.into();
        }
        let entries: Vec<&[u8]> = self.outside.iter().map(|entry| entry.as_os_str().as_bytes()).collect();
        OsString::from_vec(entries.join(&b':'))
    }

    /// The first program of a line that such a line cannot have, and where it is.
    pub(super) fn only_inside(&self, line: &str, settings: &Settings) -> Option<(String, PathBuf)> {
        programs(line).into_iter().filter(|name| !name.contains('/') && !name.is_empty()).find_map(|name| {
            let found = |entries: &[PathBuf]| entries.iter().map(|entry| entry.join(&name)).find(|path| is_program(path));
            match found(&self.outside) {
                // An entry outside may hold a link to a program inside.
                Some(path) => {
                    let real = path.canonicalize().ok().filter(|real| is_within(real, settings))?;
                    Some((name, real))
                }
                None => found(&self.inside).map(|path| (name, path)),
            }
        })
    }
}

/// Whether a command of this workspace could write there.
fn is_within(place: &Path, settings: &Settings) -> bool {
    let Holding { roots, writable, caches, .. } = &settings.holding;
    let places = roots.iter().chain(writable).chain(&caches.directories).map(PathBuf::as_path);
    places.chain([settings.workspace.as_path()]).any(|above| place.starts_with(above))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
