//! Progress of listing and applying many changes, limited to what a user can follow.

use crate::ports::ProgressSender;
use crate::protocol::{EffectsProgress, EffectsStage};
use crate::sys::overlay::{Progress, Stage};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time before the first report. Shorter work is not reported.
const FIRST_AFTER: Duration = Duration::from_secs(1);
/// Minimum time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);
/// Number of files from which the end of a stage is reported even before `FIRST_AFTER`, because the system then writes
/// the files to the disk, which can take long without further progress.
const MANY_FILES: usize = 1_000;

/// Reporter of the progress of one operation. It needs no thread or timer: the operation calls it for every file.
pub(super) struct ProgressReporter {
    sender: ProgressSender,
    began: Instant,
    limit: Mutex<ReportLimit>,
}

impl ProgressReporter {
    pub(super) fn new(sender: ProgressSender) -> Self {
        Self { sender, began: Instant::now(), limit: Mutex::default() }
    }

    pub(super) fn report(&self, progress: Progress) {
        let elapsed = self.began.elapsed();
        if self.limit.lock().unwrap_or_else(PoisonError::into_inner).allows(progress, elapsed) {
            self.sender.send(EffectsProgress {
                stage: match progress.stage {
                    Stage::Listing => EffectsStage::Listing,
                    Stage::Comparing => EffectsStage::Comparing,
                    Stage::Preparing => EffectsStage::Preparing,
                    Stage::Applying => EffectsStage::Applying,
                },
                done: progress.done as u64,
                total: progress.total.map(|total| total as u64),
                elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
}

/// Limit for the number of reports.
#[derive(Debug, Default)]
struct ReportLimit {
    /// Time of the last report since the beginning.
    last: Duration,
}

impl ReportLimit {
    /// Returns whether progress at this time is reported, and counts it as reported in this case.
    fn allows(&mut self, progress: Progress, elapsed: Duration) -> bool {
        let is_due = elapsed >= FIRST_AFTER && elapsed.saturating_sub(self.last) >= INTERVAL;
        let precedes_sync = matches!(progress.stage, Stage::Preparing | Stage::Applying)
            && progress.total.is_some_and(|total| total >= MANY_FILES && progress.done == total);
        if is_due || precedes_sync {
            self.last = elapsed;
        }
        is_due || precedes_sync
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Returns the number of the reports among these of one operation, one file per `step`.
    fn reports(stage: Stage, files: usize, step: Duration) -> Vec<usize> {
        let mut limit = ReportLimit::default();
        let total = (stage != Stage::Listing).then_some(files);
        let at = |done: usize| step * u32::try_from(done).unwrap();
        (1..=files).filter(|done| limit.allows(Progress { stage, done: *done, total }, at(*done))).collect()
    }

    #[test]
    fn short_work_on_few_files_is_not_reported() {
        for stage in [Stage::Listing, Stage::Comparing, Stage::Preparing, Stage::Applying] {
            assert_eq!(reports(stage, 999, Duration::from_millis(1)), [0; 0], "{stage:?}");
        }
    }

    #[test]
    fn long_work_is_reported_ten_times_a_second_from_the_first_second_on() {
        for stage in [Stage::Listing, Stage::Comparing] {
            let reports = reports(stage, 30_000, Duration::from_micros(100));
            assert_eq!((reports[0], reports.len()), (10_000, 21), "{stage:?}");
            assert!(reports.windows(2).all(|two| two[1] - two[0] == 1_000), "{stage:?}: {reports:?}");
        }
        assert_eq!(reports(Stage::Applying, 3, Duration::from_secs(2)), [1, 2, 3]);
    }

    #[test]
    fn the_end_of_a_stage_with_many_files_is_reported_because_a_sync_follows() {
        for stage in [Stage::Preparing, Stage::Applying] {
            assert_eq!(reports(stage, 1_000, Duration::from_micros(10)), [1_000], "{stage:?}");
        }
        assert_eq!(reports(Stage::Comparing, 1_000, Duration::from_micros(10)), [0; 0]);
    }

    #[test]
    fn a_report_contains_the_stage_and_the_counts() {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&sent);
        let reporter = ProgressReporter::new(ProgressSender::new(move |progress| received.lock().unwrap().push(progress)));
        reporter.report(Progress { stage: Stage::Applying, done: 1, total: Some(30_000) });
        reporter.report(Progress { stage: Stage::Applying, done: 30_000, total: Some(30_000) });
        let sent = sent.lock().unwrap();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!((sent[0].stage, sent[0].done, sent[0].total), (EffectsStage::Applying, 30_000, Some(30_000)));
        assert!(sent[0].elapsed_ms < 60_000, "{sent:?}");
    }
}
