//! Session goals: the objective, the check that determines whether it has been reached, and the limits.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Default number of failed checks after which a goal ends. `--rounds` overrides it.
pub const GOAL_ROUNDS: u32 = 25;
/// Maximum number of rounds that the user can set.
const MAX_GOAL_ROUNDS: u32 = 1_000;
/// Maximum time limit for a goal, in milliseconds (30 days).
const MAX_GOAL_MS: u64 = 30 * 24 * 3_600_000;
/// Goal syntax, shown in error messages.
pub const GOAL_FORM: &str = "/goal \"TEXT\" --until \"COMMAND\" [--budget 2usd] [--for 30m] [--rounds 25]";

/// Goal as set by the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// Prompt for the model.
    pub text: String,
    /// Check command. The goal is reached when the command exits with 0.
    pub check: String,
    /// Maximum cost in US dollars, counted from when the goal is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Maximum time in milliseconds, excluding pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Number of failed checks after which the goal ends.
    #[serde(default = "default_rounds")]
    pub max_rounds: u32,
}

fn default_rounds() -> u32 {
    GOAL_ROUNDS
}

impl Goal {
    pub fn new(text: impl Into<String>, check: impl Into<String>) -> Self {
        Self { text: text.into(), check: check.into(), budget_usd: None, time_ms: None, max_rounds: GOAL_ROUNDS }
    }

    /// Parses the arguments of `/goal`.
    ///
    /// # Errors
    /// Returns a message that names the invalid part.
    pub fn parse(words: &str) -> Result<Self, String> {
        let (mut text, mut check) = (Vec::new(), None);
        let mut goal = Self::new("", "");
        let mut words = split(words)?.into_iter();
        while let Some(word) = words.next() {
            let Some(option) = word.option() else {
                text.push(word.text);
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (option.to_owned(), words.next().map(|word| word.text).unwrap_or_default()),
            };
            match name.as_str() {
                _ if value.trim().is_empty() => return Err(format!("missing value for `--{name}`")),
                "until" => check = Some(value),
                "budget" => goal.budget_usd = Some(parse_dollars(&value)?),
                "for" => goal.time_ms = Some(parse_time(&value)?),
                "rounds" => goal.max_rounds = parse_rounds(&value)?,
                _ => return Err(format!("unknown option `--{name}`; must be --until, --budget, --for or --rounds")),
            }
        }
        goal.text = text.join(" ");
        goal.check = check.ok_or("missing `--until COMMAND`, the command that decides whether the goal is reached")?;
        goal.validate()?;
        Ok(goal)
    }

    /// Returns the slash command that sets this goal.
    pub fn to_command(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut command = format!("/goal {} --until {}", quoted(&self.text), quoted(&self.check));
        // Writing to a string cannot fail.
        if let Some(dollars) = self.budget_usd {
            let _ = write!(command, " --budget {dollars}usd");
        }
        if let Some(ms) = self.time_ms {
            let _ = write!(command, " --for {}s", ms.div_ceil(1_000));
        }
        let _ = write!(command, " --rounds {}", self.max_rounds);
        command
    }

    /// Validates a goal that was not parsed from a slash command.
    ///
    /// # Errors
    /// Returns a message that names the invalid part.
    pub fn validate(&self) -> Result<(), String> {
        let is_dollars = |dollars: f64| dollars.is_finite() && dollars > 0.0;
        if self.text.trim().is_empty() {
            return Err("missing goal text, which is the prompt for the model".to_owned());
        }
        validate_check(&self.check)?;
        if self.budget_usd.is_some_and(|dollars| !is_dollars(dollars)) {
            return Err("the budget of a goal must be more than 0 dollars".to_owned());
        }
        if self.time_ms.is_some_and(|ms| ms == 0 || ms > MAX_GOAL_MS) {
            return Err(format!("the time limit of a goal must be between 1 s and {}", time_text(MAX_GOAL_MS)));
        }
        if self.max_rounds == 0 || self.max_rounds > MAX_GOAL_ROUNDS {
            return Err(format!("the number of rounds of a goal must be between 1 and {MAX_GOAL_ROUNDS}"));
        }
        Ok(())
    }
}

/// Validates a goal's check command.
///
/// # Errors
/// Returns the reason why the command is invalid.
pub fn validate_check(check: &str) -> Result<(), String> {
    match check.trim() {
        "" => Err("the check is empty; it must be a command, such as `cargo test`".to_owned()),
        check if check.contains(['\n', '\r', '\0']) => Err("the check must be a single line".to_owned()),
        _ => Ok(()),
    }
}

/// Parses a dollar amount, such as `2`, `2usd` or `$2.50`.
///
/// # Errors
/// Returns the reason why the amount is invalid.
fn parse_dollars(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.strip_prefix('$').unwrap_or(&lower);
    let number = number.strip_suffix("dollars").or_else(|| number.strip_suffix("usd")).unwrap_or(number).trim();
    let dollars: Option<f64> = number.parse().ok().filter(|dollars: &f64| dollars.is_finite() && *dollars > 0.0);
    dollars.ok_or_else(|| format!("`{text}` is not an amount of dollars (example: 2usd)"))
}

/// Parses a duration, such as `90s`, `30m`, `1h30m` or `2d`, into milliseconds. A number without a unit means minutes.
///
/// # Errors
/// Returns the reason why the duration is invalid.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let invalid = || format!("`{text}` is not a time (example: 30m, 90s or 1h30m)");
    let (mut total, mut number, mut parts) = (0_u64, String::new(), 0);
    let lower = text.trim().to_ascii_lowercase();
    for c in lower.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let unit = match c {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 24 * 3_600_000,
            _ => return Err(invalid()),
        };
        let count: u64 = std::mem::take(&mut number).parse().map_err(|_| invalid())?;
        total = total.saturating_add(count.saturating_mul(unit));
        parts += 1;
    }
    if !number.is_empty() {
        let minutes: u64 = number.parse().map_err(|_| invalid())?;
        if parts > 0 {
            return Err(invalid());
        }
        total = minutes.saturating_mul(60_000);
    }
    match total {
        0 => Err(invalid()),
        ms if ms > MAX_GOAL_MS => Err(format!("`{text}` is too long; must be at most {}", time_text(MAX_GOAL_MS))),
        ms => Ok(ms),
    }
}

/// Parses the maximum number of rounds.
///
/// # Errors
/// Returns the reason why the number is invalid.
pub fn parse_rounds(text: &str) -> Result<u32, String> {
    let rounds: Option<u32> = text.trim().parse().ok().filter(|rounds| (1..=MAX_GOAL_ROUNDS).contains(rounds));
    rounds.ok_or_else(|| format!("`{text}` is not a number of rounds between 1 and {MAX_GOAL_ROUNDS}"))
}

/// Formats a duration using its two largest units: `1 h 30 min`, `45 s`.
pub fn time_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let units = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown = units[first..].iter().take(2).filter(|(count, unit)| *count > 0 || (*unit == "s" && seconds == 0));
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Word in the arguments of `/goal`.
struct CommandWord {
    text: String,
    is_quoted: bool,
}

impl CommandWord {
    /// Returns the name of a `--` option, including any `=` and value that follow.
    fn option(&self) -> Option<&str> {
        self.text.strip_prefix("--").filter(|name| !self.is_quoted && name.starts_with(|c: char| c.is_ascii_alphabetic()))
    }
}

/// Splits text into words at spaces. Text in single, double or typographic quotes forms one word.
fn split(text: &str) -> Result<Vec<CommandWord>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start().chars().peekable();
    while rest.peek().is_some() {
        let (mut word, mut is_quoted, mut quote) = (String::new(), false, None);
        let mut is_first = true;
        while let Some(c) = rest.next() {
            match (quote, c) {
                (Some(end), c) if c == end => quote = None,
                (Some('"'), '\\') if rest.peek().is_some_and(|next| matches!(next, '"' | '\\')) => word.extend(rest.next()),
                (Some(_), c) => word.push(c),
                (None, c) if c.is_whitespace() => break,
                // An apostrophe inside a word does not start a quotation.
                (None, c) => match closing_quote(c).filter(|_| is_first || word.ends_with('=')) {
                    Some(end) => {
                        is_quoted |= is_first;
                        quote = Some(end);
                    }
                    None => word.push(c),
                },
            }
            is_first = false;
        }
        if quote.is_some() {
            return Err("a quote is not closed".to_owned());
        }
        words.push(CommandWord { text: word, is_quoted });
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
    }
    Ok(words)
}

fn closing_quote(c: char) -> Option<char> {
    match c {
        '"' | '\'' => Some(c),
        '“' | '„' => Some('”'),
        _ => None,
    }
}

/// Current phase of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// The model is working on the goal.
    Working,
    /// The check is running.
    Checking,
    /// The goal is waiting for the user.
    Paused,
    Reached,
    /// The goal ended without having been reached.
    Ended,
}

/// Reason why a goal was paused or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalReason {
    /// The check exited with 0.
    CheckPassed,
    /// The check failed several times in a row with the same result while no file changed.
    Blocked,
    /// The check did not run: it was denied, its program is missing, or it timed out.
    CheckDidNotRun,
    /// The user interrupted the task or the check.
    Interrupted,
    /// The task failed or was paused.
    TaskFailed,
    /// The process ended.
    SessionEnded,
    BudgetUsedUp,
    TimeUsedUp,
    RoundsUsedUp,
    /// The user ended the goal.
    Stopped,
    /// The goal was rejected and therefore not set.
    Rejected,
}

/// The session's goal, as shown by front ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalState {
    pub goal: Goal,
    pub status: GoalStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<GoalReason>,
    /// Number of the current round, starting at 1. A round is a task followed by the check.
    pub round: u32,
    /// Cost in US dollars since the goal was set. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Time in milliseconds since the goal was set, not counting pauses.
    pub elapsed_ms: u64,
    /// Files that the check may read and that have changed since the goal was set: tests, configuration files, and
    /// files named in the check command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_check_files: Vec<String>,
    /// Message for the user about the change. Absent if only the numbers changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl GoalState {
    /// Returns whether the goal can still be reached.
    pub fn is_active(&self) -> bool {
        !matches!(self.status, GoalStatus::Reached | GoalStatus::Ended)
    }

    /// Returns whether the goal makes progress without user input.
    pub fn is_running(&self) -> bool {
        matches!(self.status, GoalStatus::Working | GoalStatus::Checking)
    }

    /// Formats the progress as one line: `goal: round 2 of 25 · $0.12 of $2.00 · 28 min left`.
    pub fn progress(&self, dot: &str) -> String {
        let status = match self.status {
            GoalStatus::Working => "",
            GoalStatus::Checking => " checking",
            GoalStatus::Paused => " paused",
            GoalStatus::Reached => " reached",
            GoalStatus::Ended => " ended",
        };
        let mut line = format!("goal{status}: round {} of {}", self.round, self.goal.max_rounds);
        let cost = self.cost_usd.map(|cost| format!("${cost:.2}"));
        match (cost, self.goal.budget_usd) {
            (cost, Some(budget)) => {
                let _ = write!(line, " {dot} {} of ${budget:.2}", cost.as_deref().unwrap_or("$?"));
            }
            (Some(cost), None) => {
                let _ = write!(line, " {dot} {cost}");
            }
            (None, None) => {}
        }
        match self.goal.time_ms {
            Some(time) => {
                let _ = write!(line, " {dot} {} left", time_text(time.saturating_sub(self.elapsed_ms)));
            }
            None => {
                let _ = write!(line, " {dot} {}", time_text(self.elapsed_ms));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_options_are_parsed_in_any_order_with_any_quotes() {
        let full = Goal { budget_usd: Some(2.0), time_ms: Some(1_800_000), max_rounds: 5, ..Goal::new("fix it", "cargo test") };
        for words in [
            r#""fix it" --until "cargo test" --budget 2usd --for 30m --rounds 5"#,
            r"--rounds 5 --for=1800s fix it --until='cargo test' --budget $2",
            "“fix it” --until “cargo test” --budget 2 --for 30 --rounds 5",
        ] {
            assert_eq!(Goal::parse(words).as_ref(), Ok(&full), "{words}");
        }
        assert_eq!(Goal::parse("don't stop --until make").unwrap(), Goal::new("don't stop", "make"));
        assert_eq!(Goal::parse(r#"say --until "echo \"a b\"""#).unwrap().check, r#"echo "a b""#);
    }

    #[test]
    fn a_goal_round_trips_through_its_command() {
        let full = Goal { budget_usd: Some(2.5), time_ms: Some(1_800_000), max_rounds: 5, ..Goal::new("fix it", "cargo test") };
        for goal in [full, Goal::new("don't --stop \"now\" \\", r#"echo "a \\b""#)] {
            assert_eq!(
                Goal::parse(goal.to_command().strip_prefix("/goal ").unwrap()).as_ref(),
                Ok(&goal),
                "{}",
                goal.to_command()
            );
        }
    }

    #[test]
    fn an_invalid_goal_is_rejected_with_the_reason() {
        for (words, why) in [
            ("", "missing `--until COMMAND`"),
            ("fix it", "missing `--until COMMAND`"),
            ("--until make", "missing goal text"),
            ("fix --until", "missing value for `--until`"),
            ("fix --until \"\"", "missing value for `--until`"),
            ("fix --until \"cargo test", "a quote is not closed"),
            ("fix --until make --budget lots", "`lots` is not an amount of dollars"),
            ("fix --until make --budget -2", "`-2` is not an amount of dollars"),
            ("fix --until make --for soon", "`soon` is not a time"),
            ("fix --until make --for 0m", "`0m` is not a time"),
            ("fix --until make --for 999d", "too long"),
            ("fix --until make --rounds 0", "`0` is not a number of rounds"),
            ("fix --untill make", "unknown option `--untill`"),
            ("fix --until \"a\nb\"", "must be a single line"),
        ] {
            let error = Goal::parse(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
    }

    #[test]
    fn times_are_formatted_in_two_units_and_parsed_back() {
        for (ms, text) in [
            (0, "0 s"),
            (45_000, "45 s"),
            (90_000, "1 min 30 s"),
            (1_800_000, "30 min"),
            (5_400_000, "1 h 30 min"),
            (86_400_000, "1 d"),
        ] {
            assert_eq!(time_text(ms), text);
        }
        assert_eq!(parse_time("1h30m"), Ok(5_400_000));
        assert!(parse_time("1h30").is_err() && parse_time("h").is_err() && parse_time("").is_err());
    }
}
