//! Rules on paths: a second hold on writing under the mounts, and all there is where no namespaces can be made.

use super::{Confinement, Strength};
use crate::sys::sandbox::View;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::io;
use std::path::{Path, PathBuf};

/// The newest version of Landlock whose rights are thought of here; an older kernel does what it can of them.
const NEWEST: ABI = ABI::V7;

/// Where a command with a file system of its own may always write: what is mounted there is its own, or covered.
const ITS_OWN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// A set of rules, filled and not yet in force.
#[derive(Debug)]
pub(super) struct Rules {
    ruleset: RulesetCreated,
    /// Whether a kernel without Landlock will do.
    optional: bool,
}

pub(super) fn prepare(confinement: &Confinement) -> io::Result<Rules> {
    let ruleset = match confinement.strength {
        Strength::Namespaces => beneath_mounts(confinement),
        Strength::Landlock => beneath_mounts(confinement),
    };
    let ruleset = ruleset.map_err(io::Error::other)?;
    Ok(Rules { ruleset, optional: confinement.strength == Strength::Namespaces })
}

impl Rules {
    pub(super) fn enforce(self) -> io::Result<()> {
        let status = self.ruleset.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced && !self.optional {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has none"));
        }
        Ok(())
    }
}

/// The mounts decide what is read; this only keeps writing to what may be written should one of them be wrong.
fn beneath_mounts(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let writing = AccessFs::from_write(NEWEST);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writing)?;
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    let own = ITS_OWN.iter().map(PathBuf::from);
    let places = own.chain(writable_places(confinement).map(Path::to_path_buf));
    ruleset.add_rules(path_beneath_rules(places, writing))
}

fn writable_places(confinement: &Confinement) -> impl Iterator<Item = &Path> {
    let roots = match confinement.view {
        View::ReadOnly => &[][..],
        View::Real | View::CopyOnWrite(_) => &confinement.roots,
    };
    let named = roots.iter().chain(&confinement.writable).chain(&confinement.reopened);
    let caches = confinement.caches.iter().map(|cache| &cache.directory);
    named.chain(caches).map(PathBuf::as_path)
}
