//! Adds language server diagnostics to proposals and results. They are informational, and no policy decision depends on
//! them.

use super::blocking::off_thread;
use super::settings::ToolSettings;
use super::shell::preview::{PreviewFile, PreviewedCommand};
use super::tool::{AnyTool, Payload};
use crate::ports::{Diagnostics, Plan, ProposedText};
use crate::protocol::{FileDiagnostics, Proposal, ToolResult, ToolStatus};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of diagnostics to show with a proposal.
const MAX_NOTES: usize = 10;
/// Maximum size in bytes of the diagnostics in a result.
const MAX_RESULT_BYTES: usize = 2_000;

/// Adds to a plan the diagnostics that language servers report for the proposed content.
pub(super) async fn add_to_plan(mut plan: Plan, tool: &dyn AnyTool, settings: &ToolSettings) -> Plan {
    let Some(servers) = &settings.session.diagnostics else { return plan };
    let Some(proposal) = plan.proposal.as_mut().filter(|_| plan.changes) else { return plan };
    // The payload cannot be shared between threads, so its files are listed before the first `await`.
    let files = plan.payload.downcast_ref::<PreviewedCommand>().map(|command| changed_files(command, settings));
    let texts = match files {
        Some(files) => read_texts(files).await,
        None => visible_texts(tool, &plan.payload, settings),
    };
    if texts.is_empty() {
        return plan;
    }
    let reported = servers.check_proposal(texts).await.into_iter().map(|file| redact(file, settings));
    proposal.diagnostics = reported.filter(FileDiagnostics::is_worth_showing).collect();
    // Where there is little room, only the first row is shown.
    proposal.diagnostics.sort_by_key(|file| !file.has_new_errors());
    let rows: Vec<String> = proposal.diagnostics.iter().flat_map(FileDiagnostics::rows).collect();
    let more = rows.len().saturating_sub(MAX_NOTES);
    proposal.notes.extend(rows.into_iter().take(MAX_NOTES));
    if more > 0 {
        proposal.notes.push(format!("  and {more} more"));
    }
    plan
}

/// File content that a call is about to write, to be reported to the language servers.
pub(super) struct WrittenTexts {
    servers: Arc<dyn Diagnostics>,
    texts: Vec<ProposedText>,
}

impl WrittenTexts {
    /// Returns the content that a call is about to write. Returns `None` if there are no language servers, or if the
    /// call writes no such content.
    pub(super) fn new(tool: &dyn AnyTool, payload: &Payload, settings: &ToolSettings) -> Option<Self> {
        let servers = settings.session.diagnostics.clone()?;
        let texts = visible_texts(tool, payload, settings);
        (!texts.is_empty()).then_some(Self { servers, texts })
    }
}

impl WrittenTexts {
    /// Returns the content of the files that a previewed command changed. Returns `None` if there are no language
    /// servers, or if there is no such content.
    pub(super) async fn of_command(files: Vec<PreviewFile>, settings: &ToolSettings) -> Option<Self> {
        let servers = settings.session.diagnostics.clone()?;
        let texts = read_texts(files).await;
        (!texts.is_empty()).then_some(Self { servers, texts })
    }

    /// Drops content that was not written to its file because the user discarded it. Reads the files to find out.
    pub(super) async fn without_discarded(self) -> Option<Self> {
        let Self { servers, mut texts } = self;
        let read = off_thread(move || {
            texts.retain(|text| std::fs::read(&text.path).ok() == text.after.clone().map(String::into_bytes));
            texts
        });
        let texts = read.await.unwrap_or_default();
        (!texts.is_empty()).then_some(Self { servers, texts })
    }
}

/// Notifies the language servers that this content was written, and adds any new errors to the result that the model
/// receives. If a server does not respond in time, the errors that it reported for the proposal are added, which has the
/// same content.
pub(super) async fn add_new_errors(
    written: Option<WrittenTexts>,
    mut result: ToolResult,
    proposal: Option<&Proposal>,
    workspace: &Path,
) -> ToolResult {
    let Some(WrittenTexts { servers, texts }) = written.filter(|_| result.status == ToolStatus::Succeeded) else {
        return result;
    };
    let paths: Vec<PathBuf> = texts.iter().map(|text| text.path.clone()).collect();
    let mut reported = servers.check_saved(texts).await;
    let is_late = |file: &&FileDiagnostics| {
        let is_same = |other: &FileDiagnostics| other.path == file.path && other.server == file.server;
        paths.contains(&workspace.join(&file.path)) && !reported.iter().any(is_same)
    };
    let of_proposal = proposal.map(|proposal| proposal.diagnostics.as_slice()).unwrap_or_default();
    let late: Vec<FileDiagnostics> = of_proposal.iter().filter(is_late).cloned().collect();
    reported.extend(late);
    let rows: Vec<String> = reported.iter().filter(|file| file.has_new_errors()).flat_map(FileDiagnostics::rows).collect();
    if rows.is_empty() {
        return result;
    }
    let mut told = "\n\nErrors reported by the language server after this change:".to_owned();
    for row in rows {
        if told.len() + row.len() >= MAX_RESULT_BYTES {
            told.push_str("\n  and more");
            break;
        }
        told.push('\n');
        told.push_str(&row);
    }
    result.output_text.push_str(&told);
    result
}

/// Returns those files changed by a previewed command which a language server handles and the policy allows file tools
/// to read and write.
pub(super) fn changed_files(command: &PreviewedCommand, settings: &ToolSettings) -> Vec<PreviewFile> {
    let Some(servers) = &settings.session.diagnostics else { return Vec::new() };
    let is_wanted = |path: &Path| servers.covers(path) && (settings.paths.may_read)(path) && (settings.paths.may_write)(path);
    command.changed_files(&is_wanted)
}

async fn read_texts(files: Vec<PreviewFile>) -> Vec<ProposedText> {
    if files.is_empty() {
        return Vec::new();
    }
    off_thread(move || files.iter().filter_map(PreviewFile::text).collect()).await.unwrap_or_default()
}

/// Returns the content that a plan proposes for files which the policy allows the call to read and write.
fn visible_texts(tool: &dyn AnyTool, payload: &Payload, settings: &ToolSettings) -> Vec<ProposedText> {
    let mut texts = tool.proposed_texts(payload);
    texts.retain(|text| (settings.paths.may_read)(&text.path) && (settings.paths.may_write)(&text.path));
    texts
}

/// Redacts secrets in the messages of new errors, since they may quote file content.
fn redact(mut file: FileDiagnostics, settings: &ToolSettings) -> FileDiagnostics {
    for error in &mut file.new_errors {
        error.message = settings.redactor.redact(&error.message).text.into_owned();
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::BoxFuture;
    use crate::protocol::{CallId, Diagnostic, LanguageServerStatus};
    use futures_util::FutureExt;

    /// Servers that report this after a change has been saved.
    struct Servers(Vec<FileDiagnostics>);

    impl Diagnostics for Servers {
        fn check_proposal(&self, _: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>> {
            async { Vec::new() }.boxed()
        }

        fn check_saved(&self, _: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>> {
            async { self.0.clone() }.boxed()
        }

        fn covers(&self, _: &Path) -> bool {
            true
        }

        fn statuses(&self) -> Vec<LanguageServerStatus> {
            Vec::new()
        }

        fn end(&self) -> BoxFuture<'_, ()> {
            async {}.boxed()
        }
    }

    fn errors(path: &str, messages: &[&str]) -> FileDiagnostics {
        let new_errors = messages.iter().map(|message| Diagnostic { line: 1, message: (*message).to_owned() }).collect();
        let (path, server) = (path.to_owned(), "pyright".to_owned());
        FileDiagnostics { path, server, errors_before: 0, errors_after: messages.len(), new_errors, unlisted: 0 }
    }

    #[tokio::test]
    async fn errors_of_the_proposal_are_reported_if_the_check_after_the_write_is_late() {
        let of_proposal = vec![errors("a.py", &["undefined name"]), errors("other.py", &["not written"])];
        let proposal = Proposal { diagnostics: of_proposal, ..Proposal::default() };
        let text = ProposedText { path: PathBuf::from("/w/a.py"), before: None, after: Some("x".to_owned()) };
        for (saved, is_told) in [(Vec::new(), true), (vec![errors("a.py", &[])], false)] {
            let written = WrittenTexts { servers: Arc::new(Servers(saved)), texts: vec![text.clone()] };
            let result = ToolResult::success(CallId::new("c"), "WriteFile".to_owned(), "Wrote 1 byte".to_owned());
            let output = add_new_errors(Some(written), result, Some(&proposal), Path::new("/w")).await.output_text;
            assert_eq!(output.contains("undefined name"), is_told, "{output}");
            assert!(!output.contains("not written"), "{output}");
        }
    }
}
