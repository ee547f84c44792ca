//! Countdown for approval prompts with a time limit, after which the call is denied.

use super::Dialog;

/// Remaining time, in milliseconds, at or below which the countdown shows seconds instead of minutes.
const MINUTE_MS: u64 = 60_000;

/// Formats the remaining time, such as `denied in 4 min` or `denied in 42 s`.
fn format_remaining(ends: u64, now: u64) -> String {
    match ends.saturating_sub(now) {
        0 => "time is up".to_owned(),
        left if left <= MINUTE_MS => format!("denied in {} s", left.div_ceil(1000)),
        left => format!("denied in {} min", left.div_ceil(MINUTE_MS)),
    }
}

/// Returns the time, in milliseconds, at which the countdown text changes next, or `None` once the time limit has
/// passed.
pub(crate) fn next(ends: u64, now: u64) -> Option<u64> {
    let left = ends.saturating_sub(now);
    let unit = if left > MINUTE_MS { MINUTE_MS } else { 1000 };
    Some(ends - left.div_ceil(unit).checked_sub(1)? * unit)
}

/// Records `now`, in milliseconds, as the dialog's arrival time and starts its time limit, if it has one.
pub(super) fn begin_wait(panel: &mut Dialog, now: u64) {
    panel.came = Some(now);
    if let Some(prompt) = panel.kind.prompt_mut() {
        prompt.ends = prompt.approval.timeout_ms.map(|after| now.saturating_add(after));
    }
}

/// Returns the remaining time as text and whether it is one minute or less, or `None` if the dialog has no time limit.
pub(crate) fn time_left(panel: &Dialog, now: u64) -> Option<(String, bool)> {
    panel.ends().map(|ends| (format_remaining(ends, now), ends.saturating_sub(now) <= MINUTE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_countdown_wakes_exactly_once_per_change_of_its_text() {
        for (ends, first, expected) in [
            (181_000, "denied in 4 min", 2 + 1 + 60),
            (60_000, "denied in 60 s", 60),
            (3_500, "denied in 4 s", 4),
            (0, "time is up", 0),
        ] {
            let (mut now, mut shown, mut wakes) = (0, format_remaining(ends, 0), 0);
            assert_eq!(shown, first);
            while let Some(at) = next(ends, now) {
                assert!(at > now && format_remaining(ends, at - 1) == shown, "{ends} at {at}: {shown}");
                now = at;
                assert_ne!(format_remaining(ends, now), shown, "{ends} at {at}");
                shown = format_remaining(ends, now);
                wakes += 1;
            }
            assert_eq!((shown.as_str(), wakes), ("time is up", expected), "{ends}");
        }
    }
}
