//! Session with a running server, from the handshake to queries.

use super::connection::LspConnection;
use super::documents::{Documents, SentText};
use super::findings::Findings;
use super::languages::Language;
use super::limits::{LOAD_TIME, RESPONSE_TIME, START_TIME};
use crate::ports::{LaunchedProgram, ProposedText};
use crate::text::file_uri;
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use std::path::Path;
use tokio::time::{Instant, timeout, timeout_at};

/// Purpose of a query, which determines the text that the server has after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The change is only being proposed. After the query, the server has the text that is on disk.
    Proposal,
    /// The change has been saved. After the query, the server has the new text, which is also on disk.
    Saved,
}

/// Errors in each file before and after a change, or `None` for a file for which the server did not respond in time.
pub(super) type Compared = Vec<Option<(Findings, Findings)>>;

pub(super) struct LspSession {
    connection: LspConnection,
    language: &'static Language,
    documents: Documents,
    /// Whether the server supports requests for diagnostics. If not, it publishes them on its own.
    answers_requests: bool,
}

impl LspSession {
    /// Starts a session with a server that has just been launched.
    ///
    /// # Errors
    ///
    /// Returns an error if the server exited, sent invalid data, or did not respond in time.
    pub(super) async fn start(program: LaunchedProgram, language: &'static Language, root: &Path) -> Result<Self, String> {
        let settings = language.settings();
        let params = initialize_params(root, &settings);
        let connection = LspConnection::new(program, settings, root);
        let initialize = connection.request("initialize", &params);
        let result = match timeout(START_TIME, initialize).await {
            Ok(result) => result?,
            Err(_) => return Err(format!("the server did not start within {} s", START_TIME.as_secs())),
        };
        connection.notify("initialized", &json!({}))?;
        if language.reports_loading {
            match timeout(LOAD_TIME, connection.loaded()).await {
                Ok(loaded) => loaded?,
                Err(_) => return Err(format!("the server did not load the project within {} s", LOAD_TIME.as_secs())),
            }
        }
        let answers_requests = result.pointer("/capabilities/diagnosticProvider").is_some_and(Value::is_object);
        Ok(Self { connection, language, documents: Documents::default(), answers_requests })
    }

    /// Returns the reason why the server ended, or `None` if it is running.
    pub(super) fn end_reason(&self) -> Option<String> {
        self.connection.end_reason()
    }

    pub(super) async fn end(self) {
        self.connection.end().await;
    }

    /// Obtains the diagnostics of a change. If `deadline` passes, only the server's texts are updated.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended or is not responding.
    pub(super) async fn check(
        &mut self,
        texts: &[ProposedText],
        purpose: Purpose,
        deadline: Instant,
    ) -> Result<Compared, String> {
        let nothing = || texts.iter().map(|_| None).collect();
        // This reads only a few small files.
        self.documents.close_changed(&self.connection, texts)?;
        let mut sent = Vec::new();
        for text in texts {
            sent.push(match &text.before {
                Some(before) => Some((self.set(&text.path, before)?, before.as_str())),
                None => None,
            });
        }
        let before = timeout(RESPONSE_TIME, try_join_all(self.all_findings(texts, &sent))).await;
        let Ok(before) = before else {
            self.settle(texts, purpose)?;
            return Err(format!("the server did not respond within {} s", RESPONSE_TIME.as_secs()));
        };
        let before = before?;
        if Instant::now() >= deadline {
            self.settle(texts, purpose)?;
            return Ok(nothing());
        }
        // Send all texts before the first request, because the files may depend on each other.
        let mut sent = Vec::new();
        for text in texts {
            if let Some(after) = &text.after {
                sent.push(Some((self.set(&text.path, after)?, after.as_str())));
            } else {
                self.documents.close(&self.connection, &text.path)?;
                sent.push(None);
            }
        }
        let after =
            join_all(self.all_findings(texts, &sent).map(|one| async move { timeout_at(deadline, one).await.ok() })).await;
        self.settle(texts, purpose)?;
        let mut compared = Vec::new();
        for (before, after) in before.into_iter().zip(after) {
            compared.push(after.transpose()?.map(|after| (before, after)));
        }
        Ok(compared)
    }

    /// Sends the texts that the server should have after the query: the old text of a proposal, or the new text of a
    /// saved change.
    fn settle(&mut self, texts: &[ProposedText], purpose: Purpose) -> Result<(), String> {
        for text in texts {
            let on_disk = match purpose {
                Purpose::Proposal => &text.before,
                Purpose::Saved => &text.after,
            };
            match on_disk {
                Some(on_disk) => drop(self.set(&text.path, on_disk)?),
                None => self.documents.close(&self.connection, &text.path)?,
            }
        }
        if purpose == Purpose::Saved {
            self.report_saved(texts)?;
        }
        Ok(())
    }

    fn report_saved(&self, texts: &[ProposedText]) -> Result<(), String> {
        let (created, changed, deleted) = (1, 2, 3);
        let kind = |text: &ProposedText| match (&text.before, &text.after) {
            (_, None) => deleted,
            (None, Some(_)) => created,
            (Some(_), Some(_)) => changed,
        };
        let changes: Vec<Value> = texts.iter().map(|text| json!({ "uri": file_uri(&text.path), "type": kind(text) })).collect();
        self.connection.notify("workspace/didChangeWatchedFiles", &json!({ "changes": changes }))?;
        for text in texts.iter().filter(|text| text.after.is_some()) {
            let document = json!({ "textDocument": { "uri": file_uri(&text.path) } });
            self.connection.notify("textDocument/didSave", &document)?;
        }
        Ok(())
    }

    fn set(&mut self, path: &Path, text: &str) -> Result<SentText, String> {
        self.documents.set(&self.connection, self.language, path, text)
    }

    /// Returns the errors in each text that was sent. A file without a text has none.
    fn all_findings<'a>(
        &'a self,
        texts: &'a [ProposedText],
        sent: &'a [Option<(SentText, &'a str)>],
    ) -> impl Iterator<Item = impl Future<Output = Result<Findings, String>> + 'a> {
        texts.iter().zip(sent).map(move |(file, sent)| async move {
            match sent {
                Some((sent, text)) => self.findings(&file.path, *sent, text).await,
                None => Ok(Findings::default()),
            }
        })
    }

    async fn findings(&self, path: &Path, sent: SentText, text: &str) -> Result<Findings, String> {
        let items = if self.answers_requests {
            let params = json!({ "textDocument": { "uri": file_uri(path) } });
            let report = self.connection.request("textDocument/diagnostic", &params).await?;
            report.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
        } else {
            self.connection.published(path, sent.version, sent.mark).await?
        };
        Ok(Findings::read(&items, text))
    }
}

/// Returns the parameters of `initialize`. They contain no process ID, because the server runs in a process namespace
/// of its own.
fn initialize_params(root: &Path, settings: &Value) -> Value {
    let uri = file_uri(root);
    let name = root.file_name().map_or_else(|| "workspace".to_owned(), |name| name.to_string_lossy().into_owned());
    json!({
        "processId": null,
        "clientInfo": { "name": "aye", "version": env!("CARGO_PKG_VERSION") },
        "rootUri": uri,
        "rootPath": root.to_string_lossy(),
        "workspaceFolders": [{ "uri": uri, "name": name }],
        "initializationOptions": settings,
        "capabilities": {
            "general": { "positionEncodings": ["utf-16"] },
            "workspace": { "configuration": true, "workspaceFolders": true },
            "textDocument": {
                "synchronization": { "didSave": true },
                "publishDiagnostics": { "versionSupport": true },
                "diagnostic": { "dynamicRegistration": false },
            },
            "experimental": { "serverStatusNotification": true },
        },
    })
}
