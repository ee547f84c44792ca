//! Log files. There is one file per day, followed by numbered files when it is full. When the total size exceeds the
//! limit, the oldest files are deleted.
//!
//! This replaces the rotation of `tracing-appender`, which depends only on time and does not limit the size of files.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "aye.log.";

/// Size limits of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLimits {
    pub file_bytes: u64,
    pub all_bytes: u64,
    pub files: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { file_bytes: 8 << 20, all_bytes: 64 << 20, files: 30 }
    }
}

/// Writer of complete lines. Several processes may write to the same file, which is only appended to and never renamed.
pub(crate) struct Rotating<Today> {
    directory: PathBuf,
    budget: LogLimits,
    /// Function that returns the date, as in `2026-11-21`.
    today: Today,
    open: Option<OpenLog>,
}

struct OpenLog {
    file: File,
    day: String,
    /// Size of the file in bytes, not including what other processes have written since it was opened.
    bytes: u64,
}

impl<Today: Fn() -> String> Rotating<Today> {
    pub(crate) fn new(directory: PathBuf, budget: LogLimits, today: Today) -> io::Result<Self> {
        let mut log = Self { directory, budget, today, open: None };
        log.open_for(0)?;
        Ok(log)
    }

    /// Returns an open file that has room for `more` bytes.
    fn open_for(&mut self, more: u64) -> io::Result<&mut OpenLog> {
        let day = (self.today)();
        let fits = |open: &OpenLog| open.day == day && (open.bytes == 0 || open.bytes + more <= self.budget.file_bytes);
        if !self.open.as_ref().is_some_and(fits) {
            self.open = None;
            let open = next(&self.directory, day, more, self.budget.file_bytes)?;
            prune(&self.directory, self.budget);
            return Ok(self.open.insert(open));
        }
        self.open.as_mut().ok_or_else(|| io::Error::other("no log is open"))
    }
}

impl<Today: Fn() -> String> Write for Rotating<Today> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let open = self.open_for(line.len() as u64)?;
        open.file.write_all(line)?;
        open.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.file.flush())
    }
}

/// Opens the last file of the day, or the next one if that file is full: `aye.log.DAY`, `aye.log.DAY.1`, …
fn next(directory: &Path, day: String, more: u64, file_bytes: u64) -> io::Result<OpenLog> {
    let name =
        |number: u64| directory.join(if number == 0 { format!("{PREFIX}{day}") } else { format!("{PREFIX}{day}.{number}") });
    let mut number = 0;
    while name(number + 1).exists() {
        number += 1;
    }
    loop {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(name(number))?;
        let bytes = file.metadata()?.len();
        if bytes == 0 || bytes + more <= file_bytes {
            return Ok(OpenLog { file, day, bytes });
        }
        number += 1;
    }
}

/// Returns the total size of all log files in bytes.
pub(super) fn bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let ours = files.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    ours.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Deletes the oldest files until the remaining ones are within the limits. Files that cannot be deleted are skipped,
/// because logging must never stop the program.
pub(super) fn prune(directory: &Path, budget: LogLimits) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut files: Vec<((String, u64), u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (day, number) = name.strip_prefix(PREFIX).map(|rest| rest.split_once('.').unwrap_or((rest, "0")))?;
            Some(((day.to_owned(), number.parse().ok()?), entry.metadata().ok()?.len(), entry.path()))
        })
        .collect();
    files.sort_unstable();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    let mut count = files.len();
    // The newest file is in use.
    for (_, of_it, path) in files.iter().take(files.len().saturating_sub(1)) {
        if bytes <= budget.all_bytes && count <= budget.files {
            break;
        }
        drop(std::fs::remove_file(path));
        bytes -= of_it;
        count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    const SMALL: LogLimits = LogLimits { file_bytes: 20, all_bytes: 60, files: 5 };

    fn names(directory: &Path) -> Vec<(String, u64)> {
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let mut names: Vec<_> =
            entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect();
        names.sort();
        names
    }

    #[test]
    fn full_logs_continue_in_a_numbered_file_and_each_day_starts_a_new_one() {
        let dir = tempfile::TempDir::new().unwrap();
        let day = Rc::new(RefCell::new("2026-11-21".to_owned()));
        let clock = day.clone();
        let mut log =
            Rotating::new(dir.path().to_owned(), LogLimits { all_bytes: 1000, ..SMALL }, move || clock.borrow().clone()).unwrap();
        for line in ["one line\n", "another line\n", "a line that is longer than any file may be\n", "short\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let of_day = |number: &str, bytes| (format!("aye.log.2026-11-21{number}"), bytes);
        assert_eq!(names(dir.path()), [of_day("", 9), of_day(".1", 13), of_day(".2", 43), of_day(".3", 6)]);
        "2026-11-22".clone_into(&mut day.borrow_mut());
        log.write_all(b"next day\n").unwrap();
        let last = names(dir.path()).pop().unwrap();
        assert_eq!(last, ("aye.log.2026-11-22".to_owned(), 9));
    }

    #[test]
    fn the_oldest_logs_are_deleted_if_the_total_size_or_count_exceeds_the_budget() {
        let dir = tempfile::TempDir::new().unwrap();
        for (name, bytes) in [
            ("aye.log.2026-01-01", 30),
            ("aye.log.2026-01-02", 10),
            ("aye.log.2026-01-02.10", 10),
            ("aye.log.2026-01-02.9", 10),
            ("notes", 500),
        ] {
            std::fs::write(dir.path().join(name), vec![b'x'; bytes]).unwrap();
        }
        let mut log = Rotating::new(dir.path().to_owned(), SMALL, || "2026-02-01".to_owned()).unwrap();
        log.write_all(b"a line\n").unwrap();
        let left: Vec<_> = names(dir.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            left,
            [
                "aye.log.2026-01-01",
                "aye.log.2026-01-02",
                "aye.log.2026-01-02.10",
                "aye.log.2026-01-02.9",
                "aye.log.2026-02-01",
                "notes"
            ]
        );
        log.write_all(b"more than fits there\n").unwrap();
        let left: Vec<_> = names(dir.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            left,
            [
                "aye.log.2026-01-02",
                "aye.log.2026-01-02.10",
                "aye.log.2026-01-02.9",
                "aye.log.2026-02-01",
                "aye.log.2026-02-01.1",
                "notes"
            ]
        );
    }

    #[test]
    fn several_processes_append_to_the_same_file() {
        let dir = tempfile::TempDir::new().unwrap();
        let open = || Rotating::new(dir.path().to_owned(), SMALL, || "2026-11-21".to_owned()).unwrap();
        let (mut one, mut other) = (open(), open());
        one.write_all(b"one\n").unwrap();
        other.write_all(b"other\n").unwrap();
        one.write_all(b"one\n").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("aye.log.2026-11-21")).unwrap(), "one\nother\none\n");
    }
}
