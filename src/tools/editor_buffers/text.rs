//! Reads the text of a file on disk and compares it with the text in an editor.

use crate::sys::file;
use crate::tools::document::content::{Document, Form};
use crate::tools::document::replacement::replace_all;
use std::path::{Path, PathBuf};

const BOM: char = '\u{FEFF}';

/// Reads a UTF-8 file as text. Returns `None` for other encodings, which are not compared, because the editor may
/// decode them differently.
pub(super) async fn on_disk(real: &Path, max_bytes: u64) -> Option<Document> {
    let real: PathBuf = real.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let document = Document::decode(&file::read(&real, max_bytes).ok()?).ok()?;
        matches!(document.form, Form::Utf8 | Form::Utf8Bom).then_some(document)
    });
    read.await.ok().flatten()
}

/// Hashes the lines of a text. Line endings, a BOM and the final newline are ignored, because editors store them
/// separately.
pub(super) fn line_hash(text: &str) -> blake3::Hash {
    let text = text.strip_prefix(BOM).unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    blake3::hash(text.strip_suffix('\n').unwrap_or(&text).as_bytes())
}

/// Returns the content that the file would have if the editor saved its text now.
pub(super) fn as_saved(disk: &Document, buffer: &str) -> Document {
    let mut text = buffer.strip_prefix(BOM).unwrap_or(buffer).to_owned();
    if disk.text.ends_with('\n') && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Document { text: replace_all(&disk.text, &text), form: disk.form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_a_bom_and_the_final_newline_are_ignored_in_comparisons() {
        for same in ["one\r\ntwo\r\n", "\u{FEFF}one\ntwo\n", "one\ntwo", "one\rtwo\r"] {
            assert_eq!(line_hash(same), line_hash("one\ntwo\n"), "{same:?}");
        }
        for other in ["one\n\ntwo\n", "one\ntwo\n\n", "one two\n", ""] {
            assert_ne!(line_hash(other), line_hash("one\ntwo\n"), "{other:?}");
        }
    }

    #[test]
    fn editor_text_is_converted_to_the_form_in_which_it_is_saved() {
        let disk = Document { text: "one\r\ntwo\r\n".to_owned(), form: Form::Utf8Bom };
        let saved = as_saved(&disk, "\u{FEFF}one\nTWO");
        assert_eq!((saved.text.as_str(), saved.form), ("one\r\nTWO\r\n", Form::Utf8Bom));
        assert_eq!(as_saved(&disk, "").text, "");
    }
}
