//! Form field with its value, and validation of that value.

use crate::protocol::{FieldKind, FormField};
use crate::text;
use serde_json::{Number, Value};

/// Maximum length of a text value, in bytes.
const TEXT_BYTES: usize = 16 << 10;
/// Words that suggest a field asks for a secret, which forms are not allowed to do.
const SECRETS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "api key",
    "apikey",
    "private key",
    "credential",
    "pin",
    "otp",
    "cvv",
    "card number",
    "ssn",
];

#[derive(Debug, Clone)]
pub(crate) struct FormEntry {
    field: FormField,
    held: EntryValue,
    touched: bool,
}

/// Value of a form field.
#[derive(Debug, Clone)]
enum EntryValue {
    Text(String),
    Flag(Option<bool>),
    Choice(Option<usize>),
    /// Flags that say which choices are selected, and the index of the current choice.
    Choices {
        taken: Vec<bool>,
        mark: usize,
    },
}

impl FormEntry {
    /// Creates the field with the server's default value, if that value is valid. A default text must also be plain and
    /// on a single line.
    pub(crate) fn new(field: FormField) -> Self {
        let default = field.default.as_ref();
        let held = match &field.takes {
            FieldKind::Text { .. } | FieldKind::Number { .. } => {
                let text = match default {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Number(number)) => number.to_string(),
                    _ => String::new(),
                };
                let is_plain = text::reveal(&text) == text && !text.contains(['\n', '\r']) && text.len() <= TEXT_BYTES;
                EntryValue::Text(if is_plain { text } else { String::new() })
            }
            FieldKind::Flag => EntryValue::Flag(default.and_then(Value::as_bool)),
            FieldKind::Choice { choices } => EntryValue::Choice(
                default.and_then(Value::as_str).and_then(|value| choices.iter().position(|(own, _)| own == value)),
            ),
            FieldKind::Choices { choices, .. } => {
                let wanted = default.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let taken = choices.iter().map(|(own, _)| wanted.iter().any(|value| value.as_str() == Some(own))).collect();
                EntryValue::Choices { taken, mark: 0 }
            }
        };
        Self { field, held, touched: false }
    }

    pub(crate) fn name(&self) -> &str {
        &self.field.name
    }

    /// Returns the field's title for display or, if it has none, its name.
    pub(crate) fn title(&self) -> String {
        let title = self.field.title.as_deref().map(text::reveal_line).filter(|title| !title.is_empty());
        title.unwrap_or_else(|| text::reveal_line(&self.field.name))
    }

    pub(crate) fn description(&self) -> Option<String> {
        self.field.description.as_deref().map(text::reveal_line).filter(|words| !words.is_empty())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.field.required
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Returns whether the user enters the value by typing.
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self.held, EntryValue::Text(_))
    }

    /// Returns whether the field seems to ask for a secret, which servers are not allowed to do in a form.
    pub(crate) fn looks_secret(&self) -> bool {
        let FormField { name, title, description, .. } = &self.field;
        let words = [Some(name), title.as_ref(), description.as_ref()].into_iter().flatten();
        let plain = |words: &String| {
            let apart = words.chars().flat_map(|one| {
                let blank = if one.is_uppercase() || !one.is_alphanumeric() { Some(' ') } else { None };
                let letter = if one.is_alphanumeric() { Some(one) } else { None };
                blank.into_iter().chain(letter)
            });
            let apart: String = apart.flat_map(char::to_lowercase).collect();
            let joined: String = words.to_lowercase().chars().map(|one| if one.is_alphanumeric() { one } else { ' ' }).collect();
            [apart, joined].map(|words| format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" ")))
        };
        words.flat_map(plain).any(|words| {
            SECRETS.iter().any(|secret| words.contains(&format!(" {secret} ")) || words.contains(&format!(" {secret}s ")))
        })
    }

    /// Returns the value of a text field, or an empty string for any other field.
    pub(crate) fn text(&self) -> String {
        match &self.held {
            EntryValue::Text(text) => text.clone(),
            EntryValue::Flag(_) | EntryValue::Choice(_) | EntryValue::Choices { .. } => String::new(),
        }
    }

    pub(crate) fn set_text(&mut self, words: &str) {
        if let EntryValue::Text(text) = &mut self.held
            && *text != words
        {
            words[..crate::protocol::cut_position_before(words, TEXT_BYTES)].clone_into(text);
            self.touched = true;
        }
    }

    /// Returns the value as displayed, on one line.
    pub(crate) fn display_value(&self) -> String {
        let nothing = || "–".to_owned();
        match (&self.held, &self.field.takes) {
            (EntryValue::Text(text), _) if text.is_empty() => nothing(),
            (EntryValue::Text(text), _) => text::reveal_line(text),
            (EntryValue::Flag(flag), _) => flag.map_or_else(nothing, |flag| if flag { "yes" } else { "no" }.to_owned()),
            (EntryValue::Choice(at), FieldKind::Choice { choices }) => {
                at.and_then(|at| choices.get(at)).map_or_else(nothing, |(_, name)| text::reveal_line(name))
            }
            (EntryValue::Choices { taken, .. }, FieldKind::Choices { choices, .. }) => {
                let names: Vec<String> = choices
                    .iter()
                    .zip(taken)
                    .filter(|(_, taken)| **taken)
                    .map(|((_, name), _)| text::reveal_line(name))
                    .collect();
                if names.is_empty() { nothing() } else { names.join(", ") }
            }
            (EntryValue::Choice(_) | EntryValue::Choices { .. }, _) => nothing(),
        }
    }

    /// Returns the name of each choice with two flags, which say whether it is selected and whether it is the current
    /// one.
    pub(crate) fn options(&self) -> Vec<(String, bool, bool)> {
        match (&self.held, &self.field.takes) {
            (EntryValue::Choice(at), FieldKind::Choice { choices }) => choices
                .iter()
                .enumerate()
                .map(|(nth, (_, name))| (text::reveal_line(name), *at == Some(nth), *at == Some(nth)))
                .collect(),
            (EntryValue::Choices { taken, mark }, FieldKind::Choices { choices, .. }) => {
                let all = choices.iter().zip(taken).enumerate();
                all.map(|(nth, ((_, name), taken))| (text::reveal_line(name), *taken, nth == *mark)).collect()
            }
            (EntryValue::Flag(flag), _) => {
                [("yes", true), ("no", false)].map(|(name, is)| (name.to_owned(), *flag == Some(is), *flag == Some(is))).to_vec()
            }
            (EntryValue::Text(_) | EntryValue::Choice(_) | EntryValue::Choices { .. }, _) => Vec::new(),
        }
    }

    pub(crate) fn is_multi_choice(&self) -> bool {
        matches!(self.held, EntryValue::Choices { .. })
    }

    /// Moves to the next or previous choice, wrapping around at the ends.
    pub(crate) fn step(&mut self, forward: bool) {
        let around = |at: Option<usize>, count: usize| match at {
            _ if count == 0 => None,
            None => Some(if forward { 0 } else { count - 1 }),
            Some(at) => Some((at + if forward { 1 } else { count - 1 }) % count),
        };
        match (&mut self.held, &self.field.takes) {
            (EntryValue::Flag(flag), _) => *flag = Some(flag.is_none_or(|flag| !flag)),
            (EntryValue::Choice(at), FieldKind::Choice { choices }) => *at = around(*at, choices.len()),
            (EntryValue::Choices { taken, mark }, _) => {
                *mark = around(Some(*mark), taken.len()).unwrap_or(0);
                return;
            }
            (EntryValue::Text(_) | EntryValue::Choice(_), _) => return,
        }
        self.touched = true;
    }

    /// Selects or deselects the current choice. If only one choice can be selected, moves to the next one instead.
    pub(crate) fn flip(&mut self) {
        if let EntryValue::Choices { taken, mark } = &mut self.held {
            if let Some(one) = taken.get_mut(*mark) {
                *one = !*one;
                self.touched = true;
            }
        } else {
            self.step(true);
        }
    }

    /// Returns the value to send to the server, or `None` if an optional field is empty. Fails with the reason if the
    /// value is invalid.
    pub(crate) fn value(&self) -> Result<Option<Value>, String> {
        match (&self.held, &self.field.takes) {
            (EntryValue::Text(text), FieldKind::Number { whole, minimum, maximum }) => match text.trim() {
                "" => self.empty_value(),
                text => number(text, *whole, *minimum, *maximum).map(Some),
            },
            (EntryValue::Text(text), _) if text.is_empty() => self.empty_value(),
            (EntryValue::Text(text), FieldKind::Text { min_length, max_length, format }) => {
                let count = text.chars().count() as u64;
                if let Some(least) = min_length.filter(|least| count < *least) {
                    return Err(format!("too short: at least {}", describe_length(least)));
                }
                if let Some(most) = max_length.filter(|most| count > *most) {
                    return Err(format!("too long: at most {}", describe_length(most)));
                }
                format.as_deref().map_or(Ok(()), |format| check_format(text, format))?;
                Ok(Some(Value::String(text.clone())))
            }
            (EntryValue::Flag(Some(flag)), _) => Ok(Some(Value::Bool(*flag))),
            (EntryValue::Choice(Some(at)), FieldKind::Choice { choices }) => {
                Ok(choices.get(*at).map(|(value, _)| Value::String(value.clone())))
            }
            (EntryValue::Choices { taken, .. }, FieldKind::Choices { choices, min, max }) => {
                let values: Vec<Value> =
                    choices.iter().zip(taken).filter(|(_, taken)| **taken).map(|((value, _), _)| value.clone().into()).collect();
                let count = values.len() as u64;
                match (min.filter(|least| count < *least), max.filter(|most| count > *most)) {
                    _ if count == 0 && !self.field.required => Ok(None),
                    _ if count == 0 && min.is_none_or(|least| least == 0) => Ok(Some(Value::Array(values))),
                    (Some(least), _) => Err(format!("choose at least {least}")),
                    (_, Some(most)) => Err(format!("choose at most {most}")),
                    (None, None) => Ok(Some(Value::Array(values))),
                }
            }
            (EntryValue::Flag(None) | EntryValue::Choice(_) | EntryValue::Choices { .. } | EntryValue::Text(_), _) => {
                self.empty_value()
            }
        }
    }

    fn empty_value(&self) -> Result<Option<Value>, String> {
        if self.field.required { Err("this field is required".to_owned()) } else { Ok(None) }
    }

    /// Sets the value from a line of text, which may be the text itself, a number, `yes` or `no`, or names or numbers
    /// of choices. Fails with a message if the line is not a valid value for the field.
    pub(crate) fn set_from_text(&mut self, words: &str) -> Result<(), String> {
        let words = words.trim();
        let position = |choices: &[(String, String)], word: &str| {
            let named = |(value, name): &(String, String)| text::reveal_line(name).eq_ignore_ascii_case(word) || value == word;
            let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let found = choices.iter().position(named).or(number.filter(|at| *at < choices.len()));
            found.ok_or_else(|| format!("`{}` is not one of the choices", text::reveal_line(word)))
        };
        match (&mut self.held, &self.field.takes) {
            (EntryValue::Text(text), _) => words.clone_into(text),
            (EntryValue::Flag(flag), _) => match words.to_lowercase().as_str() {
                "yes" | "true" => *flag = Some(true),
                "no" | "false" => *flag = Some(false),
                _ => return Err("enter yes or no".to_owned()),
            },
            (EntryValue::Choice(at), FieldKind::Choice { choices }) => *at = Some(position(choices, words)?),
            (EntryValue::Choices { taken, .. }, FieldKind::Choices { choices, .. }) => {
                let wanted: Result<Vec<usize>, String> = words.split(',').map(|word| position(choices, word.trim())).collect();
                let wanted = wanted?;
                taken.iter_mut().enumerate().for_each(|(at, taken)| *taken = wanted.contains(&at));
            }
            (EntryValue::Choice(_) | EntryValue::Choices { .. }, _) => {}
        }
        self.touched = true;
        Ok(())
    }

    /// Returns a short description of the values that the field accepts.
    pub(crate) fn describe_accepted(&self) -> String {
        let range = |least: Option<String>, most: Option<String>| match (least, most) {
            (Some(least), Some(most)) => format!(", {least} to {most}"),
            (Some(least), None) => format!(", at least {least}"),
            (None, Some(most)) => format!(", at most {most}"),
            (None, None) => String::new(),
        };
        match &self.field.takes {
            FieldKind::Text { min_length, max_length, format } => {
                let what = match format.as_deref() {
                    Some("email") => "an email address",
                    Some("uri") => "a URL",
                    Some("date") => "a date (example: 2026-01-31)",
                    Some("date-time") => "a date and time (example: 2026-01-31T12:00:00Z)",
                    _ => "text",
                };
                let of_letters = |count: &Option<u64>| count.map(|count| count.to_string());
                let range = range(of_letters(min_length), of_letters(max_length));
                let unit = if range.is_empty() { "" } else { " characters" };
                format!("{what}{range}{unit}")
            }
            FieldKind::Number { whole, minimum, maximum } => {
                let what = if *whole { "a whole number" } else { "a number" };
                format!("{what}{}", range(minimum.map(plain), maximum.map(plain)))
            }
            FieldKind::Flag => "yes or no".to_owned(),
            FieldKind::Choice { .. } => "one of these".to_owned(),
            FieldKind::Choices { min, max, .. } => {
                let count = |count: &Option<u64>| count.map(|count| count.to_string());
                format!("any of these{}", range(count(min), count(max)))
            }
        }
    }
}

fn describe_length(count: u64) -> String {
    if count == 1 { "1 character".to_owned() } else { format!("{count} characters") }
}

fn plain(number: f64) -> String {
    number.to_string()
}

fn number(text: &str, whole: bool, minimum: Option<f64>, maximum: Option<f64>) -> Result<Value, String> {
    let (value, size) = if whole {
        let value: i64 = text.parse().map_err(|_| "not a whole number (example: 3)".to_owned())?;
        (Value::from(value), value as f64)
    } else {
        let value: f64 = text.parse().map_err(|_| "not a number (example: 3 or 0.5)".to_owned())?;
        (Number::from_f64(value).map(Value::Number).ok_or("not a number (example: 3 or 0.5)")?, value)
    };
    if let Some(least) = minimum.filter(|least| size < *least) {
        return Err(format!("too small: at least {}", plain(least)));
    }
    if let Some(most) = maximum.filter(|most| size > *most) {
        return Err(format!("too large: at most {}", plain(most)));
    }
    Ok(value)
}

/// Checks that a text value has the required format. Any value is accepted for an unknown format.
fn check_format(text: &str, format: &str) -> Result<(), String> {
    let has_blank = text.contains(char::is_whitespace);
    let fits = match format {
        "email" => {
            let parts = text.rsplit_once('@');
            !has_blank && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !name.contains('@'))
        }
        "uri" => {
            let is_scheme = |scheme: &str| {
                scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one))
            };
            !has_blank && text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        }
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    let what = match format {
        "email" => "not an email address (example: ada@example.org)",
        "uri" => "not a URL (example: https://example.org)",
        "date" => "not a date (example: 2026-01-31)",
        _ => "not a date and time (example: 2026-01-31T12:00:00Z)",
    };
    if fits { Ok(()) } else { Err(what.to_owned()) }
}
