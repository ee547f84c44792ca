//! Determines the paths to grant, for rules that can only add access. A hidden path is excluded by granting its
//! siblings rather than its parent.

use super::Confinement;
use crate::sys::sandbox::places::{Access, named_paths};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of granted paths. If a directory has more siblings than that, no file in it can be protected.
const MAX_PLACES: usize = 100_000;

/// Devices that commands may use. Others include disks, memory and the terminals of other windows.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/shm"];
/// Directories that contain sockets and secrets of other programs.
const OF_OTHERS: [&str; 4] = ["/dev", "/run/user", "/run/secrets", "/run/credentials"];

/// Returns the paths to grant. Each grant includes everything below the path.
///
/// A path with fewer rights must not be below a granted path. Instead, its existing siblings, and those of each
/// directory above it, are granted one by one. As a consequence, no new entries can be created directly in those
/// directories. This is the price of protecting `.git/hooks` in a workspace where nothing can be mounted.
pub(super) fn grants(confinement: &Confinement) -> io::Result<Vec<(PathBuf, Access)>> {
    let mut places: BTreeMap<PathBuf, Access> = OF_OTHERS.iter().map(|path| (PathBuf::from(path), Access::Nothing)).collect();
    places.extend(DEVICES.iter().map(|path| (PathBuf::from(path), Access::Write)));
    // A missing path cannot be protected without blocking its parent, which is not worth the cost.
    let known = named_paths(confinement);
    places.extend(known.into_iter().filter(|(path, access)| *access > Access::Nothing || path.symlink_metadata().is_ok()));
    let mut walk = GrantWalk { places, grants: Vec::new() };
    walk.visit(Path::new("/"), Access::Read)?;
    Ok(walk.grants)
}

struct GrantWalk {
    places: BTreeMap<PathBuf, Access>,
    grants: Vec<(PathBuf, Access)>,
}

impl GrantWalk {
    fn visit(&mut self, path: &Path, inherited: Access) -> io::Result<()> {
        let access = self.places.get(path).copied().unwrap_or(inherited);
        let below = self.places.range(path.to_owned()..).take_while(|(place, _)| place.starts_with(path));
        let below: Vec<_> = below.filter(|(place, _)| *place != path).map(|(place, access)| (place.clone(), *access)).collect();
        if below.iter().any(|(_, named)| *named < access) {
            return children(path)?.iter().try_for_each(|child| self.visit(child, access));
        }
        if self.grants.len() >= MAX_PLACES {
            let message = format!("too many files next to the protected ones in `{}`", path.display());
            return Err(io::Error::other(message));
        }
        if access > Access::Nothing {
            self.grants.push((path.to_owned(), access));
        }
        below.iter().filter(|(_, named)| *named > access).try_for_each(|(place, access)| self.visit(place, *access))
    }
}

/// Returns the entries of a directory, or an empty list if it is not readable. Skips symlinks, because a rule for a
/// symlink would grant access to its target.
fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut children = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_symlink() {
            children.push(entry.path());
        }
        if children.len() > MAX_PLACES {
            return Err(io::Error::other(format!(
                "`{}` contains too many files next to the protected ones",
                directory.display()
            )));
        }
    }
    Ok(children)
}
