//! Console output: command output goes to stdout, notices and errors to stderr.

use super::error::CliError;
use crate::protocol::{HINT, Problem};
use std::io::{BufRead, IsTerminal, Write};

/// Number of bytes written to stdout at a time.
const OUTPUT_BYTES: usize = 64 * 1024;

/// Prints notices to stderr, each on its own line.
pub(crate) fn warn_all(messages: &[String]) {
    for message in messages {
        warn(message);
    }
}

/// Prints a notice and its hints to stderr, without control characters.
pub(crate) fn warn(notice: impl Into<Problem>) {
    let notice = notice.into();
    let message = notice.to_string();
    let message = message.strip_prefix("aye ").map_or_else(|| format!(": {message}"), |rest| format!(" {rest}"));
    let hints = notice.hints.iter().map(|hint| format!("{HINT}{hint}"));
    let lines: Vec<String> = std::iter::once(format!("aye{message}")).chain(hints).collect();
    to_stderr(&lines.join("\n"));
}

/// Returns whether a question can be asked: stdin and stderr are a terminal.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints a text and a question to stderr, without control characters. Returns whether the user answers with yes. An
/// empty answer and the end of the input mean no.
pub(crate) fn confirm(text: &str, question: &str) -> bool {
    let mut err = std::io::stderr();
    let _ = write!(err, "{}{question} [y/N] ", crate::text::clean(text));
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok() && is_yes(&answer)
}

/// Returns whether an answer is `y` or `yes`, in any case.
pub(crate) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

/// Prints the errors of a failed command to stderr, along with their hints.
pub(crate) fn fail(error: &CliError) {
    error.problems.iter().for_each(|problem| to_stderr(&problem.text()));
}

fn to_stderr(message: &str) {
    let message = without_error_numbers(&crate::text::clean(message));
    let width = std::io::stderr().is_terminal().then(crate::tui::columns).flatten();
    let message = width.map_or_else(|| message.clone(), |width| wrap_message(&message, width.into()));
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Removes the numbers of system errors, such as ` (os error 2)`, which follow the description of the error.
fn without_error_numbers(message: &str) -> String {
    const START: &str = " (os error ";
    let mut parts = message.split(START);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        match rest.strip_prefix(')').filter(|_| rest.len() < part.len()) {
            Some(rest) => text.push_str(rest),
            None => text.extend([START, part]),
        }
    }
    text
}

/// Wraps a message between words. A line that contains a word longer than a row is not wrapped, so the terminal treats
/// it as a single line.
fn wrap_message(message: &str, width: usize) -> String {
    let mut rows = Vec::new();
    for line in message.split('\n') {
        if line.split(' ').any(|word| crate::text::width(word) > width) {
            rows.push(line);
        } else {
            rows.extend(crate::text::wrap(line, width).into_iter().map(|range| &line[range]));
        }
    }
    rows.join("\n")
}

/// Prints text to stdout. Errors, for example because stdout is closed, are ignored.
pub(crate) fn print_text(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
}

/// Prints a value to stdout as a single line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) {
    // Standard output writes a kilobyte at a time, and a value may have millions of bytes.
    let mut out = std::io::BufWriter::with_capacity(OUTPUT_BYTES, std::io::stdout().lock());
    let _ = crate::headless::lines::write(&mut out, value);
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::{without_error_numbers, wrap_message};

    #[test]
    fn numbers_of_system_errors_are_removed_from_messages() {
        for (message, shown) in [
            (
                "error: cannot read `x`: No such file or directory (os error 2)",
                "error: cannot read `x`: No such file or directory",
            ),
            ("a (os error 13): b (os error 2)\nhint: c", "a: b\nhint: c"),
            ("the name ` (os error x)` and (os error 5", "the name ` (os error x)` and (os error 5"),
            ("", ""),
        ] {
            assert_eq!(without_error_numbers(message), shown);
        }
    }

    #[test]
    fn terminal_messages_wrap_between_words_without_splitting_names() {
        let said = "aye: /home/me/.config/aye/policy.toml line 3: unknown key\n    3 \u{2502} allowd = [1]";
        assert_eq!(
            wrap_message(said, 40),
            "aye: /home/me/.config/aye/policy.toml\nline 3: unknown key\n    3 \u{2502} allowd = [1]"
        );
        assert_eq!(wrap_message("at /a/very/long/name of a file", 10), "at /a/very/long/name of a file");
    }
}
