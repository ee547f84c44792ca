//! Layout of a command's file system: every path in its confinement, combined before anything is mounted.

use super::{Confinement, View};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// View that a command has of a path. The view of a deeper path covers part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathView {
    /// An empty directory that belongs to the command.
    Own,
    /// An empty directory without write access or, for a file, an unreadable file.
    Empty,
    /// The real content, writable.
    Writable,
    /// The real content, read-only.
    Fixed,
    /// The real content, made read-only by a rule. `in_writable` says whether the rule is an exception to write access.
    Guarded { in_writable: bool },
    /// A device that is not backed by hardware.
    Device,
    /// A set of terminals that belongs to the command alone.
    Terminals,
    /// The workspace root with this index, below a layer.
    Root(usize),
    /// The cache with this index, below a layer.
    Cache(usize),
    /// The content of the substitute with this index, writable.
    Substitute(usize),
}

impl PathView {
    /// Returns whether none of the real content is visible.
    pub(super) fn is_blank(self) -> bool {
        matches!(self, Self::Own | Self::Empty)
    }
}

/// Views by path. A path that covers part of another one comes after it.
pub(super) type Layout = BTreeMap<PathBuf, PathView>;

/// Paths that, if they exist, are private to each command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PrivatePaths {
    pub own: Vec<PathBuf>,
    pub empty: Vec<PathBuf>,
    pub sockets: Vec<PathBuf>,
    /// Paths inside empty directories that remain visible.
    pub shown: Vec<PathBuf>,
    pub devices: Vec<PathBuf>,
    pub terminals: Vec<PathBuf>,
}

/// Returns the closest ancestor of `path` that has a view, along with that view.
pub(super) fn closest_view<'a>(layout: &'a Layout, path: &Path) -> Option<(&'a Path, PathView)> {
    path.ancestors().skip(1).find_map(|above| layout.get_key_value(above)).map(|(path, seat)| (path.as_path(), *seat))
}

/// Combines all settings into a layout. If several settings apply to a path, the strictest one takes precedence.
pub(super) fn build_layout(confinement: &Confinement, built_in: &PrivatePaths) -> Result<Layout, String> {
    let mut wishes = PathRequests::default();
    wishes.add(&built_in.own, |wish| wish.own = true);
    wishes.add(&built_in.empty, |wish| wish.empty = true);
    wishes.add(&built_in.sockets, |wish| wish.socket = true);
    wishes.add(&built_in.shown, |wish| wish.shown = true);
    wishes.add(&built_in.devices, |wish| wish.device = true);
    wishes.add(&built_in.terminals, |wish| wish.terminals = true);
    wishes.add(&confinement.writable, |wish| wish.writable = true);
    wishes.add(&confinement.read_only, |wish| wish.read_only = true);
    wishes.add(&confinement.reopened, |wish| wish.reopened = true);
    wishes.add(&confinement.hidden, |wish| wish.hidden = true);
    wishes.add(&confinement.shown, |wish| wish.shown = true);
    for (number, root) in confinement.roots.iter().enumerate() {
        wishes.add([root], |wish| wish.root = Some(number));
    }
    for (number, cache) in confinement.caches.iter().enumerate() {
        wishes.add([&cache.directory], |wish| wish.cache = Some(number));
    }
    for (number, substitute) in confinement.substitutes.iter().enumerate() {
        wishes.add([&substitute.directory], |wish| wish.substitute = Some(number));
    }
    let mut layout = Layout::new();
    for (path, wish) in wishes.0 {
        if wish.root.is_some() && wish.hidden {
            return Err(format!("`{}` is both a workspace and hidden; remove it from one list", path.display()));
        }
        let around = closest_view(&layout, &path).map(|(_, seat)| seat);
        if let Some(seat) = wish.seat(around, &confinement.view) {
            layout.insert(path, seat);
        }
    }
    Ok(layout)
}

#[derive(Default)]
struct PathRequests(BTreeMap<PathBuf, PathRequest>);

impl PathRequests {
    fn add<'a>(&mut self, paths: impl IntoIterator<Item = &'a PathBuf>, note: impl Fn(&mut PathRequest)) {
        for path in paths {
            note(self.0.entry(path.clone()).or_default());
        }
    }
}

/// All settings that apply to one path.
#[derive(Debug, Default)]
struct PathRequest {
    own: bool,
    empty: bool,
    socket: bool,
    shown: bool,
    device: bool,
    terminals: bool,
    writable: bool,
    cache: Option<usize>,
    substitute: Option<usize>,
    root: Option<usize>,
    read_only: bool,
    reopened: bool,
    hidden: bool,
}

impl PathRequest {
    /// Returns the view that results if the path is inside `around`, or `None` if the path needs no view of its own.
    fn seat(&self, around: Option<PathView>, view: &View) -> Option<PathView> {
        let blank = around.is_some_and(PathView::is_blank);
        let layered = matches!(around, Some(PathView::Root(_) | PathView::Cache(_) | PathView::Substitute(_)));
        let in_writable = matches!(around, Some(PathView::Writable | PathView::Guarded { in_writable: true }));
        let guarded = self.read_only && !self.reopened;
        if self.device {
            return Some(PathView::Device);
        }
        if self.terminals {
            return Some(PathView::Terminals);
        }
        if self.hidden {
            return (!blank).then_some(PathView::Empty);
        }
        if let Some(number) = self.root {
            return Some(match view {
                View::CopyOnWrite(_) => PathView::Root(number),
                View::ReadOnly => PathView::Fixed,
                View::Real if guarded => PathView::Guarded { in_writable: true },
                View::Real => PathView::Writable,
            });
        }
        if let Some(number) = self.cache {
            return Some(PathView::Cache(number));
        }
        if let Some(number) = self.substitute {
            return Some(PathView::Substitute(number));
        }
        // Inside a substitute, a cache is read or written directly.
        if matches!(around, Some(PathView::Substitute(_))) && (self.writable || self.shown) {
            return Some(if self.writable { PathView::Writable } else { PathView::Fixed });
        }
        // Inside a layer, a read-only path is the real one.
        if guarded && matches!(around, Some(PathView::Root(_))) {
            return Some(PathView::Guarded { in_writable: false });
        }
        if self.reopened && matches!(around, Some(PathView::Root(_))) {
            return Some(PathView::Writable);
        }
        // Writes to the layer are checked before they are applied.
        if layered && !self.socket {
            return (self.own || self.empty).then_some(if self.own { PathView::Own } else { PathView::Empty });
        }
        let below_guarded = matches!(around, Some(PathView::Guarded { .. }));
        if guarded && (self.writable || (around.is_some() && !blank)) {
            return Some(PathView::Guarded { in_writable: in_writable || (self.writable && !below_guarded) });
        }
        if self.reopened && in_writable {
            return below_guarded.then_some(PathView::Writable);
        }
        if self.writable && !below_guarded {
            return Some(PathView::Writable);
        }
        if self.own {
            return Some(PathView::Own);
        }
        if self.shown {
            return blank.then_some(PathView::Fixed);
        }
        // Inside a layer, a socket is a different file from the one on which a program listens.
        (self.empty || (self.socket && !blank && !layered)).then_some(PathView::Empty)
    }
}
