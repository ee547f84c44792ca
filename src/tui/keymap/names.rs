//! Current key names for use in messages, which are written with the built-in keys.

use super::{Chord, Focus, Keymap, NO_KEY};
use std::borrow::Cow;

impl Keymap {
    /// Returns the current name of a built-in key, or `None` if it was not changed. The inner value is `None` if the
    /// action no longer has a key.
    fn name(&self, focus: Focus, chord: Chord) -> Option<&Option<String>> {
        focus.layers().iter().find_map(|focus| self.names.get(&(*focus, chord)))
    }

    /// Returns the current name of a built-in key, or [`NO_KEY`] if its action no longer has a key.
    pub(crate) fn current_name<'a>(&'a self, focus: Focus, key: &'a str) -> &'a str {
        if self.names.is_empty() {
            return key;
        }
        match Chord::parse(key).ok().and_then(|chord| self.name(focus, chord)) {
            None => key,
            Some(name) => name.as_deref().unwrap_or(NO_KEY),
        }
    }

    /// Replaces built-in keys at the start of a hint, such as `ctrl+o fold`, with the current keys. Returns `None` if
    /// the action no longer has a key.
    pub(crate) fn hint<'a>(&self, focus: Focus, hint: &'a str) -> Option<Cow<'a, str>> {
        if self.names.is_empty() {
            return Some(Cow::Borrowed(hint));
        }
        let mut words: Vec<&str> = Vec::new();
        let (mut begins, mut is_changed) = (true, false);
        for word in hint.split(' ') {
            let chord = Chord::parse(word).ok().filter(|_| begins);
            begins = chord.is_some();
            match chord.and_then(|chord| self.name(focus, chord)) {
                None if begins && words.contains(&word) => {}
                None => words.push(word),
                Some(name) => {
                    is_changed = true;
                    words.extend(name.as_deref().filter(|name| !words.contains(name)));
                }
            }
        }
        if !is_changed {
            return Some(Cow::Borrowed(hint));
        }
        let has_key = words.first().is_some_and(|word| Chord::parse(word).is_ok());
        has_key.then(|| Cow::Owned(words.join(" ")))
    }

    /// Replaces built-in key names in a sentence with the current ones. Only names that contain a `+` and function keys
    /// such as `f1` are replaced, because other names may be ordinary words.
    pub(crate) fn translate_keys<'a>(&self, focus: Focus, text: &'a str) -> Cow<'a, str> {
        if self.names.is_empty() {
            return Cow::Borrowed(text);
        }
        let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || letter == '+';
        let is_key = |word: &str| word.contains('+') || word.strip_prefix('f').is_some_and(|number| number.parse::<u8>().is_ok());
        let mut said = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let begin = rest.find(is_of_key).unwrap_or(rest.len());
            let (before, from) = rest.split_at(begin);
            let (word, after) = from.split_at(from.find(|letter| !is_of_key(letter)).unwrap_or(from.len()));
            said.push_str(before);
            let chord = Some(word).filter(|word| is_key(word)).and_then(|word| Chord::parse(word).ok());
            match chord.and_then(|chord| self.name(focus, chord)) {
                None => said.push_str(word),
                Some(name) => said.push_str(name.as_deref().unwrap_or(NO_KEY)),
            }
            rest = after;
        }
        Cow::Owned(said)
    }
}
