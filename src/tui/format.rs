//! Number formatting for the screen: tokens, dollars and durations.

pub(crate) use crate::protocol::format_dollars as dollars;
use crate::protocol::{BudgetUnit, Usage, group_digits};

/// Formats a token count in short form: `940`, `12.1k`, `200k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 if count % 1000 >= 100 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        1_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Formats an amount in dollars, marking it if it is an estimate: `~$0.42`.
pub(crate) fn format_estimate(amount: f64, is_estimated: bool) -> String {
    let about = if is_estimated { "~" } else { "" };
    format!("{about}{}", dollars(amount))
}

/// Formats a duration given in seconds: `17 s`, `1:05 min`.
pub(crate) fn seconds(count: u64) -> String {
    if count < 60 { format!("{count} s") } else { format!("{}:{:02} min", count / 60, count % 60) }
}

/// Formats an amount together with its budget unit.
pub(crate) fn amount(unit: BudgetUnit, amount: f64) -> String {
    match unit {
        BudgetUnit::CostUsd => dollars(amount),
        BudgetUnit::Tokens => format!("{} tokens", tokens(round_to_integer(amount))),
        BudgetUnit::Steps => format!("{} steps", round_to_integer(amount)),
    }
}

/// Formats token usage, such as `12.1k tokens in, 640 out`.
pub(crate) fn format_usage(usage: &Usage) -> String {
    format!("{} tokens in, {} out", tokens(usage.input_tokens), tokens(usage.output_tokens))
}

fn round_to_integer(amount: f64) -> u64 {
    amount.max(0.0).round() as u64
}

/// Returns a count with thousands separators, followed by its noun in the singular or plural: `10,000 lines`.
pub(crate) fn format_count(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", group_digits(count as u64), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_small_costs_are_not_rounded_to_zero() {
        let counts = [(0, "0"), (940, "940"), (12_100, "12.1k"), (200_000, "200k"), (1_250_000, "1.2M")];
        for (count, words) in counts {
            assert_eq!(tokens(count), words);
        }
        for (cost, words) in [(0.0, "$0.00"), (0.0012, "$0.0012"), (0.01, "$0.01"), (12.3, "$12.30")] {
            assert_eq!(dollars(cost), words);
        }
        assert_eq!((seconds(17), seconds(65)), ("17 s".to_owned(), "1:05 min".to_owned()));
        assert_eq!(amount(BudgetUnit::Steps, 200.0), "200 steps");
        assert_eq!(amount(BudgetUnit::Tokens, f64::NAN), "0 tokens");
        assert_eq!([1, 12_345].map(|count| format_count(count, "line")), ["1 line", "12,345 lines"]);
    }
}
