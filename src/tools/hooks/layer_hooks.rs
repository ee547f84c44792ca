//! Hooks for calls that change text files. They run before the call, in a layer that contains the proposed files. Their
//! changes become part of the proposal, so all of them are shown, approved and written together.

use super::call_hooks::HookedTool;
use super::command::{CommandOutcome, RunPlace};
use super::runner::HookRunner;
use crate::hooks::{Hook, HookAction};
use crate::ports::{Plan, ProposedText};
use crate::protocol::{Action, FileDiff, HookDecision, HookEvent, HookRun, ToolCall, cut_position_before};
use crate::tools::blocking::off_thread;
use crate::tools::diff::{compare, prepare_text};
use crate::tools::paths::{display_path_one_line, join_names};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::preview::HookLayer;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of files in a call for which hooks run.
const MAX_FILES: usize = 20;
/// Maximum size in bytes of a diff that the model receives.
const MAX_NOTE_BYTES: usize = 6_000;

/// The proposal of a call, together with the hooks to run on it.
pub(in crate::tools) struct HookedProposal {
    call: ToolCall,
    tool: HookedTool,
    hooks: Vec<Hook>,
    pub texts: Vec<ProposedText>,
}

/// The files that a call proposes, while its hooks run.
struct ProposedFiles {
    layer: Arc<HookLayer>,
    paths: Vec<PathBuf>,
    /// Text of each file as left by the hooks that have run so far.
    texts: Vec<String>,
    /// Other paths that hooks changed in layers that have since been replaced.
    others: Vec<String>,
}

impl ProposedFiles {
    /// Creates a layer that contains these files. Returns `None` if layers are not available.
    fn new(paths: Vec<PathBuf>, texts: Vec<String>, settings: &ToolSettings) -> Option<Self> {
        let layer = HookLayer::make(&settings.for_hooks_in_layer()).ok()?;
        for (path, text) in paths.iter().zip(&texts) {
            layer.write(path, text).ok().filter(|is_written| *is_written)?;
        }
        Some(Self { layer: Arc::new(layer), paths, texts, others: Vec::new() })
    }
}

impl HookRunner {
    /// Returns a call's proposal along with the hooks that can run on it, in a layer, before the call. Returns `None`
    /// if there are no such hooks, or if the call does more than change text files.
    pub(in crate::tools) fn hooked_proposal(&self, plan: &Plan) -> Option<HookedProposal> {
        let hooked = self.tool(&plan.call)?;
        let is_sandboxed = |hook: &&Hook| matches!(hook.action, HookAction::Command { unsandboxed: false, .. });
        let hooks: Vec<Hook> = self.hooks.matching(HookEvent::PostToolUse, &hooked.names).filter(is_sandboxed).cloned().collect();
        let hooks: Vec<Hook> = hooks.into_iter().filter(|hook| !self.inputs(hook, &hooked).is_empty()).collect();
        if hooks.is_empty() {
            return None;
        }
        let settings = self.settings();
        let texts = self.tools.resolve(&plan.call.tool_name).ok()?.proposed_texts(&plan.payload);
        // If the numbers differ, the call does more than change these files.
        let is_whole = plan.actions.iter().filter(|action| is_change(action)).count() == texts.len();
        let is_visible = |text: &ProposedText| {
            let is_offered = plan.amends.offer.files.contains(&display_path_one_line(&text.path, settings));
            is_offered && text.after.is_some() && (settings.paths.may_read)(&text.path) && (settings.paths.may_write)(&text.path)
        };
        let is_usable = !texts.is_empty() && texts.len() <= MAX_FILES && is_whole && texts.iter().all(is_visible);
        is_usable.then(|| HookedProposal { call: plan.call.clone(), tool: hooked, hooks, texts })
    }

    /// Runs a proposal's hooks in a layer. Returns `None` if layers are not available.
    pub(in crate::tools) async fn run_on(&self, proposal: HookedProposal, stop: &CancellationToken) -> Option<ProposalHooks> {
        let HookedProposal { call, tool, hooks, texts } = proposal;
        let mut files = self.proposed_files(texts).await?;
        let proposed_paths: Arc<[PathBuf]> = files.paths.clone().into();
        let proposed = files.texts.clone();
        let mut runs = Vec::new();
        for hook in &hooks {
            for told in self.inputs(hook, &tool) {
                let input = self.input_after(&tool, &call, &told, None);
                let since = Instant::now();
                let outcome =
                    self.run(hook, &input, stop, RunPlace::Layer(Arc::clone(&files.layer), Arc::clone(&proposed_paths))).await;
                let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                let run = HookRun { hook: hook.name(), latency_ms, ..HookRun::default() };
                runs.push(self.settle(run, outcome, &mut files).await);
            }
        }
        self.note_other_files(&files, &mut runs).await;
        let changed = files.paths.iter().zip(files.texts).zip(proposed).filter(|((_, now), before)| now != before);
        let changed = changed.map(|((path, now), before)| ChangedText { path: path.clone(), before, now }).collect();
        Some(ProposalHooks { runs, changed })
    }

    /// Creates a layer that contains the proposed files. Returns `None` if layers are not available or a file is not
    /// UTF-8.
    async fn proposed_files(&self, texts: Vec<ProposedText>) -> Option<ProposedFiles> {
        let settings = Arc::clone(self.settings());
        let made = off_thread(move || {
            let (mut paths, mut contents) = (Vec::new(), Vec::new());
            for text in texts {
                // A file in another encoding is written in that encoding, which the layer does not support.
                let is_utf8 = text
                    .before
                    .as_ref()
                    .is_none_or(|before| std::fs::read(&text.path).is_ok_and(|bytes| bytes == before.as_bytes()));
                let after = text.after.filter(|_| is_utf8)?;
                paths.push(text.path);
                contents.push(after);
            }
            ProposedFiles::new(paths, contents, &settings)
        });
        made.await.ok().flatten()
    }

    /// Reads the changes that a hook made. If the hook failed, its changes are undone.
    async fn settle(&self, mut run: HookRun, outcome: CommandOutcome, files: &mut ProposedFiles) -> HookRun {
        let words = match outcome {
            CommandOutcome::Response(response) => {
                let reason = response.reason.filter(|_| response.decision == HookDecision::Deny);
                let now = self.read_texts(files).await;
                let mut lost = Vec::new();
                for ((path, text), now) in files.paths.iter().zip(&mut files.texts).zip(now) {
                    let name = display_path_one_line(path, self.settings());
                    match now {
                        Some(now) if now == *text => {}
                        Some(now) => {
                            run.changed.push(name);
                            *text = now;
                        }
                        None => lost.push(format!("It left no text file at `{name}`; this change is not used.")),
                    }
                }
                reason.into_iter().chain(response.context).chain(lost).collect::<Vec<_>>().join("\n")
            }
            CommandOutcome::NotRun(why) => format!("it was not run: {why}"),
            CommandOutcome::Failed(why) => format!("it failed: {why}"),
        };
        self.restore(files).await;
        run.context = (!words.is_empty()).then_some(words);
        run
    }

    async fn read_texts(&self, files: &ProposedFiles) -> Vec<Option<String>> {
        let (layer, paths, limit) = (Arc::clone(&files.layer), files.paths.clone(), self.settings().max_file_size_bytes);
        off_thread(move || paths.iter().map(|path| layer.read(path, limit)).collect()).await.unwrap_or_default()
    }

    /// Creates a new layer for the next hook if a hook removed a file, or if a hook that failed changed one. aye never
    /// writes to a layer in which a hook has run, because symlinks in it may lead elsewhere.
    async fn restore(&self, files: &mut ProposedFiles) {
        let (layer, paths, texts) = (Arc::clone(&files.layer), files.paths.clone(), files.texts.clone());
        let settings = Arc::clone(self.settings());
        let renewed = off_thread(move || {
            let limit = settings.max_file_size_bytes;
            let is_intact = paths.iter().zip(&texts).all(|(path, text)| layer.read(path, limit).as_ref() == Some(text));
            (!is_intact).then(|| (layer.other_changes(&paths), ProposedFiles::new(paths, texts, &settings)))
        });
        match renewed.await {
            Ok(None) => {}
            Ok(Some((others, Some(renewed)))) => {
                files.layer = renewed.layer;
                files.others.extend(others);
            }
            Ok(Some((_, None))) | Err(_) => tracing::warn!("cannot create another layer for hooks"),
        }
    }

    /// Reports changes to files that the call itself does not change. These changes are discarded.
    async fn note_other_files(&self, files: &ProposedFiles, runs: &mut [HookRun]) {
        let (layer, paths) = (Arc::clone(&files.layer), files.paths.clone());
        let mut others = off_thread(move || layer.other_changes(&paths)).await.unwrap_or_default();
        others.extend(files.others.iter().cloned());
        others.sort();
        others.dedup();
        let Some(run) = runs.last_mut().filter(|_| !others.is_empty()) else { return };
        let names = join_names(others.iter().map(|path| format!("`{path}`")));
        let words = format!("hooks also changed {names}, which the call does not change; these changes are discarded");
        add_context(run, &self.settings().redactor.redact(&words).text);
    }
}

/// Outcome of running hooks on a proposal.
pub(in crate::tools) struct ProposalHooks {
    pub runs: Vec<HookRun>,
    /// The call's files that hooks changed.
    pub changed: Vec<ChangedText>,
}

/// Text of a file before and after the hooks ran.
pub(in crate::tools) struct ChangedText {
    pub path: PathBuf,
    pub before: String,
    pub now: String,
}

impl ProposalHooks {
    /// Adds a diff of the hooks' changes, which the model will receive, to the last hook run that changed a file.
    pub(in crate::tools) fn describe_changes(&mut self, settings: &ToolSettings) {
        let mut diffs = String::new();
        for text in &self.changed {
            let name = display_path_one_line(&text.path, settings);
            let (before, now) = (prepare_text(&text.before, settings), prepare_text(&text.now, settings));
            let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), compare(&before, &now).hunks);
            diffs.push_str(&diff.to_string());
        }
        let end = cut_position_before(&diffs, MAX_NOTE_BYTES);
        let cut = if end < diffs.len() { "\n(more: read the file)" } else { "" };
        let words = format!("It changed your text before it was written:\n{}{cut}", diffs[..end].trim_end());
        if let Some(run) = self.runs.iter_mut().rev().find(|run| !run.changed.is_empty()) {
            add_context(run, &words);
        }
    }

    /// Discards the changes that the hooks made, and records the reason in their runs.
    pub(in crate::tools) fn discard_changes(&mut self, why: &str) {
        self.changed.clear();
        for run in self.runs.iter_mut().filter(|run| !run.changed.is_empty()) {
            run.changed.clear();
            add_context(run, &format!("its changes are not used: {why}"));
        }
    }

    /// Returns the notes to show with the proposal.
    pub(in crate::tools) fn notes(&self) -> Vec<String> {
        notes(&self.runs)
    }
}

/// Returns notes to show with a proposal: one for each hook that changed files or returned a message.
pub(in crate::tools) fn notes(runs: &[HookRun]) -> Vec<String> {
    let note = |run: &HookRun| {
        let says = run.context.as_deref().and_then(|context| context.lines().find(|line| !line.trim().is_empty()));
        match (run.changed.is_empty(), says) {
            (true, None) => None,
            (true, Some(says)) => Some(format!("message from the hook {}: {says}", run.hook)),
            (false, _) => Some(format!("includes the changes that the hook {} made to {}", run.hook, run.changed.join(", "))),
        }
    };
    runs.iter().filter_map(note).collect()
}

fn is_change(action: &Action) -> bool {
    matches!(action, Action::Write { .. } | Action::Delete { .. })
}

fn add_context(run: &mut HookRun, words: &str) {
    run.context = Some(run.context.take().map_or_else(|| words.to_owned(), |context| format!("{context}\n{words}")));
}
