//! Delays between attempts to send a request.

use std::time::Duration;

/// Exponential backoff with jitter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    /// Maximum number of retries after the first attempt.
    pub max_retries: u32,
    /// Delay before the first retry, in milliseconds. It doubles with each retry.
    pub base_ms: u64,
    /// Upper limit for computed delays, in milliseconds. A provider may request a longer delay.
    pub cap_ms: u64,
    /// Longest delay that a provider may request, in milliseconds. If the provider requests a longer one, the request
    /// is not retried.
    pub patience_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { max_retries: 3, base_ms: 500, cap_ms: 60_000, patience_ms: 600_000 }
    }
}

impl Backoff {
    /// Returns the delay in milliseconds before retry `attempt` (1-based), or `None` if there are no retries left or
    /// the provider requests too long a delay. `jitter` is in 0..1 and selects a delay between half of the doubled
    /// base and all of it. A delay requested by the provider is a lower bound.
    pub(crate) fn delay_ms(&self, attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Option<u64> {
        if attempt > self.max_retries {
            return None;
        }
        let doubled = self.base_ms.saturating_mul(1u64 << (attempt - 1).min(20)).min(self.cap_ms);
        let computed = doubled / 2 + (doubled as f64 / 2.0 * jitter.clamp(0.0, 1.0)) as u64;
        let asked = retry_after.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        (asked <= self.patience_ms).then(|| computed.max(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_double_and_end_after_the_last_attempt() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (1..=4).map(|attempt| backoff.delay_ms(attempt, None, 1.0)).collect();
        assert_eq!(waits, [Some(500), Some(1_000), Some(2_000), None]);
    }

    #[test]
    fn retries_wait_at_least_as_long_as_the_provider_requests() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay_ms(1, Some(Duration::from_secs(20)), 0.0), Some(20_000));
        assert_eq!(backoff.delay_ms(1, Some(Duration::from_secs(86_400)), 0.0), None);
    }
}
