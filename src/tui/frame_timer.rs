//! Timing of frames and of the model's deadlines.

use std::time::{Duration, Instant};

/// Minimum interval between frames while no keys are pressed.
const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Minimum interval between frames after a key press.
const KEY_FRAME: Duration = Duration::from_millis(4);

/// Frame timing state. Times are in milliseconds since the start, as in the model's clock.
pub(crate) struct FrameTimer {
    began: Instant,
    last_frame: Option<Instant>,
    /// Time of the last frame or time update. Changes due after that are not on the screen yet.
    told: u64,
    has_keys: bool,
}

impl FrameTimer {
    /// Creates a timer whose first frame is due immediately, as if a key had been pressed.
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, last_frame: None, told: 0, has_keys: true }
    }

    pub(crate) fn since_start(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_millis() as u64
    }

    /// Records a key press, so that the next frame is due sooner.
    pub(crate) fn on_key(&mut self) {
        self.has_keys = true;
    }

    /// Records that the model was updated with the current time.
    pub(crate) fn on_model_update(&mut self, at: Instant) {
        self.told = self.since_start(at);
    }

    /// Records a frame that shows the model as of `begun`, the time at which drawing started.
    pub(crate) fn on_frame(&mut self, begun: Instant) {
        self.last_frame = Some(begun);
        self.told = self.told.max(self.since_start(begun));
        self.has_keys = false;
    }

    /// Returns whether a frame may be drawn now.
    pub(crate) fn is_frame_due(&self, now: Instant) -> bool {
        self.frame_due(now) <= now
    }

    fn frame_due(&self, now: Instant) -> Instant {
        let gap = if self.has_keys { KEY_FRAME } else { STREAM_FRAME };
        self.last_frame.map_or(now, |last| last + gap)
    }

    /// Returns the time of the next frame or deadline, whichever comes first. `deadline` returns the first deadline
    /// after a given time, in milliseconds.
    pub(crate) fn wake_at(&self, now: Instant, is_dirty: bool, deadline: impl FnOnce(u64) -> Option<u64>) -> Option<Instant> {
        // The search starts at the last update instead of now, to include a deadline that passed in between.
        let deadline = deadline(self.told).map(|at| self.began + Duration::from_millis(at));
        let frame = is_dirty.then(|| self.frame_due(now));
        [deadline, frame].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deadline for a dialog whose choices become active 500 ms after the start.
    fn choices(told: u64) -> Option<u64> {
        (told < 500).then_some(500)
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_deadline_that_passes_while_drawing_wakes_immediately() {
        let began = Instant::now();
        let mut pace = FrameTimer::new(began);
        pace.on_frame(began + ms(499));
        let after = began + ms(540);
        assert_eq!(pace.wake_at(after, false, choices), Some(began + ms(500)), "it is in the past: it wakes at once");
        pace.on_model_update(after);
        assert_eq!(pace.wake_at(after, false, choices), None, "told once, it wakes nobody again");
    }

    #[test]
    fn a_deadline_already_drawn_causes_no_wakeup() {
        let began = Instant::now();
        let mut pace = FrameTimer::new(began);
        pace.on_frame(began + ms(500));
        assert_eq!(pace.wake_at(began + ms(510), false, choices), None);
    }

    #[test]
    fn a_frame_started_earlier_does_not_move_the_model_time_back() {
        let began = Instant::now();
        let mut pace = FrameTimer::new(began);
        pace.on_model_update(began + ms(600));
        pace.on_frame(began + ms(400));
        assert_eq!(pace.wake_at(began + ms(610), false, choices), None);
    }

    #[test]
    fn typed_input_is_drawn_sooner_than_streamed_text() {
        let began = Instant::now();
        let mut pace = FrameTimer::new(began);
        assert!(pace.is_frame_due(began), "the first frame waits for nothing");
        pace.on_frame(began);
        assert_eq!(pace.wake_at(began + ms(1), true, |_| None), Some(began + STREAM_FRAME));
        pace.on_key();
        assert_eq!(pace.wake_at(began + ms(1), true, |_| None), Some(began + KEY_FRAME));
        assert!(!pace.is_frame_due(began + ms(3)) && pace.is_frame_due(began + ms(4)));
        pace.on_frame(began + ms(4));
        assert!(!pace.is_frame_due(began + ms(36)) && pace.is_frame_due(began + ms(37)));
    }

    #[test]
    fn there_is_no_wakeup_without_changes_or_deadlines() {
        let began = Instant::now();
        let mut pace = FrameTimer::new(began);
        pace.on_frame(began);
        assert_eq!(pace.wake_at(began + ms(1), false, |_| None), None);
    }
}
