//! Log for developers. It consists of diagnostics, and of all events without their text, as JSON lines in the data
//! directory. It is never shown on the screen.

pub(crate) mod rotation;

use rotation::{LogLimits, Rotating};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// Directory for log files, inside the data directory.
const DIRECTORY: &str = "logs";
const DEFAULT_FILTER: &str = "aye::events=info,warn";
/// Maximum number of buffered lines. If the disk is slow, any further lines are dropped, because logging must not slow
/// down aye.
const WAITING_LINES: usize = 4096;

/// Starts logging. No directory, file or thread is created until the first line is logged. If the filter is invalid,
/// the default filter is used and a message is returned.
pub(crate) fn start(data_dir: &Path, filter: Option<&str>, all_bytes: u64) -> (Log, Option<String>) {
    let (filter, problem) = read_filter(filter);
    let file = LogFile::new(data_dir, LogLimits { all_bytes, ..LogLimits::default() });
    let subscriber = tracing_subscriber::fmt()
        .event_format(Lines { json: Format::default().json() })
        .fmt_fields(JsonFields::new())
        .with_env_filter(filter)
        .with_writer(file.clone())
        .finish();
    // Fails if a log was already started, which then stays in use.
    drop(tracing::subscriber::set_global_default(subscriber));
    (Log(file), problem)
}

fn read_filter(given: Option<&str>) -> (EnvFilter, Option<String>) {
    let usual = || EnvFilter::new(DEFAULT_FILTER);
    match given.map(|given| (given, EnvFilter::try_new(cap_levels(given, STATIC_MAX_LEVEL)))) {
        None => (usual(), None),
        Some((_, Ok(filter))) => (filter, None),
        Some((given, Err(error))) => {
            (usual(), Some(format!("AYE_LOG: invalid filter `{given}` ({error}); expected for example `aye=debug`")))
        }
    }
}

/// Limits all levels in the filter to the maximum level of the build. For any higher level, the library would print a
/// warning.
fn cap_levels(filter: &str, most: LevelFilter) -> Cow<'_, str> {
    if most >= LevelFilter::TRACE {
        return Cow::Borrowed(filter);
    }
    let lowered = |part: &str| {
        let directive = part.parse::<Directive>().ok()?.to_string();
        let start = directive.strip_suffix("trace").filter(|start| start.is_empty() || start.ends_with('='))?;
        Some(format!("{start}{most}"))
    };
    let parts = filter.split(',').map(|part| lowered(part).unwrap_or_else(|| part.to_owned()));
    Cow::Owned(parts.collect::<Vec<_>>().join(","))
}

/// Returns the size of the log in bytes.
pub(crate) fn bytes(data_dir: &Path) -> u64 {
    rotation::bytes(&data_dir.join(DIRECTORY))
}

/// Deletes the oldest log files until the total size is within the limit. Returns the number of bytes freed.
pub(crate) fn prune(data_dir: &Path, all_bytes: u64, dry_run: bool) -> u64 {
    let directory = data_dir.join(DIRECTORY);
    let before = rotation::bytes(&directory);
    if dry_run {
        return before.saturating_sub(all_bytes);
    }
    rotation::prune(&directory, LogLimits { all_bytes, ..LogLimits::default() });
    before.saturating_sub(rotation::bytes(&directory))
}

/// Guard for the open log. Dropping it flushes buffered lines.
pub(crate) struct Log(LogFile);

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.0.0.guard.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[derive(Clone)]
struct LogFile(Arc<LogSink>);

struct LogSink {
    directory: PathBuf,
    budget: LogLimits,
    /// `None` if the file cannot be created. This is not an error, because logging must never stop the program.
    writer: OnceLock<Option<NonBlocking>>,
    guard: Mutex<Option<WorkerGuard>>,
}

impl LogFile {
    fn new(data_dir: &Path, budget: LogLimits) -> Self {
        Self(Arc::new(LogSink { directory: data_dir.join(DIRECTORY), budget, writer: OnceLock::new(), guard: Mutex::new(None) }))
    }
}

impl LogSink {
    fn open(&self) -> Option<NonBlocking> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory).ok()?;
        let today = || jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let files = Rotating::new(self.directory.clone(), self.budget, today).ok()?;
        let (writer, guard) = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING_LINES).finish(files);
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
        Some(writer)
    }
}

impl MakeWriter<'_> for LogFile {
    type Writer = LogWriter;

    fn make_writer(&self) -> LogWriter {
        LogWriter(self.0.writer.get_or_init(|| self.0.open()).clone())
    }
}

struct LogWriter(Option<NonBlocking>);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(line.len()), |writer| writer.write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), NonBlocking::flush)
    }
}

/// Formats log entries as JSON lines. Session events are JSON lines already.
struct Lines {
    json: Format<Json>,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &tracing::Event<'_>) -> fmt::Result {
        if event.metadata().target() != crate::agent::EVENTS {
            return self.json.format_event(context, writer, event);
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        writeln!(writer, "{}", line.0)
    }
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, _: &Field, line: &str) {
        line.clone_into(&mut self.0);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_created_by_its_first_line_and_flushed_on_drop() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = LogFile::new(dir.path(), LogLimits::default());
        let log = Log(file.clone());
        assert!(!dir.path().join("logs").exists());
        let subscriber = tracing_subscriber::fmt().json().with_writer(file).finish();
        tracing::subscriber::with_default(subscriber, || tracing::warn!(answer = 42, "said"));
        drop(log);
        let entry = std::fs::read_dir(dir.path().join("logs")).unwrap().next().unwrap().unwrap();
        assert!(entry.file_name().to_string_lossy().starts_with("aye.log."));
        let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(entry.path()).unwrap()).unwrap();
        assert_eq!((&line["fields"]["message"], &line["fields"]["answer"]), (&"said".into(), &42.into()));
    }

    #[test]
    fn an_invalid_filter_is_reported_and_the_default_is_used() {
        for (given, shown) in [(None, DEFAULT_FILTER), (Some("aye=debug"), "aye=debug")] {
            let (filter, problem) = read_filter(given);
            assert_eq!((filter.to_string().as_str(), problem), (shown, None));
        }
        let (filter, problem) = read_filter(Some("aye=loudly"));
        assert_eq!(filter.to_string(), DEFAULT_FILTER);
        assert!(problem.unwrap().starts_with("AYE_LOG: invalid filter `aye=loudly`"));
    }

    #[test]
    fn log_filters_are_capped_at_the_compiled_level() {
        for (given, debug) in [
            ("aye=trace", "aye=debug"),
            ("trace", "debug"),
            ("TRACE,hyper=5", "debug,hyper=debug"),
            ("aye", "aye=debug"),
            ("aye::events=info,warn", "aye::events=info,warn"),
            ("aye[step{id=7}]=trace,off", "aye[step{id=7}]=debug,off"),
            ("", ""),
            ("aye=loudly", "aye=loudly"),
        ] {
            assert_eq!(cap_levels(given, LevelFilter::DEBUG), debug, "{given}");
            assert_eq!(cap_levels(given, LevelFilter::TRACE), given);
        }
    }

    #[test]
    fn a_log_that_cannot_be_created_is_ignored() {
        let dir = tempfile::TempDir::new().unwrap();
        std::fs::write(dir.path().join("logs"), "in the way").unwrap();
        let file = LogFile::new(dir.path(), LogLimits::default());
        assert_eq!(file.make_writer().write(b"line").unwrap(), 4);
    }
}
