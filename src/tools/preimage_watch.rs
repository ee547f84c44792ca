//! Watches the files of pending plans. Reports plans that no longer match their files, and is idle as long as nothing
//! changes.

use super::crash_outcome::is_in_state;
use crate::ports::PendingPlans;
use crate::protocol::{ApprovalId, PathState, PlaceChange};
use crate::sys::file::FileStamp;
use crate::sys::watch::Watch;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// File size in bytes above which a file is read again only if its metadata has changed.
const LARGE_BYTES: u64 = 1 << 20;
/// Maximum number of directories in a tree to watch. Any others are checked only before the call runs.
const DIRECTORIES: usize = 64;

/// Returns the stream that `ToolRouter::watch_plans` provides.
pub(in crate::tools) fn follow(mut list: watch::Receiver<PendingPlans>) -> BoxStream<'static, (ApprovalId, bool)> {
    list.mark_changed();
    let follow = PlanWatcher { list, plans: Vec::new(), watch: None, untold: VecDeque::new() };
    stream::unfold(follow, |mut follow| async move { follow.next().await.map(|told| (told, follow)) }).boxed()
}

struct PlanWatcher {
    list: watch::Receiver<PendingPlans>,
    plans: Vec<WatchedPlan>,
    /// The watch, or `None` if there are no files to watch or watching failed.
    watch: Option<Watch>,
    untold: VecDeque<(ApprovalId, bool)>,
}

struct WatchedPlan {
    id: ApprovalId,
    places: Vec<Place>,
    /// The state that was reported last. `false` for a new plan.
    outdated: bool,
}

struct Place {
    change: PlaceChange,
    /// For a large file, its metadata at the last read and whether its content matched the plan.
    seen: Option<(FileStamp, bool)>,
}

impl PlanWatcher {
    async fn next(&mut self) -> Option<(ApprovalId, bool)> {
        loop {
            if let Some(told) = self.untold.pop_front() {
                return Some(told);
            }
            let changed = async {
                match &mut self.watch {
                    Some(watch) => watch.wait_for_change().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                told = self.list.changed() => {
                    told.ok()?;
                    self.set_plans();
                }
                told = changed => {
                    if let Err(error) = told {
                        tracing::warn!(%error, "stopped watching the files of pending approvals");
                        self.watch = None;
                    }
                }
            }
            // Detect changes made before the watch was set up.
            self.check_all().await;
        }
    }

    /// Replaces the plans being watched whenever the set of pending approvals changes.
    fn set_plans(&mut self) {
        let list = self.list.borrow_and_update().clone();
        let mut known = std::mem::take(&mut self.plans);
        self.plans = list
            .iter()
            .map(|(id, places)| match known.iter().position(|plan| plan.id == *id) {
                Some(at) => known.swap_remove(at),
                None => WatchedPlan {
                    id: id.clone(),
                    places: places.iter().map(|change| Place { change: change.clone(), seen: None }).collect(),
                    outdated: false,
                },
            })
            .collect();
        self.watch = None;
        if self.plans.is_empty() {
            return;
        }
        let changes = || self.plans.iter().flat_map(|plan| plan.places.iter().map(|place| &place.change));
        let trees = changes().filter(|change| matches!(change.before, PathState::Entry { .. }));
        let directories = trees.flat_map(|change| directories(&change.path)).take(DIRECTORIES).collect();
        match Watch::with_directories(changes().map(|change| change.path.clone()).collect(), directories) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => tracing::warn!(%error, "cannot watch the files of pending approvals"),
        }
    }

    async fn check_all(&mut self) {
        let mut plans = std::mem::take(&mut self.plans);
        let looked = tokio::task::spawn_blocking(move || {
            let mut told = Vec::new();
            for plan in &mut plans {
                let outdated = !plan.places.iter_mut().all(Place::is_unchanged);
                if std::mem::replace(&mut plan.outdated, outdated) != outdated {
                    told.push((plan.id.clone(), outdated));
                }
            }
            (plans, told)
        });
        match looked.await {
            Ok((plans, told)) => {
                self.plans = plans;
                self.untold.extend(told);
            }
            Err(error) => tracing::error!(%error, "cannot follow the files of pending approvals"),
        }
    }
}

impl Place {
    fn is_unchanged(&mut self) -> bool {
        let Self { change: PlaceChange { path, before, .. }, seen } = self;
        let Some(stamp) = large(path).filter(|_| matches!(before, PathState::Content { .. })) else {
            *seen = None;
            return is_in_state(path, before);
        };
        match seen {
            Some((known, is_there)) if *known == stamp => *is_there,
            Some(_) | None => {
                let is_there = is_in_state(path, before);
                *seen = Some((stamp, is_there));
                is_there
            }
        }
    }
}

fn large(path: &Path) -> Option<FileStamp> {
    let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.len() > LARGE_BYTES)?;
    Some(FileStamp::from_metadata(&metadata))
}

/// Lists a directory and its subdirectories, parents first. Returns an empty list for any other path.
fn directories(tree: &Path) -> Vec<PathBuf> {
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|form| form.is_dir());
    let mut found: Vec<PathBuf> = is_directory(tree).then(|| tree.to_owned()).into_iter().collect();
    let mut at = 0;
    while let Some(directory) = found.get(at).filter(|_| found.len() < DIRECTORIES) {
        let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let below: Vec<PathBuf> = entries.filter(|path| is_directory(path)).collect();
        found.extend(below);
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::file::PreImage;
    use crate::tools::crash_outcome::{entry, planned_write};
    use std::fs;
    use std::sync::Arc;
    use std::time::Duration;
    use tempfile::TempDir;

    fn id(name: &str) -> ApprovalId {
        ApprovalId::new(name)
    }

    fn edits(path: &Path, before: &str) -> Vec<PlaceChange> {
        vec![planned_write(path, &PreImage::hash(before.as_bytes()), &PreImage::hash(b"proposed"))]
    }

    async fn next_report(follow: &mut BoxStream<'static, (ApprovalId, bool)>) -> (String, bool) {
        let told =
            tokio::time::timeout(Duration::from_secs(20), follow.next()).await.expect("no report arrived in time").unwrap();
        (told.0.to_string(), told.1)
    }

    #[tokio::test]
    async fn every_change_to_a_file_is_reported_including_its_restoration() {
        let dir = TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (file, new) = (root.join("src/main.rs"), root.join("src/new.rs"));
        fs::create_dir(root.join("src")).unwrap();
        fs::write(&file, "as read").unwrap();
        let creates = vec![planned_write(&new, &PreImage::Absent, &PreImage::hash(b"proposed"))];
        let list = Arc::from([(id("edit"), edits(&file, "as read")), (id("new"), creates)]);
        let (list, plans) = watch::channel::<PendingPlans>(list);
        let mut follow = follow(plans);
        let back = || fs::write(&file, "as read").unwrap();
        let ways: [&dyn Fn(); 4] = [
            &|| fs::write(&file, "by hand").unwrap(),
            &|| fs::remove_file(&file).unwrap(),
            &|| {
                fs::write(root.join("src/swap"), "by an editor").unwrap();
                fs::rename(root.join("src/swap"), &file).unwrap();
            },
            &|| {
                fs::remove_file(&file).unwrap();
                std::os::unix::fs::symlink(root.join("elsewhere"), &file).unwrap();
            },
        ];
        for change in ways {
            change();
            assert_eq!(next_report(&mut follow).await, ("edit".to_owned(), true));
            drop(fs::remove_file(&file));
            back();
            assert_eq!(next_report(&mut follow).await, ("edit".to_owned(), false));
        }
        fs::write(&new, "by hand").unwrap();
        assert_eq!(next_report(&mut follow).await, ("new".to_owned(), true));
        fs::remove_dir_all(root.join("src")).unwrap();
        let mut both = [next_report(&mut follow).await, next_report(&mut follow).await];
        both.sort();
        assert_eq!(both, [("edit".to_owned(), true), ("new".to_owned(), false)]);
        drop(list);
        assert_eq!(follow.next().await, None);
    }

    #[tokio::test]
    async fn changes_before_the_watch_are_reported_and_dropped_plans_are_not_watched() {
        let dir = TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let [one, two] = ["one", "two"].map(|name| root.join(name));
        fs::write(&one, "other").unwrap();
        fs::write(&two, "as read").unwrap();
        let (list, plans) = watch::channel::<PendingPlans>(Arc::from([(id("a"), edits(&one, "as read"))]));
        let mut follow = follow(plans);
        assert_eq!(next_report(&mut follow).await, ("a".to_owned(), true));
        list.send_replace(Arc::from([(id("b"), edits(&two, "as read"))]));
        fs::write(&one, "as read").unwrap();
        fs::write(&two, "other").unwrap();
        assert_eq!(next_report(&mut follow).await, ("b".to_owned(), true), "the first plan is no longer followed");
    }

    #[tokio::test]
    async fn directories_to_be_deleted_are_watched_recursively() {
        let dir = TempDir::new().unwrap();
        let tree = dir.path().canonicalize().unwrap().join("old");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "text").unwrap();
        let survey = crate::sys::file::tree::survey(&tree, &mut |_, _| {}).unwrap();
        let places = vec![PlaceChange { path: tree.clone(), before: entry(&survey), after: Some(PathState::Nothing) }];
        let (_list, plans) = watch::channel::<PendingPlans>(Arc::from([(id("a"), places)]));
        let mut follow = follow(plans);
        fs::write(tree.join("a/b/more"), "text").unwrap();
        assert_eq!(next_report(&mut follow).await, ("a".to_owned(), true));
        fs::remove_file(tree.join("a/b/more")).unwrap();
        assert_eq!(next_report(&mut follow).await, ("a".to_owned(), false));
    }

    #[tokio::test]
    async fn large_files_are_reread_only_if_touched() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().canonicalize().unwrap().join("large");
        let text = "x".repeat(LARGE_BYTES as usize + 1);
        fs::write(&file, &text).unwrap();
        let mut place = Place { change: edits(&file, &text).remove(0), seen: None };
        assert!(place.is_unchanged() && place.is_unchanged());
        let known = place.seen;
        assert!(known.is_some_and(|(_, is_there)| is_there));
        fs::write(&file, text.replace('x', "y")).unwrap();
        assert!(!place.is_unchanged() && place.seen != known);
        fs::write(&file, "small").unwrap();
        assert!(!place.is_unchanged() && place.seen.is_none());
    }
}
