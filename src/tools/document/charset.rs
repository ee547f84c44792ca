//! Detects a text's encoding by its own declaration, then by trying UTF-8, then the user's locale, and finally Latin-1.

use super::content::{Form, NotText};
use crate::policy::redact::Redactor;
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memrchr;
use std::io::{self, Cursor, Read};
use std::ops::Range;

/// Number of bytes from which the encoding is detected if a file exceeds `HELD_BYTES` or the limit on whole files.
pub(in crate::tools) const SNIFFED_BYTES: u64 = 64 * 1024;
/// Maximum number of bytes of a file to load into memory, whatever the policy allows.
pub(in crate::tools) const HELD_BYTES: u64 = 64 * 1024 * 1024;
/// Number of bytes to decode at a time.
pub(in crate::tools) const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum length of a run of characters that often occurs in text by chance.
const SHORT_RUN: usize = 4;

/// Which encodings a tool tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum ReadAs {
    Detected,
    /// UTF-8, with invalid bytes shown as replacement characters.
    Utf8,
}

/// Names that the C library uses for encodings, with the corresponding names in the web's Encoding Standard.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("eucjp", "euc-jp"),
    ("euckr", "euc-kr"),
    ("euccn", "gbk"),
    ("sjis", "shift_jis"),
    ("big5hkscs", "big5-hkscs"),
    ("koi8r", "koi8-r"),
    ("koi8u", "koi8-u"),
    ("cp1252", "windows-1252"),
    ("cp1251", "windows-1251"),
    ("pck", "shift_jis"),
];

pub(in crate::tools) fn encoding_from_label(label: &str) -> Result<&'static Encoding, ToolError> {
    find(label).ok_or_else(|| {
        invalid(format!(
            "`encoding`: unknown encoding `{label}`; use for example `utf-8`, `utf-16le`, `latin1`, `shift_jis`, `gbk`"
        ))
    })
}

fn find(label: &str) -> Option<&'static Encoding> {
    let plain = label.trim().to_ascii_lowercase();
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == plain).map(|(_, label)| *label);
    Encoding::for_label(other.unwrap_or(&plain).as_bytes()).or_else(|| {
        // Locale spellings such as `ISO8859-15` and `iso88591`.
        let part = plain.strip_prefix("iso8859")?.trim_start_matches(['-', '_']).to_owned();
        Encoding::for_label(format!("iso-8859-{part}").as_bytes())
    })
}

/// Detects the encoding of text that starts with `sample`. `charset` is the locale's encoding.
pub(in crate::tools) fn detect(sample: &[u8], charset: Option<&str>, read_as: ReadAs) -> Result<&'static Encoding, NotText> {
    let form = Form::detect(sample)?;
    match (form, read_as) {
        (Form::Latin1, ReadAs::Utf8) => Ok(UTF_8),
        (Form::Latin1, ReadAs::Detected) => {
            let local = charset.and_then(find).filter(|encoding| *encoding != UTF_8);
            // The last line may end in the middle of a character.
            let lines = memrchr(b'\n', sample).map_or(sample, |end| &sample[..end]);
            let fits = |encoding: &&'static Encoding| !encoding.decode_without_bom_handling(lines).1;
            Ok(local.filter(fits).unwrap_or_else(|| form.encoding()))
        }
        (Form::Utf8 | Form::Utf8Bom | Form::Utf16Le | Form::Utf16Be, _) => Ok(form.encoding()),
    }
}

/// Returns whether decoding from `encoding` exposes a secret that the redactor would find only in the raw bytes,
/// because two of its characters were merged into one or NUL bytes separate them.
pub(in crate::tools) fn exposes_secret(text: &str, encoding: &'static Encoding, redactor: &Redactor) -> bool {
    let is_secret = |text: &str| redactor.holds_secret(text);
    if text.contains('\0') && is_secret(&text.replace('\0', "")) {
        return true;
    }
    let to_bytes = if encoding == UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
    if text.is_ascii() || encoding == UTF_8 {
        return false;
    }
    if encoding != UTF_16LE && encoding != UTF_16BE {
        // A character of the secret's name, or its first character, may have become the second half of another
        // character.
        let bytes = encoding.encode(text).0;
        let (own, shown) = (String::from_utf8_lossy(&bytes), redactor.hide(text));
        let stands = |run: &str| run.len() > SHORT_RUN && shown.contains(&run[1..]);
        let runs = |hidden: Range<usize>| own[hidden].split(|letter: char| !letter.is_ascii_graphic()).any(stands);
        return redactor.redacted_ranges(&own).into_iter().any(runs);
    }
    let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
    is_secret(&String::from_utf8_lossy(&bytes))
}

/// Decodes the next chunk of text. An empty chunk marks the end.
pub(in crate::tools) fn decode(decoder: &mut Decoder, bytes: &[u8]) -> String {
    let mut decoded = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(CHUNK_BYTES * 3));
    let _ = decoder.decode_to_string(bytes, &mut decoded, bytes.is_empty());
    decoded
}

/// Reader that converts text from another encoding to UTF-8.
pub(in crate::tools) struct DecodingReader<R> {
    from: R,
    decoder: Decoder,
    ready: Cursor<Vec<u8>>,
    ended: bool,
}

impl<R> DecodingReader<R> {
    pub(in crate::tools) fn new(from: R, encoding: &'static Encoding) -> Self {
        Self { from, decoder: encoding.new_decoder_with_bom_removal(), ready: Cursor::default(), ended: false }
    }
}

impl<R: Read> Read for DecodingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(into)?;
            if count > 0 || self.ended {
                return Ok(count);
            }
            let mut bytes = vec![0; CHUNK_BYTES];
            let count = self.from.read(&mut bytes)?;
            self.ended = count == 0;
            self.ready = Cursor::new(decode(&mut self.decoder, &bytes[..count]).into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_the_locale_is_used_for_text_that_is_not_utf_8() {
        let name = |bytes: &[u8], charset: &str| detect(bytes, Some(charset), ReadAs::Detected).unwrap().name();
        let (japanese, french) = (b"\xC6\xFC\xCB\xDC \xB8\xEC".as_slice(), b"caf\xE9".as_slice());
        assert_eq!(name(japanese, "eucJP"), "EUC-JP");
        assert_eq!(name(japanese, "UTF-8"), "windows-1252");
        assert_eq!(name(french, "eucJP"), "windows-1252", "an encoding that does not fit is not used");
        assert_eq!(name(french, "ISO8859-15"), "ISO-8859-15");
        assert_eq!(name("é".as_bytes(), "eucJP"), "UTF-8");
        assert_eq!(name(french, "no such thing"), "windows-1252");
        assert_eq!(detect(french, None, ReadAs::Utf8).unwrap().name(), "UTF-8");
        assert_eq!(detect(b"\xE9\0", None, ReadAs::Utf8), Err(NotText::Binary));
    }

    #[test]
    fn encodings_are_found_by_several_names() {
        for (label, name) in [("latin1", "windows-1252"), ("UTF8", "UTF-8"), ("SJIS", "Shift_JIS"), ("iso88592", "ISO-8859-2")] {
            assert_eq!(encoding_from_label(label).unwrap().name(), name);
        }
        assert!(encoding_from_label("klingon").unwrap_err().message.contains("unknown encoding `klingon`"));
    }
}
