//! When aye itself breaks: what the person is told, and the report that is left for whoever mends it.

use super::trouble::Trouble;
use std::backtrace::Backtrace;
use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Knows how one goes on, and whether it came to that.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    logs: PathBuf,
    /// ``aye --resume=7f3a…``, once there is something to go on with.
    resume: Option<String>,
    /// What was said of the first one; others follow from it.
    said: Option<String>,
}

impl Watch {
    /// From now on. What ran before, in front of it, gives the terminal back.
    pub fn begin() -> Self {
        let watch = Self::default();
        let own = watch.clone();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            match own.broke(info) {
                // Nobody else will say it.
                Some(words) if std::thread::current().name() == Some("main") => super::warn(&words),
                Some(_) => {}
                None => before(info),
            }
        }));
        watch
    }

    /// A session is open.
    pub fn knows(&self, logs: PathBuf, resume: String) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.logs, state.resume) = (logs, Some(resume));
    }

    /// What to say in the place of what failed for it.
    pub fn trouble(&self) -> Option<Trouble> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).said.clone().map(Trouble::failed)
    }

    /// Nothing where no session was open.
    fn broke(&self, info: &PanicHookInfo<'_>) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resume = state.resume.clone()?;
        if let Some(said) = &state.said {
            return Some(said.clone());
        }
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let report = format!("aye {}, thread {thread}\n{info}\n\n{}\n", super::version::version(), Backtrace::force_capture());
        let words = sentence(&resume, keep(&state.logs, &report));
        state.said = Some(words.clone());
        Some(words)
    }
}

/// A file of its own, that only the person reads.
fn keep(logs: &Path, report: &str) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(logs)?;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let prefix = format!("crash-{day}-");
    let mut file = tempfile::Builder::new().prefix(&prefix).suffix(".txt").tempfile_in(logs)?;
    file.write_all(report.as_bytes())?;
    Ok(file.keep()?.1)
}

fn sentence(resume: &str, report: std::io::Result<PathBuf>) -> String {
    let report = match report {
        Ok(path) => path.display().to_string(),
        Err(error) => format!("none could be written ({error})"),
    };
    format!("aye crashed: saved. {resume} continues. Report: {report}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_how_to_go_on_and_where_the_report_is() {
        let directory = tempfile::TempDir::new().unwrap();
        let logs = directory.path().join("logs");
        let words = sentence("aye --resume=7f3a", keep(&logs, "what broke"));
        let path = words.strip_prefix("aye crashed: saved. aye --resume=7f3a continues. Report: ").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "what broke");
        assert!(Path::new(path).starts_with(&logs), "{path}");
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert!(
            sentence("aye --resume", keep(&directory.path().join("file/logs"), "")).contains("Report: none could be written (")
        );
    }

    #[test]
    fn without_a_session_there_is_nothing_to_say_of_one() {
        let watch = Watch::default();
        assert!(watch.trouble().is_none());
        watch.knows(PathBuf::from("logs"), "aye --resume".to_owned());
        assert!(watch.trouble().is_none(), "nothing broke");
    }
}
