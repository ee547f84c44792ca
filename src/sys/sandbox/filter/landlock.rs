//! Landlock rules for paths. With mounts, they are a second barrier against writes. Without namespaces, they are the
//! only barrier.

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

/// Newest Landlock version that aye supports. An older kernel enforces only the rights that it knows.
const NEWEST: ABI = ABI::V7;

/// Paths that a command with its own mounts can always write to, because they are private to the command or covered.
const ITS_OWN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// A complete rule set that has not been put into effect yet.
#[derive(Debug)]
pub(super) struct LandlockRules {
    ruleset: RulesetCreated,
    /// Whether it is acceptable that the kernel has no Landlock.
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

/// Returns the rules for a command with mounts. The mounts control which paths can be read. The rules limit only
/// writes, in case a mount is wrong.
fn rules_under_mounts(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let writing = AccessFs::from_write(NEWEST);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writing)?;
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    let named = named_paths(confinement).into_iter().filter(|(_, access)| *access == PlaceAccess::Write).map(|(path, _)| path);
    // Writable directories are mounted over these paths.
    let substitutes = confinement.substitutes.iter().map(|substitute| &substitute.directory);
    let caches = confinement.caches.iter().map(|cache| &cache.directory).chain(substitutes).cloned();
    let places = ITS_OWN.iter().map(PathBuf::from).chain(named).chain(caches);
    ruleset.add_rules(path_beneath_rules(places, writing))
}

/// Returns the rules for a command without mounts, for which hidden paths cannot be covered and the network is shared.
fn rules_without_mounts(confinement: &Confinement, granted: &[(PathBuf, PlaceAccess)]) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))?;
    let ruleset = match confinement.network {
        NetworkAccess::Proxied => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
        NetworkAccess::Open => ruleset,
    };
    let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
    // Without this rule, a directory with a hidden entry could not be listed at all. Names are visible, but their
    // content is not.
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

/// Returns the version of the kernel's Landlock interface, or 0 if it has none.
#[expect(unsafe_code, reason = "the crate does not expose the version")]
pub(crate) fn version() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag, no structure is passed.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}
