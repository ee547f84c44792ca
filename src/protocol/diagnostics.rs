//! Diagnostics of language servers for changed files, and the state of the servers.

use serde::{Deserialize, Serialize};

/// Errors in one file before and after a change, as reported by a language server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiagnostics {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    /// Name of the language server: `rust-analyzer`.
    pub server: String,
    pub errors_before: usize,
    pub errors_after: usize,
    /// First errors that the change adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_errors: Vec<Diagnostic>,
    /// Number of added errors that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: usize,
}

/// Error in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Line number, counted from 1.
    pub line: usize,
    /// Message on one line, without control characters.
    pub message: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl FileDiagnostics {
    /// Returns the rows for display: `0 → 2 errors, src/main.rs:14: expected an expression (rust-analyzer)`, and one
    /// row for each other new error.
    pub fn rows(&self) -> Vec<String> {
        let Self { path, server, errors_before: before, errors_after: after, .. } = self;
        let noun = if *after == 1 { "error" } else { "errors" };
        let place = |error: &Diagnostic| format!("{path}:{}: {}", error.line, error.message);
        let Some((first, others)) = self.new_errors.split_first() else {
            return vec![format!("{before} → {after} {noun} in {path} ({server})")];
        };
        let mut rows = vec![format!("{before} → {after} {noun}, {} ({server})", place(first))];
        rows.extend(others.iter().map(|error| format!("  {}", place(error))));
        if self.unlisted > 0 {
            rows.push(format!("  and {} more in {path}", self.unlisted));
        }
        rows
    }

    /// Returns whether the change adds or removes errors, or the file still has errors.
    pub fn is_worth_showing(&self) -> bool {
        self.errors_before > 0 || self.errors_after > 0
    }

    /// Returns whether the change adds errors.
    pub fn has_new_errors(&self) -> bool {
        !self.new_errors.is_empty() || self.unlisted > 0
    }
}

/// State of a language server, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LanguageServerStatus {
    /// Language, as in `[lsp.rust]`.
    pub language: String,
    /// Name of the server: `rust-analyzer`.
    pub server: String,
    /// Description of the state: `ready`, `off: not found in PATH`.
    pub state: String,
}

/// Returns the list of language servers as text.
pub(super) fn language_server_list(servers: &[LanguageServerStatus]) -> String {
    if servers.is_empty() {
        return "Language servers are off here. They need a trusted project, and `enabled` in `[lsp]`.".to_owned();
    }
    let width = |text: fn(&LanguageServerStatus) -> &str| servers.iter().map(|server| text(server).chars().count()).max();
    let languages = width(|server| &server.language).unwrap_or_default();
    let names = width(|server| &server.server).unwrap_or_default();
    let row =
        |server: &LanguageServerStatus| format!("  {:languages$}  {:names$}  {}", server.language, server.server, server.state);
    let rows: Vec<String> = servers.iter().map(row).collect();
    format!("Language servers:\n{}", rows.join("\n"))
}
