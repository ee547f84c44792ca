//! Parses `Retry-After` and other delays in responses: seconds, dates, and durations such as `6m0.5s`.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::time::Duration;

/// Maximum plausible delay. Anything longer is a mistake or malicious.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// Parses a delay, given as `7`, `0.5` or `Wed, 21 Oct 2015 07:28:00 GMT`, or in the non-standard forms `30s` and
/// `2015-10-21T07:28:00Z`.
pub(crate) fn span_or_date(text: &str, now: Timestamp) -> Option<Duration> {
    if let Some(wait) = number(text) {
        return seconds(wait);
    }
    span(text).or_else(|| Some(time_until(date(text)?, now)))
}

/// Parses an HTTP date, or a date such as `2015-10-21T07:28:00Z`.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let http = || rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    text.parse().ok().or_else(http)
}

/// Returns the time from `now` until a moment, limited to `MAX_DURATION`. Returns zero if the moment has passed.
pub(crate) fn time_until(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default().min(MAX_DURATION)
}

/// Parses a finite number.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Converts a number of seconds to a duration, limited to `MAX_DURATION`. Returns `None` if the number is negative or
/// not finite.
pub(crate) fn seconds(count: f64) -> Option<Duration> {
    if !count.is_finite() || count < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(count).unwrap_or(MAX_DURATION).min(MAX_DURATION))
}

/// Parses text that consists of nothing but a duration.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let (wait, used) = leading_span(&text)?;
    (used == text.len()).then_some(wait)
}

/// Parses the duration at the start of a text. Returns it with the number of bytes that it occupies in the text. A
/// number without a unit is in seconds.
pub(crate) fn leading_span(text: &str) -> Option<(Duration, usize)> {
    let mut total = 0.0;
    let mut used = 0;
    loop {
        let gap = if used == 0 { 0 } else { text[used..].len() - text[used..].trim_start_matches([' ', ',']).len() };
        let rest = &text[used + gap..];
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        // A full stop after the number ends a sentence.
        let figure = rest[..digits].trim_end_matches('.');
        let Some(count) = number(figure).filter(|_| !figure.is_empty()) else { break };
        let after = &rest[figure.len()..];
        let space = after.len() - after.trim_start_matches(' ').len();
        let unit: &str = after[space..].split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let Some(scale) = scale(unit) else {
            if used == 0 {
                return Some((seconds(count)?, figure.len()));
            }
            break;
        };
        total += count * scale;
        used += gap + figure.len() + space + unit.len();
    }
    (used > 0).then(|| Some((seconds(total)?, used))).flatten()
}

fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86400.0,
        _ => return None,
    })
}
