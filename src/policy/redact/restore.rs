//! Restores secrets. When text is written to a file, each marker in the text is replaced with the corresponding secret
//! from that file.

use super::Redactor;
use super::marker::{self, MarkerMatch};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Secrets represented by the markers of one file.
#[derive(Debug, Default)]
pub struct Restorer {
    /// Secret that each marker represents, or `None` if two secrets in the file have the same marker.
    secrets: HashMap<String, Option<String>>,
    /// Markers and text resembling them that the file itself contains literally.
    literal: HashSet<String>,
}

/// A marker whose secret is unknown and that is therefore left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{marker}` {why}")]
pub struct UnrestoredMarker {
    pub marker: String,
    pub why: &'static str,
}

impl Redactor {
    /// Creates a restorer for a file. `text` is the file's content as read from the disk.
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

    /// Returns the marker of a secret from the file that a change would expose. A secret is exposed if it is no longer
    /// redacted in `after`, although `written` does not contain it.
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

    /// Returns the ranges of the text that are redacted.
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
    /// Replaces every marker in `text` with its secret. Returns an error for the first marker that cannot be restored.
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

/// Returns the first marker in the text, or the first text that resembles one.
pub fn has_marker(text: &str) -> Option<&str> {
    // The search stops at the first match, and most text contains none.
    let piece = marker::find_markers(text).into_iter().next()?;
    Some(match_text(text, &piece))
}
