//! How long a question still waits, where its time is limited: then no answer counts as a no.

use super::{Dialog, DialogStack, Question};

/// From here on seconds are counted, before that minutes.
const MINUTE_MS: u64 = 60_000;

/// `denied in 4 min`, `denied in 42 s`
fn words(ends: u64, now: u64) -> String {
    match ends.saturating_sub(now) {
        0 => "time is up".to_owned(),
        left if left <= MINUTE_MS => format!("denied in {} s", left.div_ceil(1000)),
        left => format!("denied in {} min", left.div_ceil(MINUTE_MS)),
    }
}

/// When these words are others; never once its time is up.
fn next(ends: u64, now: u64) -> Option<u64> {
    let left = ends.saturating_sub(now);
    let unit = if left > MINUTE_MS { MINUTE_MS } else { 1000 };
    Some(ends - left.div_ceil(unit).checked_sub(1)? * unit)
}

impl Dialog {
    /// It came now: its time begins.
    pub(super) fn begin_wait(&mut self, now: u64) {
        self.came = Some(now);
        if let Question::Approval(approval) = &self.question {
            self.ends = approval.timeout_ms.map(|after| now.saturating_add(after));
        }
    }

    /// How long it still waits, in words, and whether that is short.
    pub fn left(&self, now: u64) -> Option<(String, bool)> {
        self.ends.map(|ends| (words(ends, now), ends.saturating_sub(now) <= MINUTE_MS))
    }
}

impl DialogStack {
    /// When what is shown of it changes: in the open question, or in the row of the only one.
    pub(super) fn next_count(&self, now: u64) -> Option<u64> {
        let shown = self.current().filter(|_| self.inbox().is_none() && (self.is_open() || self.len() == 1))?;
        next(shown.ends?, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_waking_for_every_change_of_the_words_and_none_besides() {
        for (ends, first, expected) in [
            (181_000, "denied in 4 min", 2 + 1 + 60),
            (60_000, "denied in 60 s", 60),
            (3_500, "denied in 4 s", 4),
            (0, "time is up", 0),
        ] {
            let (mut now, mut shown, mut wakes) = (0, words(ends, 0), 0);
            assert_eq!(shown, first);
            while let Some(at) = next(ends, now) {
                assert!(at > now && words(ends, at - 1) == shown, "{ends} at {at}: {shown}");
                now = at;
                assert_ne!(words(ends, now), shown, "{ends} at {at}");
                shown = words(ends, now);
                wakes += 1;
            }
            assert_eq!((shown.as_str(), wakes), ("time is up", expected), "{ends}");
        }
    }
}
