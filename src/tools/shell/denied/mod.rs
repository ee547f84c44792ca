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
const MAX: usize = 8;
/// Directories of a home directory that are not shown for one file in them.
const SHARED: &[&str] =
    &[".config", ".local", ".local/share", ".local/state", ".cache", "Library", "Library/Application Support"];
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
    /// It ran where it could only read, because that is all that it was allowed for.
    narrowed: bool,
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
        let mut shows: Vec<PathBuf> = Vec::new();
        for place in printed.iter().flat_map(|text| printed::places(text)) {
            match held.look(&place) {
                Looked::Opens(path) if !opens.iter().any(|known| path.starts_with(known)) => {
                    opens.retain(|known| !known.starts_with(&path));
                    opens.push(path);
                }
                Looked::OnlyRead(path) if !only_read.contains(&path) => only_read.push(path),
                Looked::Shows(path) if !shows.iter().any(|known| path.starts_with(known)) => {
                    shows.retain(|known| !known.starts_with(&path));
                    shows.push(path);
                }
                Looked::Opens(_) | Looked::OnlyRead(_) | Looked::Shows(_) | Looked::Nothing => {}
            }
        }
        shows.retain(|shown| !opens.iter().any(|opened| shown.starts_with(opened)));
        outside.extend(shows.into_iter().filter_map(|path| path.to_str().map(|path| Outside::Read { path: path.to_owned() })));
        outside.extend(opens.into_iter().filter_map(|path| path.to_str().map(|path| Outside::Write { path: path.to_owned() })));
        outside.truncate(MAX);
        only_read.truncate(MAX);
        Self { outside, servers, only_read, narrowed: false }
    }

    /// The same of a line that was allowed because it only reads, and that ran where it could not write. `stderr` is what it printed
    /// there: what it printed otherwise may be the text of any file.
    pub(in crate::tools) fn narrowed(mut self, stderr: &str, cwd: &Path, confinement: &Confinement) -> Self {
        if !printed::met_read_only(stderr) {
            return self;
        }
        // Any other place is a guess, and what it wanted to write was most likely in the workspace.
        self.outside.retain(|place| !matches!(place, Outside::Write { .. }));
        let root = confinement.roots.iter().find(|root| cwd.starts_with(root)).and_then(|root| root.to_str());
        self.outside.extend(root.map(|root| Outside::Write { path: root.to_owned() }));
        (self.narrowed, self.only_read) = (true, Vec::new());
        self
    }

    /// For the model; nothing where it was kept from nothing.
    pub(in crate::tools) fn sentence(&self) -> Option<String> {
        let mut lines = Vec::new();
        if self.narrowed {
            lines.push(
                "[sandbox: this command ran in a read-only view of the workspace, because the policy allows it without approval \
                 only as a command that reads; nothing was written there. The user can approve to run it once more with write \
                 access.]"
                    .to_owned(),
            );
        }
        if !self.only_read.is_empty() {
            let places: Vec<String> = self.only_read.iter().map(|path| format!("`{}`", path.display())).collect();
            lines.push(format!(
                "[sandbox: the policy gives commands read-only access to {}; nothing was written there]",
                places.join(", ")
            ));
        }
        let is_told_by_the_narrowing = self.narrowed && self.outside.len() == 1;
        if !self.outside.is_empty() && !is_told_by_the_narrowing {
            let what: Vec<String> = self.outside.iter().map(ToString::to_string).collect();
            let what = what.join(", ");
            lines.push(format!("[sandbox: blocked {what}; the user can allow exactly this for one run]"));
        } else if !self.servers.is_empty() {
            lines.push(format!("[sandbox: blocked {}; no approval can allow this]", self.servers.join(", ")));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

enum Looked {
    /// It could be opened for writing.
    Opens(PathBuf),
    /// It is hidden by default, and could be shown.
    Shows(PathBuf),
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
        let Confinement { roots, view, writable, read_only, hidden, shown, caches, substitutes, strength, .. } = self.confinement;
        let depth = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| found.real.starts_with(place));
            above.map(|place| place.components().count()).max().unwrap_or(0)
        };
        let (veil, closed): (Vec<PathBuf>, Vec<PathBuf>) =
            hidden.iter().cloned().partition(|place| self.settings.holding.visible.hidden.contains(place));
        // Credentials, aye's own directories, and what the policy blocks.
        if depth(&closed) > depth(shown) {
            return Looked::Nothing;
        }
        let is_veiled = depth(&veil) > 0 && ![roots, shown, writable].into_iter().any(|places| below(places));
        if below(roots) {
            // What is right in the view is refused by the policy alone.
            let refused = place.why == Why::ReadOnly && (*view == View::ReadOnly || below(read_only));
            return if refused { Looked::OnlyRead(found.real) } else { Looked::Nothing };
        }
        let own = self.never.iter().any(|place| found.real.starts_with(place));
        if substitutes.iter().any(|substitute| found.real.starts_with(&substitute.directory)) {
            return Looked::Nothing;
        }
        if own || below(writable) || caches.iter().any(|cache| found.real.starts_with(&cache.directory)) {
            return Looked::Nothing;
        }
        if is_veiled && *strength == Strength::Landlock && place.why == Why::NoAccess {
            return self.unveiled(&found.real, found.kind, false);
        }
        if let Why::Missing { written } = place.why {
            return if is_veiled { self.unveiled(&found.real, found.kind, written) } else { Looked::Nothing };
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

    /// What exists and was hidden: the directory of a file, or the file where that is too much. What was to be made there
    /// needs its directory written.
    fn unveiled(&self, real: &Path, kind: Kind, written: bool) -> Looked {
        let is_wide = |directory: &Path| self.is_too_wide(directory) || self.is_shared(directory);
        let parent = real.parent().filter(|parent| !is_wide(parent));
        let (path, opens) = match (kind, parent) {
            (Kind::Missing, Some(parent)) if written && parent.is_dir() => (parent, true),
            (Kind::Directory, _) if !is_wide(real) => (real, false),
            (Kind::File { .. }, parent) => (parent.unwrap_or(real), false),
            _ => return Looked::Nothing,
        };
        if opens && (self.settings.may_open)(path) && could_write(path) {
            return Looked::Opens(path.to_owned());
        }
        let may_be_shown = !opens && self.may_be_shown(real) && self.may_be_shown(path);
        if may_be_shown { Looked::Shows(path.to_owned()) } else { Looked::Nothing }
    }

    /// Whether programs of all kinds keep their files there.
    fn is_shared(&self, directory: &Path) -> bool {
        self.settings
            .home
            .as_deref()
            .and_then(|home| directory.strip_prefix(home).ok())
            .is_some_and(|below| SHARED.iter().any(|shared| below == Path::new(shared)))
    }

    /// What the policy lets be shown and this user can read.
    fn may_be_shown(&self, path: &Path) -> bool {
        (self.settings.may_show)(path) && crate::sys::path::may_read(path)
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
