//! Parsing of the user's key file. Invalid entries are reported; valid ones still apply.

use super::{Chord, Focus, KeyAction};
use std::collections::HashMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum number of problems that are reported in full. Any others are only counted.
const MAX: usize = 8;

struct KeymapReader<'a> {
    text: &'a str,
    /// Problems found so far, each with its byte offset in the file.
    problems: Vec<(usize, String)>,
    /// Keys assigned in the file, each with the index of its action and the byte offset of its assignment.
    given: HashMap<(Focus, Chord), (usize, usize)>,
}

/// Applies the key file to the actions and returns the problems in the file. If the file assigns a key to an action,
/// the key no longer triggers the action that it was bound to before.
pub(super) fn change(actions: &mut [KeyAction], text: &str) -> Vec<String> {
    let mut reading = KeymapReader { text, problems: Vec::new(), given: HashMap::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    // A line with a syntax error may be incomplete.
    let unclear: Vec<usize> = errors.iter().map(|error| line(text, error.span().map_or(0, |span| span.start))).collect();
    for error in errors {
        let words = error.message().lines().collect::<Vec<_>>().join(" ");
        reading.report(error.span(), format!("{words}; invalid entries are ignored"));
    }
    let mut wishes = Vec::new();
    for (name, value) in table.get_ref() {
        let focus = Focus::ALL.into_iter().find(|focus| focus.name() == name.get_ref());
        match (focus, value.get_ref()) {
            (Some(focus), DeValue::Table(entries)) => wishes.extend(entries.iter().map(|(name, value)| (focus, name, value))),
            (Some(focus), _) => {
                let words = format!("`{}` must be a table: `[{}]`, then `ACTION = \"KEY\"` below it", focus.name(), focus.name());
                reading.report(Some(name.span()), words);
            }
            (None, _) => {
                let near = suggestion(name.get_ref(), Focus::ALL.into_iter().map(Focus::name));
                let known = Focus::ALL.map(Focus::name).join(", ");
                reading
                    .report(Some(name.span()), format!("unknown section `[{}]`{near}; expected one of {known}", name.get_ref()));
            }
        }
    }
    wishes.retain(|(_, name, value)| {
        let lines = line(text, name.span().start)..=line(text, value.span().end);
        !unclear.iter().any(|unclear| lines.contains(unclear))
    });
    // Entries apply in file order, so that the later of two conflicting entries is rejected.
    wishes.sort_by_key(|(_, name, _)| name.span().start);
    let mut named = Vec::new();
    for (focus, name, value) in wishes {
        named.extend(reading.assign_keys(actions, focus, name, value));
    }
    take_away(actions, &named, &mut reading);
    reading.into_problems()
}

/// Removes reassigned keys from the actions that had them before, and reports actions that no longer have any key.
fn take_away(actions: &mut [KeyAction], named: &[usize], reading: &mut KeymapReader<'_>) {
    for (at, action) in actions.iter_mut().enumerate() {
        let had = action.keys.clone();
        action.keys.retain(|chord| reading.given.get(&(action.focus, *chord)).is_none_or(|(owner, _)| *owner == at));
        let lost = had.iter().find(|chord| !action.keys.contains(chord));
        if let (Some(lost), true, false) = (lost, action.keys.is_empty(), named.contains(&at)) {
            let place = reading.given.get(&(action.focus, *lost)).map_or(0, |(_, place)| *place);
            let name = &action.entry.action;
            let words =
                format!("`{name}` no longer has a key, because `{lost}` was reassigned; assign one, or write `{name} = []`");
            reading.problems.push((place, words));
        }
    }
}

impl KeymapReader<'_> {
    fn report(&mut self, span: Option<Range<usize>>, words: String) {
        self.problems.push((span.map_or(0, |span| span.start), words));
    }

    /// Assigns keys to an action. Returns the action's index if at least one key is valid or the entry removes all
    /// keys.
    fn assign_keys(
        &mut self,
        actions: &mut [KeyAction],
        focus: Focus,
        name: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<usize> {
        let span = Some(name.span());
        let name = name.get_ref().as_ref();
        let of_focus = |action: &&KeyAction| action.focus == focus;
        let Some(at) = actions.iter().position(|action| action.focus == focus && action.entry.action == name) else {
            let near = suggestion(name, actions.iter().filter(of_focus).map(|action| action.entry.action.as_str()));
            self.report(span, format!("`[{}]` has no action `{name}`{near}; /keys lists all", focus.name()));
            return None;
        };
        if actions[at].is_fixed() {
            self.report(span, format!("`{name}` in `[{}]` cannot be changed: {}", focus.name(), actions[at].shown_keys()));
            return None;
        }
        let words = match value.get_ref() {
            DeValue::String(word) if word.is_empty() => Vec::new(),
            DeValue::String(word) => vec![(word.as_ref(), value.span())],
            DeValue::Array(words) => {
                let named = words.iter().filter_map(|word| Some((word.get_ref().as_str()?, word.span())));
                let named: Vec<_> = named.collect();
                if named.len() < words.len() {
                    self.report(Some(value.span()), format!("a key of `{name}` is not a string; expected {WANTED}"));
                    if named.is_empty() {
                        return None;
                    }
                }
                named
            }
            _ => {
                self.report(Some(value.span()), format!("invalid value for `{name}`; expected {WANTED}"));
                return None;
            }
        };
        let is_taken_away = words.is_empty();
        let mut keys = Vec::new();
        for (word, span) in words {
            match self.parse_allowed(actions, at, word, span.start) {
                Ok(chord) if keys.contains(&chord) => {}
                Ok(chord) => keys.push(chord),
                Err(why) => self.report(Some(span), why),
            }
        }
        if keys.is_empty() && !is_taken_away {
            return None;
        }
        actions[at].keys = keys;
        Some(at)
    }

    /// Parses a key for the action at index `at`. Rejects reserved keys and, where the user can type text, keys that
    /// type text.
    fn parse_allowed(&mut self, actions: &[KeyAction], at: usize, word: &str, place: usize) -> Result<Chord, String> {
        let KeyAction { focus, entry, .. } = &actions[at];
        let focus = *focus;
        let chord = Chord::parse(word)?;
        let fixed = actions.iter().find(|action| action.focus == focus && action.is_fixed() && action.built_in.contains(&chord));
        if let Some(action) = fixed {
            return Err(format!(
                "`{chord}` in `[{}]` is reserved for `{}`; choose another key",
                focus.name(),
                action.entry.action
            ));
        }
        if focus.takes_text() && chord.is_text() {
            return Err(format!(
                "`{chord}` types text in `[{}]`; use ctrl or alt with it, or a function key such as f2",
                focus.name()
            ));
        }
        if let Some((owner, first)) = self.given.get(&(focus, chord)).filter(|(owner, _)| *owner != at) {
            let (owner, line) = (&actions[*owner].entry.action, line(self.text, *first));
            return Err(format!("`{chord}` is already assigned to `{owner}` on line {line}; not assigned to `{}`", entry.action));
        }
        self.given.insert((focus, chord), (at, place));
        Ok(chord)
    }

    fn into_problems(mut self) -> Vec<String> {
        self.problems.sort_by_key(|(place, _)| *place);
        let count = self.problems.len();
        let said = self.problems.into_iter().take(MAX).map(|(place, words)| format!("line {}: {words}", line(self.text, place)));
        let mut told: Vec<String> = said.collect();
        if count > MAX {
            told.push(format!("and {} more", count - MAX));
        }
        told
    }
}

const WANTED: &str = "a key as a string, `\"ctrl+e\"`, a list of them, or `[]` for none";

fn line(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns a suggestion of the known name most similar to a misspelled one, or an empty string if none is similar
/// enough.
fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let distance = |other: &str| strsim::damerau_levenshtein(name, other);
    let near = known.map(|other| (distance(other), other)).filter(|(distance, other)| *distance <= 3.min(other.len() / 2)).min();
    near.map(|(_, near)| format!("; did you mean `{near}`?")).unwrap_or_default()
}
