//! Handles files that a command leaves behind and that other programs run as code.

use crate::policy::is_kept_only_with_approval;
use crate::sys::file::tree::rename_in_place;
use crate::sys::sandbox::Confinement;
use crate::tools::change_log::WriteMark;
use crate::tools::paths::join_names;
use crate::tools::sandbox::{Leases, ProtectedScan, ScanResult, take_away};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A command's sandbox, together with all resources that must exist until the command ends.
#[derive(Debug, Default)]
pub(in crate::tools) struct CommandSandbox {
    /// Confinement, or `None` if the command runs without a sandbox.
    pub confinement: Option<Confinement>,
    pub(super) leases: Leases,
    pub(super) must_not_appear: Vec<PathBuf>,
    /// Scan made before the command runs, if the command must not create protected files.
    pub(super) survey: Option<(Arc<ProtectedScan>, Arc<ScanResult>)>,
    /// How to handle new files, if the command runs without approval.
    pub(super) unapproved: Option<UnapprovedFiles>,
}

/// How to handle files that a command created without approval and that run code as soon as the folder is opened.
#[derive(Debug)]
pub(super) struct UnapprovedFiles {
    /// Whether such files are merely reported, as is done for git, which writes whatever the repository contains.
    pub reported_only: bool,
    /// Mark that was set when the command started.
    pub since: Option<WriteMark>,
}

impl CommandSandbox {
    /// Marks the start of the command. Files that aye or other commands write after that are not attributed to it.
    pub(in crate::tools) fn start(&mut self, since: Option<WriteMark>) {
        if let Some(unapproved) = &mut self.unapproved {
            unapproved.since = since;
        }
    }

    /// Switches to the handling for a session: because later input to the session is approved separately, files are
    /// only reported, not renamed.
    pub(in crate::tools) fn set_session_mode(&mut self) {
        if let Some(unapproved) = &mut self.unapproved {
            unapproved.reported_only = true;
        }
    }

    /// Cleans up after the command. Returns a description of any files that were removed, and of those that will run
    /// code later.
    pub(in crate::tools) fn over(self) -> Option<String> {
        let appeared = match &self.unapproved {
            Some(unapproved) => self.handle_unapproved_files(unapproved),
            None => self.describe_new_files(),
        };
        let words = [take_away(&self.must_not_appear), appeared];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Describes new files, below the top level of the workspace, that would have been protected if they had existed
    /// before the command ran.
    fn describe_new_files(&self) -> Option<String> {
        let (survey, before) = self.survey.as_ref()?;
        let new: Vec<PathBuf> = survey.new_paths(before).into_iter().filter(|place| !self.is_shut(place)).collect();
        list_paths(&new).map(|named| format!("{named} appeared: {LOOK}"))
    }

    fn is_shut(&self, place: &Path) -> bool {
        self.confinement.as_ref().is_some_and(|held| held.read_only.iter().any(|shut| shut == place))
    }

    /// Describes new files created without approval, and renames those that builds do not normally create.
    fn handle_unapproved_files(&self, unapproved: &UnapprovedFiles) -> Option<String> {
        let (survey, before) = self.survey.as_ref()?;
        let of_a_tool = |place: &PathBuf| unapproved.since.as_ref().is_some_and(|since| since.is_touched_by_a_tool(place));
        let new = survey.new_unresolved_paths(before).into_iter().filter(|place| !self.is_shut(place) && !of_a_tool(place));
        let shared = unapproved.since.as_ref().is_some_and(WriteMark::overlaps_others);
        // In a workspace too large to scan, a file found now may have existed before.
        let reported_only = unapproved.reported_only || shared || before.cut.is_some();
        let (mut renamed, mut left) = (Vec::new(), Vec::new());
        for place in new {
            let goes = !reported_only && is_kept_only_with_approval(&place);
            if let Some(Ok(now)) = goes.then(|| rename_to_unused_name(&place)) {
                renamed.push((place, now));
            } else {
                left.push(place);
            }
        }
        let told = |(place, now): &(PathBuf, PathBuf)| {
            format!("`{}` (now `{}`)", place.display(), now.file_name().unwrap_or_default().to_string_lossy())
        };
        let renamed = (!renamed.is_empty()).then(|| {
            let named = join_names(renamed.iter().map(told));
            format!(
                "{named} renamed: programs run such a file as soon as the folder is opened, and this was not approved; to keep \
                 it, rename it with the user's approval"
            )
        });
        let left = list_paths(&left).map(|named| {
            let who = if shared { " while this and another command ran" } else { "" };
            format!("{named} appeared{who}: {LOOK}")
        });
        let words: Vec<String> = [renamed, left].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// Warning about files that other programs run.
const LOOK: &str = "other programs run the code in such files, so review them before you work in that folder";

fn list_paths(places: &[PathBuf]) -> Option<String> {
    (!places.is_empty()).then(|| join_names(places.iter().map(|place| format!("`{}`", place.display()))))
}

/// Renames a file, within its directory, to a name that no program looks for. Returns the new path. Does not follow
/// symlinks.
fn rename_to_unused_name(place: &Path) -> std::io::Result<PathBuf> {
    const MAX: usize = 100;
    let name = place.file_name().unwrap_or_default();
    for number in 1..=MAX {
        let mut new = OsString::from("_blocked_");
        new.push(name);
        new.push(if number == 1 { "_".to_owned() } else { format!("_{number}_") });
        match rename_in_place(place, &new) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            renamed => return renamed.map(|()| place.with_file_name(new)),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}
