//! Progress of listing and applying many changes, limited to what a user can follow.

use crate::ports::ProgressSender;
use crate::protocol::{EffectsProgress, EffectsStage};
use crate::sys::overlay::{Progress, Stage};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    state: Mutex<ReporterState>,
}

/// State of a reporter.
#[derive(Debug, Default)]
struct ReporterState {
    counter: ListingCounter,
    limit: ReportLimit,
}

impl ProgressReporter {
    pub(super) fn new(sender: ProgressSender) -> Self {
        Self { sender, began: Instant::now(), state: Mutex::default() }
    }

    pub(super) fn report(&self, progress: Progress) {
        let elapsed = self.began.elapsed();
        let mut state = self.state();
        let progress = state.counter.count(progress);
        if state.limit.allows(progress, elapsed) {
            self.sender.send(effects_progress(progress, elapsed));
        }
    }

    /// Notes that the changes of one directory were listed. Those of the next one are counted with them.
    pub(super) fn end_directory(&self) {
        self.state().counter.end_directory();
    }

    fn state(&self) -> MutexGuard<'_, ReporterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts progress to that of the protocol.
fn effects_progress(progress: Progress, elapsed: Duration) -> EffectsProgress {
    EffectsProgress {
        stage: match progress.stage {
            Stage::Listing => EffectsStage::Listing,
            Stage::Comparing => EffectsStage::Comparing,
            Stage::Preparing => EffectsStage::Preparing,
            Stage::Applying => EffectsStage::Applying,
        },
        done: progress.done as u64,
        total: progress.total.map(|total| total as u64),
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Counter of the changes in several directories, which are listed and compared one directory at a time.
#[derive(Debug, Default)]
struct ListingCounter {
    /// Number of changes in the earlier directories.
    earlier: usize,
    /// Number of changes in this directory so far.
    listed: usize,
}

impl ListingCounter {
    /// Adds the changes of the earlier directories to the progress of listing or comparing.
    fn count(&mut self, progress: Progress) -> Progress {
        match progress.stage {
            Stage::Listing => self.listed = self.listed.max(progress.done),
            Stage::Comparing => {}
            Stage::Preparing | Stage::Applying => return progress,
        }
        let earlier = self.earlier;
        Progress { done: progress.done + earlier, total: progress.total.map(|total| total + earlier), ..progress }
    }

    fn end_directory(&mut self) {
        self.earlier += std::mem::take(&mut self.listed);
    }
}

/// Limit for the number of reports.
#[derive(Debug, Default)]
struct ReportLimit {
    /// Time of the last report since the beginning.
    last: Duration,
    /// Last reported progress.
    reported: Option<Progress>,
}

impl ReportLimit {
    /// Returns whether progress at this time is reported, and counts it as reported in this case.
    fn allows(&mut self, progress: Progress, elapsed: Duration) -> bool {
        // Threads may report in a different order than they counted.
        let is_same_stage = |last: Progress| (last.stage, last.total) == (progress.stage, progress.total);
        if self.reported.is_some_and(|last| is_same_stage(last) && progress.done < last.done) {
            return false;
        }
        let is_due = elapsed >= FIRST_AFTER && elapsed.saturating_sub(self.last) >= INTERVAL;
        let precedes_sync = matches!(progress.stage, Stage::Preparing | Stage::Applying)
            && progress.total.is_some_and(|total| total >= MANY_FILES && progress.done == total);
        if is_due || precedes_sync {
            (self.last, self.reported) = (elapsed, Some(progress));
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
    fn a_smaller_count_of_the_same_stage_is_not_reported() {
        let mut limit = ReportLimit::default();
        let comparing = |done| Progress { stage: Stage::Comparing, done, total: Some(100) };
        let seconds = Duration::from_secs;
        assert!(limit.allows(comparing(64), seconds(2)));
        assert!(!limit.allows(comparing(32), seconds(3)));
        assert!(limit.allows(comparing(96), seconds(4)));
        assert!(limit.allows(Progress { stage: Stage::Preparing, done: 1, total: Some(100) }, seconds(5)));
    }

    #[test]
    fn the_changes_of_several_directories_are_counted_together() {
        let mut counter = ListingCounter::default();
        let listing = |done| Progress { stage: Stage::Listing, done, total: None };
        let comparing = |done, total| Progress { stage: Stage::Comparing, done, total: Some(total) };
        assert_eq!([1, 2].map(|done| counter.count(listing(done)).done), [1, 2]);
        assert_eq!(counter.count(comparing(2, 2)), comparing(2, 2));
        counter.end_directory();
        assert_eq!(counter.count(listing(1)), listing(3));
        assert_eq!(counter.count(comparing(1, 1)), comparing(3, 3));
        let applying = Progress { stage: Stage::Applying, done: 1, total: Some(3) };
        assert_eq!(counter.count(applying), applying);
    }

    #[test]
    fn a_report_contains_the_stage_the_counts_and_the_time() {
        for (stage, expected) in [
            (Stage::Listing, EffectsStage::Listing),
            (Stage::Comparing, EffectsStage::Comparing),
            (Stage::Preparing, EffectsStage::Preparing),
            (Stage::Applying, EffectsStage::Applying),
        ] {
            let progress = effects_progress(Progress { stage, done: 7, total: Some(9) }, Duration::from_micros(1_234_567));
            assert_eq!(progress, EffectsProgress { stage: expected, done: 7, total: Some(9), elapsed_ms: 1_234 });
        }
    }

    #[test]
    fn the_end_of_a_stage_is_sent_to_the_receiver() {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&sent);
        let reporter = ProgressReporter::new(ProgressSender::new(move |progress| received.lock().unwrap().push(progress)));
        reporter.report(Progress { stage: Stage::Applying, done: 30_000, total: Some(30_000) });
        let sent = sent.lock().unwrap();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!((sent[0].stage, sent[0].done, sent[0].total), (EffectsStage::Applying, 30_000, Some(30_000)));
    }
}
