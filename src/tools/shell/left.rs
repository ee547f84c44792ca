//! What a command leaves behind that other programs run, and what is done about it.

use super::caches::Leases;
use super::git_places::take_away;
use super::survey::{Found, Survey};
use crate::policy::is_left_only_with_approval;
use crate::sys::file::tree::rename_in_place;
use crate::sys::sandbox::Confinement;
use crate::tools::changes::Mark;
use crate::tools::paths::listed;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a command is held, and what has to stay until it is over.
#[derive(Debug, Default)]
pub(in crate::tools) struct Hold {
    /// `None` where nothing holds it.
    pub confinement: Option<Confinement>,
    pub(super) leases: Leases,
    pub(super) must_not_appear: Vec<PathBuf>,
    /// What there was before, where the command was not asked to make such things.
    pub(super) survey: Option<(Arc<Survey>, Arc<Found>)>,
    /// Of a command that nobody approved: what it may not leave behind.
    pub(super) unapproved: Option<Unapproved>,
}

/// What is done with files that run code when the folder is opened and that a command made without an approval.
#[derive(Debug)]
pub(super) struct Unapproved {
    /// Git writes what is in the repository, so that is reported and stays.
    pub reported_only: bool,
    /// When the command began.
    pub since: Option<Mark>,
}

impl Hold {
    /// The command began; what aye and other commands write from then on is not its work.
    pub(in crate::tools) fn begins(&mut self, since: Option<Mark>) {
        if let Some(unapproved) = &mut self.unapproved {
            unapproved.since = since;
        }
    }

    /// What is typed into a session later has approvals of its own, so nothing that it makes loses its name.
    pub(in crate::tools) fn of_a_session(&mut self) {
        if let Some(unapproved) = &mut self.unapproved {
            unapproved.reported_only = true;
        }
    }

    /// After the command: in words what it made that cannot stay, and what it made that runs code later.
    pub(in crate::tools) fn over(self) -> Option<String> {
        let appeared = match &self.unapproved {
            Some(unapproved) => self.left_without_approval(unapproved),
            None => self.appeared(),
        };
        let words = [take_away(&self.must_not_appear), appeared];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Places further down in the workspace that would have been shut, had they been there.
    fn appeared(&self) -> Option<String> {
        let (survey, before) = self.survey.as_ref()?;
        let new: Vec<PathBuf> = survey.appeared(before).into_iter().filter(|place| !self.is_shut(place)).collect();
        named(&new).map(|named| format!("{named} appeared: {LOOK}"))
    }

    fn is_shut(&self, place: &Path) -> bool {
        self.confinement.as_ref().is_some_and(|held| held.read_only.iter().any(|shut| shut == place))
    }

    /// The same after a command that nobody approved: what no build makes loses its name.
    fn left_without_approval(&self, unapproved: &Unapproved) -> Option<String> {
        let (survey, before) = self.survey.as_ref()?;
        let of_a_tool = |place: &PathBuf| unapproved.since.as_ref().is_some_and(|since| since.is_touched_by_a_tool(place));
        let new = survey.appeared_by_name(before).into_iter().filter(|place| !self.is_shut(place) && !of_a_tool(place));
        let shared = unapproved.since.as_ref().is_some_and(Mark::is_beside_others);
        // In a part of a workspace that is too large, a place may be found now that was there before.
        let reported_only = unapproved.reported_only || shared || before.cut.is_some();
        let (mut renamed, mut left) = (Vec::new(), Vec::new());
        for place in new {
            let goes = !reported_only && is_left_only_with_approval(&place);
            if let Some(Ok(now)) = goes.then(|| without_its_name(&place)) {
                renamed.push((place, now));
            } else {
                left.push(place);
            }
        }
        let told = |(place, now): &(PathBuf, PathBuf)| {
            format!("`{}` (now `{}`)", place.display(), now.file_name().unwrap_or_default().to_string_lossy())
        };
        let renamed = (!renamed.is_empty()).then(|| {
            let named = listed(renamed.iter().map(told));
            format!(
                "{named} renamed: programs run such a file as soon as the folder is opened, and this was not approved; to keep \
                 it, rename it with the user's approval"
            )
        });
        let left = named(&left).map(|named| {
            let who = if shared { " while this and another command ran" } else { "" };
            format!("{named} appeared{who}: {LOOK}")
        });
        let words: Vec<String> = [renamed, left].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// What is said of places that other programs run.
const LOOK: &str = "other programs run what such files contain, so review it before you work there";

fn named(places: &[PathBuf]) -> Option<String> {
    (!places.is_empty()).then(|| listed(places.iter().map(|place| format!("`{}`", place.display()))))
}

/// Gives a place a name that no program looks for, in its directory, and returns that path. No link is followed.
fn without_its_name(place: &Path) -> std::io::Result<PathBuf> {
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
