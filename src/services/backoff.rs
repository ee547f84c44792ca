//! Delays between attempts, doubled after each failure, with jitter and a limit.

use std::time::Duration;

/// Maximum delay that a service may request.
const MAX_REQUESTED: Duration = Duration::from_secs(3600);
/// Highest exponent of the doubled delay.
const MAX_DOUBLINGS: u32 = 16;

/// Delays of one kind of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Delay after the first failure, without jitter.
    pub first: Duration,
    /// Maximum delay, unless the service requests a longer one.
    pub max: Duration,
}

impl Backoff {
    /// Delays of the outbox and of questions.
    pub(super) const DEFAULT: Self = Self { first: Duration::from_secs(1), max: Duration::from_secs(300) };

    /// Returns the delay after this number of failures, or a longer one that the service requested.
    pub(crate) fn delay(self, failures: u32, requested: Option<Duration>) -> Duration {
        // Use the last digits of a random UUID, of which only the distribution matters.
        let jitter = uuid::Uuid::new_v4().as_u128() as u16;
        self.delay_with(failures, requested, f64::from(jitter) / f64::from(u16::MAX))
    }

    /// Returns the delay for a `jitter` from 0 to 1. It is at least half of the full delay, so that it
    /// still grows.
    fn delay_with(self, failures: u32, requested: Option<Duration>, jitter: f64) -> Duration {
        let full = self.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(MAX_DOUBLINGS))).min(self.max);
        full.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0).max(requested.unwrap_or_default().min(MAX_REQUESTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_follow_the_service() {
        let seconds = |failures, requested: Option<u64>, jitter| {
            Backoff::DEFAULT.delay_with(failures, requested.map(Duration::from_secs), jitter).as_secs_f64()
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
        let once = Backoff::DEFAULT.delay(3, None);
        assert!((2.0..=4.0).contains(&once.as_secs_f64()), "{once:?}");
    }
}
