//! Handles crashes by showing a message to the user and writing a report for developers.

use super::error::CliError;
use crate::policy::guard::contains_panics;
use crate::policy::redact::{Key, Redactor, names_a_secret};
use std::backtrace::Backtrace;
use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum length, in bytes, of a secret value that is redacted wherever it appears. Shorter values may occur in text
/// by chance.
const MIN_BYTES: usize = 8;

/// State of crash handling, including the command that resumes the session and the first crash.
#[derive(Debug, Clone, Default)]
pub(crate) struct CrashHandler(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    logs: PathBuf,
    /// Command that resumes the session, such as `aye --resume=7f3a…`. `None` until there is a session.
    resume: Option<String>,
    /// Message about the first crash, which may have caused any later ones.
    message: Option<String>,
}

impl CrashHandler {
    /// Installs the panic hook. The previous hook, which restores the terminal, is called first.
    pub(crate) fn install() -> Self {
        let watch = Self::default();
        let own = watch.clone();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if contains_panics() {
                return before(info);
            }
            match own.write_report(info) {
                // On the main thread, no other code reports the crash.
                Some(words) if std::thread::current().name() == Some("main") => crate::host::console::warn(&words),
                Some(_) => {}
                None => before(info),
            }
        }));
        watch
    }

    /// Records that a session is open.
    pub(crate) fn set_session(&self, logs: PathBuf, resume: String) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.logs, state.resume) = (logs, Some(resume));
    }

    /// Returns the error for the crash. It is reported in place of any error that the crash caused.
    pub(crate) fn error(&self) -> Option<CliError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).message.clone().map(CliError::failed)
    }

    /// Writes a crash report. Returns `None` if no session was open.
    fn write_report(&self, info: &PanicHookInfo<'_>) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resume = state.resume.clone()?;
        if let Some(message) = &state.message {
            return Some(message.clone());
        }
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let text = redact_in_thread(info.to_string());
        let report = format!("aye {}, thread {thread}\n{text}\n\n{}\n", super::version::version(), Backtrace::force_capture());
        let words = resume_hint(&resume, keep(&state.logs, &report));
        state.message = Some(words.clone());
        Some(words)
    }
}

/// Secret values known to any redactor in this process, regardless of their form.
static KNOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Name of the redaction thread. Panics in this thread are not reported, because they indicate that redaction itself
/// may be broken.
const REDACTS: &str = "panic-text";

/// Adds secret values that must not appear in panic messages.
pub(crate) fn remember<'a>(values: impl Iterator<Item = &'a str>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for value in values {
        if !known.iter().any(|known| known == value) {
            known.push(value.to_owned());
        }
    }
}

/// Installs a panic hook that redacts secrets. Must be called before any code that can panic.
pub(crate) fn redact_panics() {
    std::panic::set_hook(Box::new(|info| {
        if std::thread::current().name() == Some(REDACTS) {
            return;
        }
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let wants_trace = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        let trace = if wants_trace { format!("\n{}", Backtrace::force_capture()) } else { String::new() };
        let text = redact_in_thread(format!("thread '{thread}' {info}{trace}"));
        let _ = writeln!(std::io::stderr(), "aye: internal error: {}", crate::text::clean(&text));
    }));
}

/// Redacts the text on a separate thread. If that thread panics, the text is withheld.
fn redact_in_thread(text: String) -> String {
    let redact = move || {
        let known = KNOWN.try_lock().map(|known| known.clone()).unwrap_or_default();
        let own: Vec<String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, value)| names_a_secret(name) && value.len() >= MIN_BYTES)
            .map(|(_, value)| value)
            .collect();
        let known = known.iter().chain(&own).map(String::as_str);
        Redactor::new(Vec::new(), known, Key::default).redact(&text).text.into_owned()
    };
    let thread = std::thread::Builder::new().name(REDACTS.to_owned()).spawn(redact);
    let done = thread.ok().and_then(|thread| thread.join().ok());
    done.unwrap_or_else(|| "(the error message is hidden because it could not be redacted)".to_owned())
}

/// Installs a panic hook that reports caught panics only in the log. The log entry includes the location but not the
/// message, which may quote the text being evaluated.
pub(crate) fn log_contained() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if contains_panics() {
            let place = info.location().map_or_else(|| "an unknown location".to_owned(), ToString::to_string);
            tracing::error!(%place, "denied a request because an internal error occurred while evaluating it");
        } else {
            before(info);
        }
    }));
}

/// Writes the report to a new file that only the user can read.
fn keep(logs: &Path, report: &str) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(logs)?;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let prefix = format!("crash-{day}-");
    let mut file = tempfile::Builder::new().prefix(&prefix).suffix(".txt").tempfile_in(logs)?;
    file.write_all(report.as_bytes())?;
    Ok(file.keep()?.1)
}

fn resume_hint(resume: &str, report: std::io::Result<PathBuf>) -> String {
    let report = match report {
        Ok(path) => path.display().to_string(),
        Err(error) => format!("could not be written ({error})"),
    };
    format!("aye crashed; the session is saved. Run `{resume}` to continue. Report: {report}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_messages_contain_no_secrets() {
        remember(["value-that-nobody-may-see"].into_iter());
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let text = redact_in_thread(format!("index out of bounds in `{token}` and value-that-nobody-may-see"));
        assert!(text.contains("index out of bounds") && !text.contains(&token) && !text.contains("nobody-may-see"), "{text}");
    }

    #[test]
    fn the_crash_message_names_the_resume_command_and_the_report() {
        let directory = tempfile::TempDir::new().unwrap();
        let logs = directory.path().join("logs");
        let words = resume_hint("aye --resume=7f3a", keep(&logs, "what broke"));
        let path =
            words.strip_prefix("aye crashed; the session is saved. Run `aye --resume=7f3a` to continue. Report: ").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "what broke");
        assert!(Path::new(path).starts_with(&logs), "{path}");
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert!(
            resume_hint("aye --resume", keep(&directory.path().join("file/logs"), "")).contains("Report: could not be written (")
        );
    }

    #[test]
    fn a_crash_handler_without_a_crash_reports_no_error() {
        let watch = CrashHandler::default();
        assert!(watch.error().is_none());
        watch.set_session(PathBuf::from("logs"), "aye --resume".to_owned());
        assert!(watch.error().is_none(), "nothing broke");
    }
}
