//! The paths of a confinement as a single list in which deeper paths take precedence.

use super::{Confinement, View};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Access to a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    Nothing,
    Read,
    Write,
}

/// Returns every path that the confinement lists. A path precedes the paths below it. If several settings apply to a
/// path, the strictest one takes precedence, unless the path was made writable again.
pub(super) fn named_paths(confinement: &Confinement) -> BTreeMap<PathBuf, Access> {
    let mut places = BTreeMap::new();
    let mut name = |path: &Path, access| places.insert(path.to_owned(), access);
    let writing = match confinement.view {
        View::ReadOnly => Access::Read,
        View::Real | View::CopyOnWrite(_) => Access::Write,
    };
    for root in &confinement.roots {
        name(root, writing);
    }
    for place in &confinement.writable {
        name(place, Access::Write);
    }
    for place in &confinement.read_only {
        name(place, Access::Read);
    }
    for place in &confinement.reopened {
        name(place, Access::Write);
    }
    for place in &confinement.hidden {
        name(place, Access::Nothing);
    }
    let is_below_hidden = |place: &PathBuf| confinement.hidden.iter().any(|hidden| place != hidden && place.starts_with(hidden));
    for place in confinement.shown.iter().filter(|place| is_below_hidden(place)) {
        places.entry(place.clone()).or_insert(Access::Read);
    }
    places
}
