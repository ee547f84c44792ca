//! Delays between attempts, which double after each failure up to a maximum, with jitter.

use std::time::Duration;

/// Longest delay that a service can request.
const MAX_REQUESTED: Duration = Duration::from_secs(3600);
/// Maximum number of times to double a delay.
const MAX_DOUBLINGS: u32 = 16;

/// Backoff parameters for one kind of attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Delay after the first failure, before jitter is applied.
    pub first: Duration,
    /// Maximum delay, which is exceeded only if the service requests a longer one.
    pub max: Duration,
}

impl Backoff {
    /// Parameters used for outbox deliveries and for questions to services.
    pub(super) const DEFAULT: Self = Self { first: Duration::from_secs(1), max: Duration::from_secs(300) };

    /// Returns the delay after this number of failures. If the service requested a longer delay, returns that one.
    pub(crate) fn delay(self, failures: u32, requested: Option<Duration>) -> Duration {
        // Use the last bits of a random UUID. Only their distribution matters.
        let jitter = uuid::Uuid::new_v4().as_u128() as u16;
        self.delay_with(failures, requested, f64::from(jitter) / f64::from(u16::MAX))
    }

    /// Returns the delay for a `jitter` between 0 and 1. At least half of the full delay always remains, so delays
    /// still grow.
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
