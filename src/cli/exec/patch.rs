//! `aye exec --patch`: runs the task in a copy-on-write layer over the workspace, and writes the changes to a patch
//! file.

use crate::config::trust::UncoveredDirectory;
use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::ephemeral::EphemeralData;
use crate::host::error::CliError;
use crate::host::options::Common;
use crate::host::version::version;
use crate::protocol::{Problem, format_count};
use crate::store::{DecisionFilter, Store};
use crate::sys::file::{Existing, write_whole};
use crate::sys::sandbox::{Persistence, ProcessLayer};
use crate::tools::{CollectedChanges, LoggedVerdict, PatchFile, PatchHeader, PolicyStamp};
use std::path::{Path, PathBuf};

/// Maximum number of decisions read from the run's log.
const MAX_DECISIONS: usize = 10_000;
/// Maximum number of paths listed in a notice; any further paths are only counted.
const NAMES: usize = 5;

/// A task that runs in a copy-on-write layer and whose changes are then written to a patch file.
pub(super) struct PatchRun {
    layer: ProcessLayer,
    file: PathBuf,
}

impl PatchRun {
    /// Mounts a copy-on-write layer over the workspace, so this process sees a copy of the workspace from then on. Must
    /// be called before the first thread starts.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if the system does not support copy-on-write layers.
    pub(super) fn begin(app: &AppContext, common: &Common, run: &EphemeralData, file: &Path) -> Result<Self, CliError> {
        if !common.add_dirs.is_empty() {
            let problem = Problem::new("`--patch` cannot be combined with `--add-dir`");
            return Err(CliError::usage(problem.because("a patch file contains the changes in one directory")));
        }
        let file = std::path::absolute(file).map_err(|error| unwritable(file, &error))?;
        let is_in_directory = file.parent().is_some_and(Path::is_dir) && !file.is_dir();
        if !is_in_directory {
            return Err(unwritable(&file, &"the path is a directory, or its directory does not exist"));
        }
        let no_layer = |why: &dyn std::fmt::Display| {
            let problem = Problem::new("`--patch` needs a copy-on-write layer over the workspace").because(why);
            CliError::usage(problem.hint("run `aye doctor` to see what this system supports"))
        };
        if run.path().starts_with(&app.workspace) {
            return Err(no_layer(&"the data directory is inside the workspace").hint("set AYE_DATA_DIR to another directory"));
        }
        let base = run.create_layer().map_err(|error| no_layer(&error))?;
        let uncovered = UncoveredDirectory::examine(&app.workspace);
        let layer = ProcessLayer::mount_over(&app.workspace, &base, Persistence::Process).map_err(|why| no_layer(&why))?;
        uncovered.remember_covered();
        Ok(Self { layer, file })
    }

    /// Unmounts the layer and writes the changes to the file. The workspace is left unchanged.
    ///
    /// # Errors
    /// Returns an error if the same files were also changed outside the task, if the changes exceed a limit, or if the
    /// file cannot be written.
    pub(super) fn finish(self, app: &AppContext, policy: PolicyStamp) -> Result<(), CliError> {
        let Self { layer, file } = self;
        let failed = |why: &dyn std::fmt::Display| {
            let problem = Problem::new(format!("cannot write the patch file `{}`", file.display())).because(why);
            CliError::failed(problem.hint("the workspace is unchanged; run the task again"))
        };
        let verdicts = verdicts(app).map_err(|error| failed(&error.into_problem()))?;
        let changes = layer.unmount().map_err(|error| failed(&error))?;
        let changes = CollectedChanges::read(&changes).map_err(|why| failed(&why))?;
        let header = PatchHeader::new(version(), policy, changes.files.clone(), changes.left_out.clone(), verdicts);
        let text = PatchFile::text(&header, &changes).map_err(|error| failed(&error))?;
        // `aye apply` must be able to read the file.
        PatchFile::parse(text.as_bytes()).map_err(|why| failed(&why))?;
        write_whole(&file, text.as_bytes(), Existing::Replace).map_err(|error| failed(&error))?;
        report(&file, &changes);
        Ok(())
    }
}

fn unwritable(file: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::usage(Problem::new(format!("cannot write the patch file `{}`", file.display())).because(why))
}

/// Returns the decisions on the run's calls, oldest first.
fn verdicts(app: &AppContext) -> Result<Vec<LoggedVerdict>, CliError> {
    let store = Store::open(&app.directories.data)?;
    let decisions = store.decisions(&DecisionFilter { session: None, denied_only: false, most: MAX_DECISIONS })?;
    let verdict = |decision: crate::store::LoggedDecision| LoggedVerdict {
        tool: decision.tool_name,
        summary: decision.summary,
        verdict: decision.verdict,
        by: decision.by,
        reason: decision.reason,
    };
    Ok(decisions.into_iter().map(verdict).collect())
}

fn report(file: &Path, changes: &CollectedChanges) {
    let (file, count) = (file.display(), changes.files.len());
    let notice = Problem::new(format!(
        "{} in the patch file `{file}`; the workspace is unchanged",
        format_count(count as u64, "file", "files")
    ));
    warn(if count == 0 { notice } else { notice.hint(format!("run `aye apply {file}` to apply it")) });
    let left_out = &changes.left_out;
    if left_out.is_empty() {
        return;
    }
    let named: Vec<String> = left_out.iter().take(NAMES).map(|left| format!("{} ({})", left.path, left.why)).collect();
    let more = left_out.len().saturating_sub(NAMES);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    warn(format!("left out of the patch file: {}{more}", named.join(", ")));
}
