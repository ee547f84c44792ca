//! What the sandbox kept a command from: told by aye's proxy, and by what the command printed.

mod opened;
mod printed;
#[cfg(test)]
mod tests;

pub(in crate::tools) use opened::Opened;

use crate::protocol::Outside;
use crate::sys::path::{Kind, resolve};
use crate::sys::sandbox::{Confinement, NetworkAccess, Strength, View};
use crate::tools::shell::network::Kept;
use crate::tools::tool::Settings;
use printed::{Place, Want, Why};
use std::path::{Path, PathBuf};

/// More places than a person reads in one question are not offered.
const MOST: usize = 8;
/// A command has these for itself, or nobody has them.
const NEVER_OPENED: &[&str] = &["/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run", "/var/run"];

/// What a command that failed was kept from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::tools) struct Denied {
    /// What a yes could open.
    pub outside: Vec<Outside>,
    /// Servers, and why they are closed; no yes opens some of them.
    servers: Vec<String>,
    /// Places in the workspace that it could only read.
    pub only_read: Vec<PathBuf>,
}

impl Denied {
    /// `hosts` are those that the proxy let nobody reach; `printed` is what it printed, in `cwd`.
    pub(in crate::tools) fn look(
        printed: &[&str],
        cwd: &Path,
        hosts: Kept,
        confinement: &Confinement,
        settings: &Settings,
    ) -> Self {
        Self::beyond(printed, hosts, &Held { confinement, settings, cwd, never: NEVER_OPENED })
    }

    fn beyond(printed: &[&str], hosts: Kept, held: &Held<'_>) -> Self {
        let offline = held.confinement.network == NetworkAccess::Proxied;
        let Kept { openable: mut outside, lines: servers } = hosts;
        if servers.is_empty() && offline && printed.iter().any(|text| printed::wanted_network(text)) {
            outside.push(Outside::Network);
        }
        let mut only_read: Vec<PathBuf> = Vec::new();
        let mut opens: Vec<PathBuf> = Vec::new();
        for place in printed.iter().flat_map(|text| printed::places(text)) {
            match held.look(&place) {
                Looked::Opens(path) if !opens.iter().any(|known| path.starts_with(known)) => {
                    opens.retain(|known| !known.starts_with(&path));
                    opens.push(path);
                }
                Looked::OnlyRead(path) if !only_read.contains(&path) => only_read.push(path),
                Looked::Opens(_) | Looked::OnlyRead(_) | Looked::Nothing => {}
            }
        }
        outside.extend(opens.into_iter().filter_map(|path| path.to_str().map(|path| Outside::Write { path: path.to_owned() })));
        outside.truncate(MOST);
        only_read.truncate(MOST);
        Self { outside, servers, only_read }
    }

    /// For the model; nothing where it was kept from nothing.
    pub(in crate::tools) fn sentence(&self) -> Option<String> {
        let mut lines = Vec::new();
        if !self.only_read.is_empty() {
            let places: Vec<String> = self.only_read.iter().map(|path| format!("`{}`", path.display())).collect();
            lines.push(format!("[sandbox: the policy lets commands only read {}; nothing was written there]", places.join(", ")));
        }
        if !self.outside.is_empty() {
            let what: Vec<String> = self.outside.iter().map(ToString::to_string).collect();
            let what = what.join(", ");
            lines.push(format!("[sandbox: the command was kept from {what}; the person can open exactly that for one run]"));
        } else if !self.servers.is_empty() {
            lines.push(format!("[sandbox: the command was kept from {}; no yes opens that]", self.servers.join(", ")));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

enum Looked {
    Opens(PathBuf),
    OnlyRead(PathBuf),
    Nothing,
}

/// How the command was held, and where it ran.
struct Held<'a> {
    confinement: &'a Confinement,
    settings: &'a Settings,
    cwd: &'a Path,
    never: &'a [&'a str],
}

impl Held<'_> {
    fn look(&self, place: &Place) -> Looked {
        let Ok(found) = resolve(&place.given, self.cwd, self.settings.home.as_deref()) else { return Looked::Nothing };
        let below = |places: &[PathBuf]| places.iter().any(|place| found.real.starts_with(place));
        let Confinement { roots, view, writable, read_only, hidden, caches, strength, .. } = self.confinement;
        if below(hidden) {
            return Looked::Nothing;
        }
        if below(roots) {
            // What is right in the view is refused by the policy alone.
            let refused = place.why == Why::ReadOnly && (*view == View::ReadOnly || below(read_only));
            return if refused { Looked::OnlyRead(found.real) } else { Looked::Nothing };
        }
        let own = self.never.iter().any(|place| found.real.starts_with(place));
        if own || below(writable) || caches.iter().any(|cache| found.real.starts_with(&cache.directory)) {
            return Looked::Nothing;
        }
        // With namespaces the kernel says that it is read-only; who has no right to it is told something else.
        let is_there = !matches!(found.kind, Kind::Missing);
        if place.why == Why::NoAccess && *strength == Strength::Namespaces && is_there {
            return Looked::Nothing;
        }
        match self.opens(&found.real, found.kind, place.wanted) {
            Some(path) if (self.settings.may_open)(&path) && could_write(&path) => Looked::Opens(path),
            Some(_) | None => Looked::Nothing,
        }
    }

    /// The least that has to be opened for it.
    fn opens(&self, real: &Path, kind: Kind, wanted: Want) -> Option<PathBuf> {
        let parent = existing(real.parent()?);
        let too_wide = self.is_too_wide(&parent);
        match (kind, wanted) {
            (Kind::Missing, Want::Away) | (Kind::Link { .. }, _) => (!too_wide).then_some(parent),
            (Kind::Missing, _) if !too_wide => Some(parent),
            (Kind::Missing, _) => {
                let first = parent.join(real.strip_prefix(&parent).ok()?.components().next()?);
                // With a slash at its end it is a directory: that much is known of what is not there yet.
                let directory = wanted == Want::Directory || first != real;
                Some(if directory { first.join("") } else { first })
            }
            (Kind::Special, _) => None,
            (_, Want::Away) => (!too_wide).then_some(parent),
            (Kind::Directory, _) => (!self.is_too_wide(real)).then(|| real.to_owned()),
            (Kind::File { .. }, _) => Some(real.to_owned()),
        }
    }

    /// Whether more than a part of the machine would be open with it: the person's home, what is above a workspace.
    fn is_too_wide(&self, directory: &Path) -> bool {
        let above = |place: &Path| place.starts_with(directory);
        let is_top = directory.components().count() <= 2;
        is_top || self.settings.home.as_deref().is_some_and(above) || self.confinement.roots.iter().any(|root| above(root))
    }
}

/// The deepest directory of a path that is there.
fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|level| level.symlink_metadata().is_ok()).unwrap_or(path).to_owned()
}

/// Whether the person could write there: what only another user may is not opened by a yes.
fn could_write(path: &Path) -> bool {
    crate::sys::path::may_write(&existing(path))
}
