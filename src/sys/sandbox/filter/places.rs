//! Places to grant, for rules that can only add: a hidden place is left out, so its neighbours are named instead.

use super::Confinement;
use crate::sys::sandbox::places::{Access, named};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// More are not named one by one: a directory of so many neighbours is no place to keep a secret in.
const MAX_PLACES: usize = 100_000;

/// Of the devices only these: among the others are disks, memory and the terminals of other windows.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/shm"];
/// Sockets and secrets of other programs.
const OF_OTHERS: [&str; 4] = ["/dev", "/run/user", "/run/secrets", "/run/credentials"];

/// What to grant, each with all below it.
///
/// A place that may only be read, or not even that, cannot be kept so below one that is granted more: the existing neighbours
/// of it and of each directory above it, as far up as more is granted, are named instead. So nothing new can be made directly
/// in those directories, which is the price of protecting `.git/hooks` in a workspace where nothing can be mounted.
pub(super) fn grants(confinement: &Confinement) -> io::Result<Vec<(PathBuf, Access)>> {
    let mut places: BTreeMap<PathBuf, Access> = OF_OTHERS.iter().map(|path| (PathBuf::from(path), Access::Nothing)).collect();
    places.extend(DEVICES.iter().map(|path| (PathBuf::from(path), Access::Write)));
    // Nobody can make a secret where one is missing, and what would be in the way of making it is more than that is worth.
    let known = named(confinement);
    places.extend(known.into_iter().filter(|(path, access)| *access > Access::Nothing || path.symlink_metadata().is_ok()));
    let mut walk = Walk { places, grants: Vec::new() };
    walk.visit(Path::new("/"), Access::Read)?;
    Ok(walk.grants)
}

struct Walk {
    places: BTreeMap<PathBuf, Access>,
    grants: Vec<(PathBuf, Access)>,
}

impl Walk {
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

/// What lies in a directory; nothing where it is none or cannot be read. A link is left out: it would grant what it leads to.
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
