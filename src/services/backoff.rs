//! Delays between attempts, doubled after each failure, with jitter and a limit.

use std::time::Duration;

/// Delay after the first failure.
const BASE: Duration = Duration::from_secs(1);
/// Maximum delay, unless the service requests a longer one.
const MAX: Duration = Duration::from_secs(300);
/// Maximum delay that a service may request.
const MAX_REQUESTED: Duration = Duration::from_secs(3600);

/// Returns the delay after this number of failures, or a longer one that the service requested.
pub(super) fn delay(failures: u32, requested: Option<Duration>) -> Duration {
    // Use the last digits of a random UUID, of which only the distribution matters.
    let jitter = uuid::Uuid::new_v4().as_u128() as u16;
    delay_with(failures, requested, f64::from(jitter) / f64::from(u16::MAX))
}

/// Returns the delay for a `jitter` from 0 to 1. It is at least half of the full delay, so that it
/// still grows.
fn delay_with(failures: u32, requested: Option<Duration>, jitter: f64) -> Duration {
    let full = BASE.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(MAX);
    full.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0).max(requested.unwrap_or_default().min(MAX_REQUESTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_follow_the_service() {
        let seconds = |failures, requested: Option<u64>, jitter| {
            delay_with(failures, requested.map(Duration::from_secs), jitter).as_secs_f64()
        };
        for (failures, requested, jitter, expected) in [
            (1, None, 1.0, 1.0),
            (1, None, 0.0, 0.5),
            (4, None, 1.0, 8.0),
            (30, None, 1.0, 300.0),
            (u32::MAX, None, 0.0, 150.0),
            (1, Some(30), 0.5, 30.0),
            (20, Some(30), 1.0, 300.0),
            (1, Some(100_000), 1.0, 3600.0),
        ] {
            assert!((seconds(failures, requested, jitter) - expected).abs() < 0.01, "{failures} {requested:?} {jitter}");
        }
        let once = delay(3, None);
        assert!((2.0..=4.0).contains(&once.as_secs_f64()), "{once:?}");
    }
}
