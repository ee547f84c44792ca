//! Build output that a command running in a layer writes directly (`build_output = "direct"`). It remains whatever is
//! decided about the other effects, so output that was built from discarded files must not be newer than the sources.

use super::build_directories::{BuildDirectories, find_build_directories};
use super::build_output::is_target_inside;
use crate::protocol::{CountedEffects, RefusedEffect};
use crate::sys::overlay::{self, LayeredDirectory, Time, remove_access_lists};
use crate::sys::path::read_link;
use crate::sys::sandbox::Confinement;
use crate::tools::executable_files::is_opened;
use crate::tools::ignored::IgnoreRules;
use crate::tools::paths::display_path_one_line;
use crate::tools::settings::ToolSettings;
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of entries to examine after the run.
const MAX_ENTRIES: usize = 500_000;

/// Build directories to which a command running in a view writes directly, and what is needed to discard its other
/// effects.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DirectOutput {
    #[serde(with = "crate::protocol::path_text::list")]
    directories: Vec<PathBuf>,
    layers: Vec<LayeredDirectory>,
    began: Time,
}

/// Build output that a command has written directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DirectlyWritten {
    pub counted: Vec<CountedEffects>,
    /// Entries that were removed again, each with the reason.
    pub refused: Vec<RefusedEffect>,
}

impl DirectOutput {
    /// Finds the existing directories that meet all conditions. Returns `None` if there are none.
    pub(super) fn find(
        layers: &[LayeredDirectory],
        began: Time,
        confinement: &Confinement,
        settings: &ToolSettings,
    ) -> Option<Self> {
        let mut directories = Vec::new();
        for LayeredDirectory { directory: root, .. } in layers {
            let Ok(device) = fs::metadata(root).map(|data| data.dev()) else { continue };
            let mut ignored = IgnoreRules::new(root, &*settings.paths.may_read);
            let mut conditions = BuildDirectories::new(root, settings);
            let is_restricted = |real: &Path| {
                confinement.read_only.iter().any(|place| real.starts_with(place))
                    || confinement.hidden.iter().any(|place| place.starts_with(real) || real.starts_with(place))
            };
            for below in find_build_directories(root).directories {
                let real = root.join(&below);
                let is_here = real.symlink_metadata().is_ok_and(|data| data.is_dir() && data.dev() == device);
                if is_here && !is_restricted(&real) && conditions.qualifies(&below, &mut ignored) {
                    directories.push(real);
                }
            }
        }
        (!directories.is_empty()).then(|| Self { directories, layers: layers.to_vec(), began })
    }

    pub(super) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Counts the entries that the command has written, and removes those that are not allowed in build output.
    pub(super) fn scan_written(&self, settings: &ToolSettings) -> DirectlyWritten {
        let mut written = DirectlyWritten::default();
        let mut left = MAX_ENTRIES;
        for directory in &self.directories {
            let path = display_path_one_line(directory, settings);
            let mut counted = CountedEffects { path, created: 0, changed: 0, deleted: 0, bytes: 0, direct: true };
            self.for_each_recent_entry(directory, &mut left, |path, data, is_new| {
                if let Some(reason) = refusal_reason(path, data, directory, settings).filter(|_| is_new) {
                    let removed = fs::remove_file(path);
                    let reason = removed
                        .err()
                        .map_or_else(|| reason.to_owned(), |error| format!("{reason}, but the file is still there: {error}"));
                    written.refused.push(RefusedEffect { path: display_path_one_line(path, settings), reason });
                    return;
                }
                if let Err(error) = remove_access_lists(path) {
                    tracing::debug!(%error, path = %path.display(), "cannot remove the access list of build output");
                }
                if !data.is_dir() {
                    *(if is_new { &mut counted.created } else { &mut counted.changed }) += 1;
                    counted.bytes += data.len();
                }
            });
            if counted.created + counted.changed > 0 {
                written.counted.push(counted);
            }
        }
        written
    }

    /// Calls `each` for every entry that has changed since the run began. The flag says whether the entry was created
    /// since then.
    fn for_each_recent_entry(&self, directory: &Path, left: &mut usize, mut each: impl FnMut(&Path, &Metadata, bool)) {
        let began = (self.began.0, self.began.1);
        let start = UNIX_EPOCH + Duration::new(began.0.unsigned_abs(), u32::try_from(began.1).unwrap_or_default());
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { return };
                *left = rest;
                let path = entry.path();
                let Ok(data) = entry.metadata() else { continue };
                if data.is_dir() {
                    open.push(path.clone());
                }
                if (data.ctime(), data.ctime_nsec()) >= began {
                    each(&path, &data, data.created().is_ok_and(|created: SystemTime| created >= start));
                }
            }
        }
    }

    /// Updates the modification times of the files whose changes are discarded, so that the next build does not use
    /// output made from those changes.
    pub(super) fn discard(&self) {
        for layered in &self.layers {
            let touched = overlay::changes(layered, self.began).and_then(|changes| overlay::touch_replaced(&changes, |_| true));
            if let Err(error) = touched {
                tracing::warn!(%error, "cannot touch the files whose changes were discarded");
            }
        }
    }
}

/// Returns the reason why an entry is not allowed in build output, or `None` if it is allowed.
fn refusal_reason(path: &Path, data: &Metadata, directory: &Path, settings: &ToolSettings) -> Option<&'static str> {
    if data.is_dir() {
        return None;
    }
    if !(settings.paths.may_write)(path) {
        return Some("the policy does not allow writing the file");
    }
    if is_opened(path, settings) {
        return Some("programs run the file when the folder is opened");
    }
    if data.is_symlink() {
        let target = read_link(path).unwrap_or_default();
        let is_inside = is_target_inside(
            path.strip_prefix("/").unwrap_or(path),
            Path::new(&target),
            directory.strip_prefix("/").unwrap_or(directory),
        );
        return (!is_inside).then_some("a symlink that points outside the build directory");
    }
    (!data.is_file()).then_some("a socket or device")
}
