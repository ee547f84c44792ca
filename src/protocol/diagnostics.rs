//! Language server diagnostics for changed files, and the status of the language servers.

use serde::{Deserialize, Serialize};

/// Errors in one file before and after a change, as reported by a language server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiagnostics {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    /// Name of the language server, such as `rust-analyzer`.
    pub server: String,
    pub errors_before: usize,
    pub errors_after: usize,
    /// First errors introduced by the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_errors: Vec<Diagnostic>,
    /// Number of further errors introduced by the change, which are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: usize,
}

/// Error reported for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Line number, starting at 1.
    pub line: usize,
    /// Error message on one line, without control characters.
    pub message: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl FileDiagnostics {
    /// Returns the display rows: `0 → 2 errors, src/main.rs:14: expected an expression (rust-analyzer)`, followed by
    /// one row for each further new error.
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

    /// Returns whether the file had errors before the change or has errors after it.
    pub fn is_worth_showing(&self) -> bool {
        self.errors_before > 0 || self.errors_after > 0
    }

    /// Returns whether the change introduces errors.
    pub fn has_new_errors(&self) -> bool {
        !self.new_errors.is_empty() || self.unlisted > 0
    }
}

/// Status of a language server, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LanguageServerStatus {
    /// Language, as in the table name `[lsp.rust]`.
    pub language: String,
    /// Name of the server, such as `rust-analyzer`.
    pub server: String,
    /// Description of the state, such as `ready` or `off: not found in PATH`.
    pub state: String,
}

/// Formats the list of language servers as text.
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
