//! Runs a command in a view and determines its effects.

use super::direct_output::{DirectOutput, DirectlyWritten};
use super::effects::ListedEffect;
use super::ended_run::{EndedRun, RunEffects, RunEnd, to_tool_result};
use super::layer_end::{hidden_secrets_named, is_stopped, set_unattended};
use super::overlay_dir::{Call, OverlayDir, previews};
use super::progress::ProgressReporter;
use super::throwaway_home::ThrowawayHome;
use crate::ports::{LayerEnd, RunContext};
use crate::protocol::{CallId, EffectPart, Effects, ErrorCode, Proposal, SandboxAccess, ToolError, ToolResult, size};
use crate::sys::overlay::{self, Changes, LayeredDirectory};
use crate::sys::process::{End, FinishedRun, OutputReceivers, run_with_receivers};
use crate::sys::sandbox::{Backend, Confinement, Substitute, View as Seen};
use crate::tools::background::describe_process_end;
use crate::tools::blocking::off_thread;
use crate::tools::output::{OutputCollector, OutputCollectors};
use crate::tools::redaction::hide_in_result;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::{
    PlannedCommand, check_unchanged, process_error, sandbox_denials, spec, unapproved_run, with_words,
};
use crate::tools::shell::command_sandbox::ExtraAccess;
use crate::tools::shell::sandbox_denials::CreatedPaths;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Error messages of programs that have hit a limitation of the view, with explanations.
const LIMITS: &[(&[&str], &str)] = &[
    (
        &["invalid cross-device link", "cross-device link not permitted", "exdev", "os error 18", "errno 18"],
        "a preview cannot rename directories; if that is what failed, run the command without a preview",
    ),
    (
        &["value too large for defined data type", "eoverflow", "os error 75", "errno 75"],
        "a preview cannot change files of other owners; if that is what failed, run the command without a preview",
    ),
    (&["stale file handle", "estale"], "another program changed a file while the preview ran; run it again"),
];

/// Number of changes above which the memory that they use is returned to the system once a decision has been made.
const MANY_CHANGES: usize = 10_000;

/// Returns whether the changes take up so much memory that it should be returned to the system after the decision.
pub(super) fn are_many(changes: &[Changes]) -> bool {
    changes.iter().map(|changes| changes.entries().len()).sum::<usize>() > MANY_CHANGES
}

/// A command that has run in its view and whose effects have yet to be applied or discarded.
pub(in crate::tools) struct PreviewedCommand {
    pub(super) changes: Vec<Changes>,
    /// The redacted result for the model, without the changes.
    pub(super) result: ToolResult,
    /// Reason why no change can be applied, which is that the list of changes is incomplete.
    pub(super) unlisted: Option<String>,
    /// Changes to each listed path.
    pub(super) listed: Vec<ListedEffect>,
    /// Real directories whose changes are build output.
    pub(super) build: Vec<PathBuf>,
    /// Time at which the run ended, according to the clock used for file times.
    pub(super) ended_at: overlay::Time,
    /// End of the run, with the data from which its effects are computed.
    pub(super) run_end: RunEnd,
    pub(super) layers: Vec<LayeredDirectory>,
    pub(super) began: overlay::Time,
    pub(super) settings: Arc<ToolSettings>,
    /// The plan's notes from before the run.
    pub(in crate::tools) plan_notes: Vec<String>,
    /// Dropped last, because dropping it returns the memory used by the other fields to the system.
    pub(super) view: OverlayDir,
}

/// Result of a run in a view.
pub(in crate::tools) struct PreviewRunResult {
    pub kept: PreviewedCommand,
    pub effects: Effects,
    /// Details to display: diff, paths, sizes and notes.
    pub proposal: Proposal,
    /// Parts of the effects that can be omitted.
    pub parts: Vec<EffectPart>,
    /// Assessment of a run that preceded approval.
    pub end: Option<LayerEnd>,
}

/// Runs a line in a view of its own, with only the access that was approved.
pub(in crate::tools) async fn run(
    mut work: PlannedCommand,
    tool_call_id: CallId,
    tool_name: String,
    settings: Arc<ToolSettings>,
    context: RunContext,
) -> Result<PreviewRunResult, ToolError> {
    let settings = work.narrow.apply_to(settings);
    check_unchanged(&mut work, &settings).await?;
    let call = Call { tool_call_id, tool_name, session_id: settings.session.id.clone() };
    let apart = unapproved_run(&work, &settings).await?;
    let (making, opens) = (Arc::clone(&settings), work.opens.clone());
    let (id, name) = (call.tool_call_id.clone(), call.tool_name.clone());
    let prepared = off_thread(move || PreparedPreview::new(&call, opens, &making)).await??;
    let PreparedPreview { mut view, confinement, layers, began, opened, outside } = prepared;
    let mut spec = spec(&work, Some(confinement.clone()), &apart, &settings);
    if settings.command.sandbox.layered {
        set_unattended(&mut spec.environment);
    }
    let (to_keep, whole) = OutputCollector::begin(&work.line, &settings);
    let beside = OutputReceivers { whole: to_keep, interrupt: context.interrupt, ..OutputReceivers::default() };
    let finished = run_with_receivers(spec, context.output, context.kill, beside).await.map_err(|error| process_error(&error))?;
    let wholes = match whole {
        Some(whole) => whole.finish().await,
        None => OutputCollectors::default(),
    };
    let reporter = ProgressReporter::new(context.progress);
    off_thread(move || {
        drop(opened);
        let mut changes = read_changes(&layers, began, &reporter)?;
        let (wanted, note) = outside.wanted_access(began, &settings);
        let (mut run_end, blocked) = inspect_end(&finished, &work, &confinement, &settings);
        run_end.direct = view.direct().map(|direct| direct.scan_written(&settings)).unwrap_or_default();
        let ended_at = overlay::mark(view.path()).map_err(|error| io_error("cannot read the clock", &error))?;
        run_end.denied.extend(wanted);
        run_end.notes.extend(note.clone());
        let RunEffects { effects, proposal, parts, listed, build, end } = run_end.clone().effects(&mut changes, &settings);
        let limit = settings.max_output_bytes;
        let output = wholes.attach_to(work.result(&finished, limit), &finished, limit);
        let notes = blocked.into_iter().chain(note.map(|note| format!("[sandbox: {note}]")));
        let output = with_words(output, notes, Vec::new());
        let result = hide_in_result(&settings.redactor, to_tool_result(output, id, &name));
        let unlisted = effects.unlisted_reason();
        if are_many(&changes) {
            view.release_memory_on_drop();
        }
        let mut kept = PreviewedCommand {
            view,
            changes,
            result,
            unlisted,
            listed,
            build,
            ended_at,
            run_end,
            layers,
            began,
            settings,
            plan_notes: Vec::new(),
        };
        let end = end.map(|end| kept.with_outcome(end));
        kept.outlive_session(&effects, end.as_ref());
        Ok(PreviewRunResult { kept, effects, proposal, parts, end })
    })
    .await?
}

/// Reads the changes in each layer, and reports the progress.
fn read_changes(
    layers: &[LayeredDirectory],
    began: overlay::Time,
    reporter: &ProgressReporter,
) -> Result<Vec<Changes>, ToolError> {
    let read = |layered| {
        let found = overlay::changes_with_progress(layered, began, &|progress| reporter.report(progress));
        reporter.end_directory();
        found.map_err(|error| io_error("cannot read the command's changes", &error))
    };
    layers.iter().map(read).collect()
}

impl PreviewedCommand {
    /// Adds how the command ended to the assessment of the run, and its error if it did not end on its own.
    fn with_outcome(&self, end: LayerEnd) -> LayerEnd {
        let error = self.result.error.clone().filter(|_| self.run_end.stopped);
        LayerEnd { error, ended: self.result.ended.clone(), ..end }
    }

    /// Stores the end of the run in the layer, so that another process can show its effects again.
    fn outlive_session(&mut self, effects: &Effects, end: Option<&LayerEnd>) {
        if self.settings.session.id.is_none() || end.is_none() || self.run_end.stopped || effects.is_build_output() {
            return;
        }
        let ended = EndedRun {
            end: self.run_end.clone(),
            result: self.result.clone(),
            effects: Cow::Borrowed(effects),
            layers: self.layers.clone(),
            began: self.began,
            ended_at: Some(self.ended_at),
            is_settled: self.changes.iter().all(Changes::is_settled),
        };
        match self.view.keep_ended(&ended) {
            Ok(()) => self.view.outlives(self.settings.session.commands.clone()),
            // If aye exits before the decision, the effects are discarded.
            Err(error) => tracing::warn!(%error, "cannot store the end of a run in its layer"),
        }
    }

    /// Returns the command's error, if it failed.
    pub(in crate::tools) fn error(&self) -> Option<&ToolError> {
        self.result.error.as_ref()
    }

    /// Returns the result for the model, without the changes.
    pub(in crate::tools) fn result(&self) -> &ToolResult {
        &self.result
    }

    /// Returns whether the command changed anything that can be applied.
    pub(in crate::tools) fn has_changes(&self) -> bool {
        !self.changes.iter().all(Changes::is_empty)
    }

    /// Returns whether a path is in a directory whose changes are build output.
    pub(in crate::tools) fn is_build_output(&self, path: &Path) -> bool {
        self.build.iter().any(|directory| path.starts_with(directory))
    }

    /// Reads the changes that the layer contains at this moment. Performs blocking I/O.
    ///
    /// # Errors
    /// Returns an error if the layer cannot be read.
    pub(in crate::tools) fn changes_now(&self) -> Result<Vec<Changes>, ToolError> {
        let found = self.layers.iter().map(|layered| overlay::changes(layered, self.began)).collect::<io::Result<Vec<_>>>();
        let mut found = found.map_err(|error| io_error("cannot read the command's changes", &error))?;
        for (now, before) in found.iter_mut().zip(&self.changes) {
            now.restore_modes_from(before);
        }
        Ok(found)
    }

    /// Reads the effects again once hooks have run in the layer. Performs blocking I/O.
    ///
    /// # Errors
    /// Returns an error if the layer cannot be read.
    pub(in crate::tools) fn read_again(self) -> Result<PreviewRunResult, ToolError> {
        let mut changes = self.changes_now()?;
        let RunEffects { effects, proposal, parts, listed, build, end } =
            self.run_end.clone().effects(&mut changes, &self.settings);
        let unlisted = effects.unlisted_reason();
        let mut kept = Self { changes, unlisted, listed, build, ..self };
        let end = end.map(|end| kept.with_outcome(end));
        kept.outlive_session(&effects, end.as_ref());
        Ok(PreviewRunResult { kept, effects, proposal, parts, end })
    }
}

/// Paths outside the workspace to which a command running in a layer can write. What it writes there is discarded.
#[derive(Debug, Default)]
struct OutsideWrites {
    home: Option<ThrowawayHome>,
    /// Layers over the directories outside the workspace that the policy makes writable.
    layers: Vec<LayeredDirectory>,
}

impl OutsideWrites {
    /// Returns the access that the command tried to use, and a note on what it wrote to copies that are discarded.
    /// Files in the home directory whose names start with a dot are settings and logs that commands write incidentally,
    /// so they are merely mentioned.
    fn wanted_access(&self, began: overlay::Time, settings: &ToolSettings) -> (Vec<SandboxAccess>, Option<String>) {
        let written = self.home.iter().flat_map(ThrowawayHome::written_paths).collect::<Vec<_>>();
        let changed =
            |layered: &&LayeredDirectory| overlay::changes(layered, began).is_ok_and(|changes| !changes.entries().is_empty());
        let granted: Vec<PathBuf> = self.layers.iter().filter(changed).map(|layered| layered.directory.clone()).collect();
        let home = settings.home.as_deref();
        let is_dotted = |path: &Path| {
            let below = home.and_then(|home| path.strip_prefix(home).ok());
            below.and_then(|below| below.iter().next()).is_some_and(|first| first.as_encoded_bytes().starts_with(b"."))
        };
        let deliberate = written.iter().filter(|path| !is_dotted(path) && (settings.paths.may_open)(path)).chain(&granted);
        let write = |path: &PathBuf| path.to_str().map(|path| SandboxAccess::Write { path: path.to_owned() });
        let wanted = deliberate.filter_map(write).collect();
        let names: Vec<String> = written.iter().chain(&granted).map(|path| format!("`{}`", path.display())).collect();
        let note = (!names.is_empty())
            .then(|| format!("the command wrote to {} outside the workspace, in a copy; this was discarded", names.join(", ")));
        (wanted, note)
    }
}

/// The directories used by a preview.
struct PreviewDirs {
    view: OverlayDir,
    layers: Vec<LayeredDirectory>,
    caches: Vec<LayeredDirectory>,
    substitute: Option<Substitute>,
    began: overlay::Time,
}

pub(super) struct PreparedPreview {
    view: OverlayDir,
    pub(super) confinement: Confinement,
    pub(super) layers: Vec<LayeredDirectory>,
    pub(super) began: overlay::Time,
    /// Paths that the command may write to and that did not exist.
    opened: CreatedPaths,
    outside: OutsideWrites,
}

impl PreparedPreview {
    /// Prepares to run a command with this access.
    pub(super) fn new(call: &Call, opens: Vec<SandboxAccess>, settings: &ToolSettings) -> Result<Self, ToolError> {
        let impossible = |why: &str| ToolError::new(ErrorCode::InvalidRequest, format!("cannot preview this call: {why}"));
        let base = settings.command.sandbox.previews.as_ref().map_err(|why| impossible(why))?;
        let opened = CreatedPaths::make(&opens);
        let wanted = ExtraAccess { opens, ..ExtraAccess::default() };
        let held = settings.confine(&wanted).filter(|confinement| confinement.strength == Backend::Namespaces);
        let held = held.ok_or_else(|| impossible("this system has no sandbox that supports previews"))?;
        let made = || -> io::Result<PreviewDirs> {
            let view = OverlayDir::make(base, call)?;
            let began = overlay::mark(view.path())?;
            let layers = view.layers("upper", &held.roots)?;
            // Package caches also have a copy that is removed with the view.
            let caches = view.layers("cache", &settings.command.sandbox.caches.directories)?;
            let substitute = settings.command.sandbox.caches.substitute(view.path().join("cache-home"))?;
            Ok(PreviewDirs { view, layers, caches, substitute, began })
        };
        let PreviewDirs { mut view, layers, caches, substitute, began } =
            made().map_err(|error| io_error("cannot create the preview", &error))?;
        let mut hidden = held.hidden.clone();
        hidden.push(previews(base));
        let mut read_only = Vec::new();
        if settings.command.sandbox.layered {
            let is_shown = |secret: &PathBuf| held.shown.contains(secret);
            let secrets = settings.command.sandbox.secrets().map_err(|why| impossible(&why))?;
            hidden.extend(secrets.into_iter().filter(|secret| !is_shown(secret)));
            // The same paths as in a real run, except missing paths, which must not appear to exist.
            read_only.extend(held.read_only.iter().filter(|place| place.symlink_metadata().is_ok()).cloned());
        }
        let mut outside = OutsideWrites::default();
        let mut caches = caches;
        if settings.command.sandbox.layered {
            let granted = granted_directories(settings, &held);
            outside.layers = view.layers("outside", &granted).map_err(|error| io_error("cannot create the preview", &error))?;
            caches.extend(outside.layers.iter().cloned());
        }
        let mut confinement = Confinement {
            view: Seen::CopyOnWrite(layers.clone()),
            // Writes to these paths are real: they contain only locks, or the user allowed writing there.
            writable: settings.command.sandbox.caches.locks.iter().cloned().chain(wanted.writable_paths()).collect(),
            // In a requested preview, changes to protected paths are reported but not applied.
            read_only,
            reopened: Vec::new(),
            hidden,
            caches,
            substitutes: substitute.into_iter().collect(),
            ..held
        };
        if settings.command.sandbox.writes_build_output() {
            let direct = DirectOutput::find(&layers, began, &confinement, settings);
            if let Some(direct) = direct {
                confinement.reopened.extend(direct.directories().iter().cloned());
                view.keep_direct(direct).map_err(|error| io_error("cannot create the preview", &error))?;
            }
        }
        if let Some(home) = settings.home.as_deref().filter(|_| settings.command.sandbox.layered) {
            outside.home = ThrowawayHome::make(home, view.path().join("home"), &mut confinement)
                .map_err(|error| io_error("cannot create the preview", &error))?;
        }
        Ok(Self { view, confinement, layers, began, opened, outside })
    }
}

/// Returns the directories outside the workspace that the policy makes writable.
fn granted_directories(settings: &ToolSettings, held: &Confinement) -> Vec<PathBuf> {
    let is_apart = |place: &Path| !held.roots.iter().any(|root| place.starts_with(root) || root.starts_with(place));
    let holds_home = |place: &Path| settings.home.as_deref().is_some_and(|home| home.starts_with(place));
    let granted = settings.command.sandbox.paths.writable.iter().filter(|place| is_apart(place) && !holds_home(place));
    let mut directories: Vec<PathBuf> = granted.filter(|place| place.is_dir()).cloned().collect();
    directories.sort();
    directories.dedup_by(|inner, outer| inner.starts_with(outer));
    directories
}

fn io_error(what: &str, error: &io::Error) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, format!("{what}: {error}; nothing was changed"))
}

/// Describes how the run ended and which access was blocked.
fn inspect_end(
    finished: &FinishedRun,
    work: &PlannedCommand,
    confinement: &Confinement,
    settings: &ToolSettings,
) -> (RunEnd, Option<String>) {
    let told = match work.result(finished, settings.max_output_bytes) {
        Ok(told) => told.text,
        Err(failed) => failed.printed,
    };
    let output = settings.redactor.redact(&told).text.into_owned();
    let output_seen = told;
    let denied = sandbox_denials(finished, work, confinement, settings);
    let mut notes = Vec::new();
    match finished.end {
        End::TimedOut | End::Killed | End::Interrupted => {
            notes.push("the command did not finish; these are its effects up to that point".to_owned());
        }
        End::DiskFull => {
            notes.push("the command nearly filled the disk and was stopped; these are its effects up to that point".to_owned());
        }
        End::LayerFull => notes.push(
            "the command wrote more than `layer_mb` in the policy allows and was stopped; these are its effects up to that point"
                .to_owned(),
        ),
        End::MemoryFull => {
            notes.push(
                "the command exceeded the shared-memory limit and was stopped; these are its effects up to that point".to_owned(),
            );
        }
        End::Exited(_) | End::Signalled(_) => {}
    }
    notes.extend(limits(&output).map(str::to_owned));
    let blocked = denied.note();
    let run_end = RunEnd {
        ended: describe_end(finished.end, work.timeout_seconds, confinement),
        output,
        denied: denied.outside.into_iter().chain(hidden_secrets_named(finished, confinement, &output_seen, settings)).collect(),
        notes,
        stopped: is_stopped(finished.end),
        direct: DirectlyWritten::default(),
    };
    (run_end, blocked)
}

pub(super) fn limits(output: &str) -> impl Iterator<Item = &'static str> {
    let small = output.to_lowercase();
    LIMITS.iter().filter(move |(signs, _)| signs.iter().any(|sign| small.contains(sign))).map(|(_, means)| *means)
}

fn describe_end(end: End, timeout_seconds: u64, confinement: &Confinement) -> String {
    match end {
        End::LayerFull => {
            let most = size(confinement.limits.layer_bytes.unwrap_or_default());
            format!("killed because it wrote more than {most}; `layer_mb` in the policy sets this limit")
        }
        End::TimedOut => format!("killed after {timeout_seconds} s"),
        end => describe_process_end(end),
    }
}
