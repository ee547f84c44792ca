//! Restoration of secrets: in text that is written to a file, each marker is replaced with the bytes that it stands for
//! in that file.

use super::Redactor;
use super::marker::{self, MarkerMatch};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Secrets behind the markers of one file.
#[derive(Debug, Default)]
pub struct Restorer {
    /// Secret of each marker; `None` if two secrets of the file have the same marker.
    secrets: HashMap<String, Option<String>>,
    /// Markers and similar text that the file itself contains literally.
    literal: HashSet<String>,
}

/// A marker without a known secret, which is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{marker}` {why}")]
pub struct UnrestoredMarker {
    pub marker: String,
    pub why: &'static str,
}

impl Redactor {
    /// Returns the restorer for a file with this text, in the form that a model sees.
    pub fn restorer(&self, text: &str) -> Restorer {
        let mut restorer = Restorer::default();
        self.replace(text, |_, marker, secret| {
            let entry = restorer.secrets.entry(marker.to_owned()).or_insert_with(|| Some(secret.to_owned()));
            if entry.as_deref() != Some(secret) {
                *entry = None;
            }
        });
        restorer.literal = marker::find_markers(text).into_iter().map(|piece| match_text(text, &piece).to_owned()).collect();
        restorer
    }

    /// Returns the marker of a secret that is redacted in the file and would be visible in it `after` a change, unless
    /// it is in `written`.
    pub fn exposed_marker(&self, restorer: &Restorer, before: &str, after: &str, written: &[&str]) -> Option<String> {
        if restorer.secrets.is_empty() {
            return None;
        }
        let (before, after) = (self.hide(before), self.hide(after));
        let open = |secret: &str| after.matches(secret).count() > before.matches(secret).count();
        let known = |secret: &str| written.iter().any(|text| text.contains(secret));
        let mut hidden = restorer.secrets.iter().filter_map(|(marker, secret)| Some((marker, secret.as_deref()?)));
        hidden.find(|(_, secret)| open(secret) && !known(secret)).map(|(marker, _)| marker.clone())
    }

    /// Returns the ranges of redacted text.
    pub fn redacted_ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.spans(text).into_iter().map(|span| span.start..span.end).collect()
    }
}

fn match_text<'a>(text: &'a str, piece: &MarkerMatch) -> &'a str {
    match piece {
        MarkerMatch::Whole(range) | MarkerMatch::Mangled(range) => &text[range.clone()],
    }
}

impl Restorer {
    /// Returns `text` with every marker replaced by its secret.
    pub fn restore(&self, text: &str) -> Result<String, UnrestoredMarker> {
        let mut restored = String::with_capacity(text.len());
        let mut done = 0;
        for piece in marker::find_markers(text) {
            let range = match &piece {
                MarkerMatch::Whole(range) | MarkerMatch::Mangled(range) => range.clone(),
            };
            let written = &text[range.clone()];
            let failed = |why| UnrestoredMarker { marker: written.to_owned(), why };
            let literal = self.literal.contains(written);
            let secret = match (&piece, self.secrets.get(written)) {
                (MarkerMatch::Whole(_), Some(Some(_))) if literal => {
                    return Err(failed("is both literal text and the marker of a secret in this file"));
                }
                (MarkerMatch::Whole(_), Some(Some(secret))) => secret.as_str(),
                (MarkerMatch::Whole(_), Some(None)) => return Err(failed("is the marker of two different secrets in this file")),
                _ if literal => written,
                (MarkerMatch::Whole(_), None) => return Err(failed("is not the marker of any secret in this file")),
                (MarkerMatch::Mangled(_), _) => return Err(failed("is not a complete marker, so its secret cannot be restored")),
            };
            restored.push_str(&text[done..range.start]);
            restored.push_str(secret);
            done = range.end;
        }
        restored.push_str(&text[done..]);
        Ok(restored)
    }
}

/// Returns the first marker in the text, or text that resembles one.
pub fn has_marker(text: &str) -> Option<&str> {
    // Most text contains no marker, so no further work is needed.
    let piece = marker::find_markers(text).into_iter().next()?;
    Some(match_text(text, &piece))
}
