//! Landlock rules on paths. Under mounts they are a second barrier against writes; without namespaces they are the only
//! one.

use super::places::grants;
use super::{Backend, Confinement};
use crate::sys::sandbox::NetworkAccess;
use crate::sys::sandbox::places::{Access as PlaceAccess, named_paths};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::io;
use std::path::PathBuf;

/// Newest supported version of Landlock. An older kernel enforces the rights that it supports.
const NEWEST: ABI = ABI::V7;

/// Paths that a command with its own mounts can always write, because they are private or covered.
const ITS_OWN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// Complete set of rules that is not in effect yet.
#[derive(Debug)]
pub(super) struct LandlockRules {
    ruleset: RulesetCreated,
    /// Whether a kernel without Landlock is acceptable.
    optional: bool,
}

pub(super) fn prepare(confinement: &Confinement) -> io::Result<LandlockRules> {
    if confinement.strength == Backend::Landlock && version() == 0 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has no Landlock"));
    }
    let ruleset = match confinement.strength {
        Backend::Namespaces => rules_under_mounts(confinement).map_err(io::Error::other)?,
        Backend::Landlock => rules_without_mounts(confinement, &grants(confinement)?).map_err(io::Error::other)?,
    };
    Ok(LandlockRules { ruleset, optional: confinement.strength == Backend::Namespaces })
}

impl LandlockRules {
    pub(super) fn enforce(self) -> io::Result<()> {
        let status = self.ruleset.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced && !self.optional {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has no Landlock"));
        }
        Ok(())
    }
}

/// Returns the rules under mounts. The mounts control read access; the rules only limit writes, in case a mount is
/// wrong.
fn rules_under_mounts(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let writing = AccessFs::from_write(NEWEST);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writing)?;
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    let named = named_paths(confinement).into_iter().filter(|(_, access)| *access == PlaceAccess::Write).map(|(path, _)| path);
    // Writable substitutes are mounted over these paths.
    let substitutes = confinement.substitutes.iter().map(|substitute| &substitute.directory);
    let caches = confinement.caches.iter().map(|cache| &cache.directory).chain(substitutes).cloned();
    let places = ITS_OWN.iter().map(PathBuf::from).chain(named).chain(caches);
    ruleset.add_rules(path_beneath_rules(places, writing))
}

/// Returns the rules without mounts, where hidden paths cannot be covered and the network is shared.
fn rules_without_mounts(confinement: &Confinement, granted: &[(PathBuf, PlaceAccess)]) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))?;
    let ruleset = match confinement.network {
        NetworkAccess::Proxied => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
        NetworkAccess::Open => ruleset,
    };
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    // Otherwise a directory with a hidden entry could not be listed at all: names are visible, their content is not.
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

/// Returns the version of the kernel's Landlock interface; 0 if there is none.
#[expect(unsafe_code, reason = "the crate does not expose the version")]
pub(crate) fn version() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag no structure is passed.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}
