//! `aye usage`: clap definition and checked request.

use crate::host::usage_report::UsageGroup;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// Count from this time: `12h`, `30d`, `8w`, a date, or `all`
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = period)]
    since: Period,
    /// Group by model, project or day
    #[arg(long, value_enum, default_value = "model")]
    by: GroupArg,
    /// Count only this project's sessions
    #[arg(long)]
    project: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GroupArg {
    /// One row for each model
    Model,
    /// One row for each project directory
    Project,
    /// One row for each day, in UTC
    Day,
}

/// Period covered by a usage report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    All,
    HoursAgo(i64),
    Time(jiff::Timestamp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageRequest {
    pub period: Period,
    pub by: UsageGroup,
    pub this_project: bool,
    pub json: bool,
}

impl UsageArgs {
    pub(crate) fn check(self) -> UsageRequest {
        let by = match self.by {
            GroupArg::Model => UsageGroup::Model,
            GroupArg::Project => UsageGroup::Project,
            GroupArg::Day => UsageGroup::Day,
        };
        UsageRequest { period: self.since, by, this_project: self.project, json: self.json }
    }
}

impl Period {
    /// Returns the start of the period, or `None` if it has no start.
    pub(crate) fn start(self, now: jiff::Timestamp) -> Option<jiff::Timestamp> {
        match self {
            Self::All => None,
            Self::HoursAgo(hours) => now.checked_sub(jiff::SignedDuration::from_hours(hours)).ok(),
            Self::Time(time) => Some(time),
        }
    }
}

fn period(given: &str) -> Result<Period, String> {
    const MAX_HOURS: i64 = 24 * 366 * 100;
    let error =
        || "must be a number of hours, days or weeks (`12h`, `30d`, `8w`), a date such as `2026-11-01`, or `all`".to_owned();
    if given == "all" {
        return Ok(Period::All);
    }
    let hours = |digits: &str, each: i64| match digits.parse::<i64>() {
        Ok(count) if digits.bytes().all(|byte| byte.is_ascii_digit()) && count <= MAX_HOURS / each => {
            Ok(Period::HoursAgo(count * each))
        }
        _ => Err(error()),
    };
    match given.as_bytes().last() {
        Some(b'h') => hours(&given[..given.len() - 1], 1),
        Some(b'd') => hours(&given[..given.len() - 1], 24),
        Some(b'w') => hours(&given[..given.len() - 1], 24 * 7),
        _ => {
            let date = given.parse::<jiff::civil::Date>().map_err(|_| error())?;
            date.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| Period::Time(zoned.timestamp())).map_err(|_| error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_start_at_a_relative_time_or_on_a_date() {
        let now: jiff::Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
        for (given, start) in [
            ("12h", Some("2026-11-27T00:00:00Z")),
            ("30d", Some("2026-10-28T12:00:00Z")),
            ("1w", Some("2026-11-20T12:00:00Z")),
            ("0d", Some("2026-11-27T12:00:00Z")),
            ("2026-11-01", Some("2026-11-01T00:00:00Z")),
            ("all", None),
        ] {
            assert_eq!(period(given).unwrap().start(now), start.map(|time| time.parse().unwrap()), "{given}");
        }
    }

    #[test]
    fn invalid_periods_are_errors() {
        for given in
            ["", "d", "-3d", "+3d", "3", "3y", "1.5d", "99999999999999999999d", "2026-13-01", "yesterday", "３d", "d\u{e9}"]
        {
            let error = period(given).unwrap_err();
            assert!(error.contains("`30d`"), "{given}: {error}");
        }
    }
}
