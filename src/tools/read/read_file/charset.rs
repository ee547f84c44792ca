//! Which encoding a text is in: what it says itself, then UTF-8, then what the person's locale says, then latin-1.

use super::ReadAs;
use crate::protocol::ToolError;
use crate::tools::tool::invalid;
use crate::tools::write::document::{Form, NotText};
use encoding_rs::{Encoding, UTF_8};
use memchr::memrchr;

/// What the C library calls otherwise than the web does.
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

pub(super) fn named(label: &str) -> Result<&'static Encoding, ToolError> {
    find(label).ok_or_else(|| {
        invalid(format!("`encoding`: `{label}` is not known; for example `utf-8`, `utf-16le`, `latin1`, `shift_jis`, `gbk`"))
    })
}

fn find(label: &str) -> Option<&'static Encoding> {
    let plain = label.trim().to_ascii_lowercase();
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == plain).map(|(_, label)| *label);
    Encoding::for_label(other.unwrap_or(&plain).as_bytes()).or_else(|| {
        // `ISO8859-15`, `iso88591` as locales have it.
        let part = plain.strip_prefix("iso8859")?.trim_start_matches(['-', '_']).to_owned();
        Encoding::for_label(format!("iso-8859-{part}").as_bytes())
    })
}

/// Of a text whose start is `sample`; `charset` is what the locale says.
pub(super) fn of(sample: &[u8], charset: Option<&str>, read_as: ReadAs) -> Result<&'static Encoding, NotText> {
    let form = Form::of(sample)?;
    match (form, read_as) {
        (Form::Latin1, ReadAs::Utf8) => Ok(UTF_8),
        (Form::Latin1, ReadAs::Detected) => {
            let local = charset.and_then(find).filter(|encoding| *encoding != UTF_8);
            // The last line may end within a character.
            let lines = memrchr(b'\n', sample).map_or(sample, |end| &sample[..end]);
            let fits = |encoding: &&'static Encoding| !encoding.decode_without_bom_handling(lines).1;
            Ok(local.filter(fits).unwrap_or_else(|| form.encoding()))
        }
        (Form::Utf8 | Form::Utf8Bom | Form::Utf16Le | Form::Utf16Be, _) => Ok(form.encoding()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_is_asked_where_a_text_is_not_utf_8() {
        let name = |bytes: &[u8], charset: &str| of(bytes, Some(charset), ReadAs::Detected).unwrap().name();
        let (japanese, french) = (b"\xC6\xFC\xCB\xDC \xB8\xEC".as_slice(), b"caf\xE9".as_slice());
        assert_eq!(name(japanese, "eucJP"), "EUC-JP");
        assert_eq!(name(japanese, "UTF-8"), "windows-1252");
        assert_eq!(name(french, "eucJP"), "windows-1252", "what does not fit is not taken");
        assert_eq!(name(french, "ISO8859-15"), "ISO-8859-15");
        assert_eq!(name("é".as_bytes(), "eucJP"), "UTF-8");
        assert_eq!(name(french, "no such thing"), "windows-1252");
        assert_eq!(of(french, None, ReadAs::Utf8).unwrap().name(), "UTF-8");
        assert_eq!(of(b"\xE9\0", None, ReadAs::Utf8), Err(NotText::Binary));
    }

    #[test]
    fn encodings_have_several_names() {
        for (label, name) in [("latin1", "windows-1252"), ("UTF8", "UTF-8"), ("SJIS", "Shift_JIS"), ("iso88592", "ISO-8859-2")] {
            assert_eq!(named(label).unwrap().name(), name);
        }
        assert!(named("klingon").unwrap_err().message.contains("`klingon` is not known"));
    }
}
