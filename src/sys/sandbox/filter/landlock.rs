//! Rules on paths: a second hold on writing under the mounts, and all there is where no namespaces can be made.

use super::places::grants;
use super::{Confinement, Strength};
use crate::sys::sandbox::NetworkAccess;
use crate::sys::sandbox::places::{Access as PlaceAccess, named};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::io;
use std::path::PathBuf;

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
    if confinement.strength == Strength::Landlock && version() == 0 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has none"));
    }
    let ruleset = match confinement.strength {
        Strength::Namespaces => beneath_mounts(confinement).map_err(io::Error::other)?,
        Strength::Landlock => alone(confinement, &grants(confinement)?).map_err(io::Error::other)?,
    };
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
    let named = named(confinement).into_iter().filter(|(_, access)| *access == PlaceAccess::Write).map(|(path, _)| path);
    // What takes the writes is mounted over them.
    let substitutes = confinement.substitutes.iter().map(|substitute| &substitute.directory);
    let caches = confinement.caches.iter().map(|cache| &cache.directory).chain(substitutes).cloned();
    let places = ITS_OWN.iter().map(PathBuf::from).chain(named).chain(caches);
    ruleset.add_rules(path_beneath_rules(places, writing))
}

/// Nothing is mounted over what must not be seen, and the network is everybody's.
fn alone(confinement: &Confinement, granted: &[(PathBuf, PlaceAccess)]) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))?;
    let ruleset = match confinement.network {
        NetworkAccess::Proxied => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
        NetworkAccess::Open => ruleset,
    };
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    // A directory with something hidden in it would otherwise not be listed at all: names are seen, what they hold is not.
    let mut ruleset = ruleset.add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?;
    for (path, access) in granted {
        let rights = match access {
            PlaceAccess::Nothing => continue,
            PlaceAccess::Read => AccessFs::from_read(NEWEST),
            PlaceAccess::Write => AccessFs::from_all(NEWEST),
        };
        ruleset = ruleset.add_rules(path_beneath_rules([path], rights))?;
    }
    Ok(ruleset)
}

/// The version of its interface that this kernel has; 0 for none.
#[expect(unsafe_code, reason = "the crate keeps to itself what it found")]
pub fn version() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag there is no structure to point to.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}
