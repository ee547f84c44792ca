//! Decodes files to text and encodes the text in a way that restores the original bytes.

use crate::sys::file::Fingerprint;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

const UTF_8_BOM: &[u8] = &[0xEF, 0xBB, 0xBF];
/// Number of bytes that are searched for a NUL byte, which text does not contain.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Form {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    /// Text with bytes above 127 that is not valid UTF-8. It is read as Latin-1, in which every byte is a character.
    Latin1,
}

/// Text along with its encoding. The line endings are those of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Document {
    pub text: String,
    pub form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum NotText {
    Binary,
    /// The content has a BOM but is not valid in the encoding that the BOM indicates, so an edit would damage it.
    Malformed,
}

impl Form {
    pub(in crate::tools) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with BOM",
            Self::Utf16Le => "UTF-16 LE",
            Self::Utf16Be => "UTF-16 BE",
            Self::Latin1 => "latin-1",
        }
    }

    /// Detects the encoding from the first bytes of a file. Fails if the file does not contain text.
    pub(in crate::tools) fn detect(start: &[u8]) -> Result<Self, NotText> {
        if start.starts_with(UTF_8_BOM) {
            return Ok(Self::Utf8Bom);
        }
        match Encoding::for_bom(start) {
            Some((encoding, _)) if encoding == UTF_16LE => return Ok(Self::Utf16Le),
            Some((encoding, _)) if encoding == UTF_16BE => return Ok(Self::Utf16Be),
            Some(_) | None => {}
        }
        let sniffed = &start[..start.len().min(SNIFFED_BYTES)];
        if sniffed.contains(&0) {
            return Err(NotText::Binary);
        }
        match std::str::from_utf8(start) {
            Ok(_) => Ok(Self::Utf8),
            Err(_) if looks_binary(sniffed) => Err(NotText::Binary),
            Err(_) => Ok(Self::Latin1),
        }
    }

    pub(in crate::tools) fn encoding(self) -> &'static Encoding {
        match self {
            Self::Utf8 | Self::Utf8Bom => UTF_8,
            Self::Utf16Le => UTF_16LE,
            Self::Utf16Be => UTF_16BE,
            Self::Latin1 => WINDOWS_1252,
        }
    }

    /// Encodes `text`. Returns `None` if this encoding lacks one of the characters.
    pub(in crate::tools) fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 => Some(text.as_bytes().to_vec()),
            Self::Utf8Bom => Some([UTF_8_BOM, text.as_bytes()].concat()),
            Self::Utf16Le => Some([0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()),
            Self::Utf16Be => Some([0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()),
            Self::Latin1 => {
                let (bytes, _, unmappable) = WINDOWS_1252.encode(text);
                (!unmappable).then(|| bytes.into_owned())
            }
        }
    }
}

/// Returns whether more than 5% of the bytes are control characters that do not occur in text.
fn looks_binary(bytes: &[u8]) -> bool {
    let controls = bytes.iter().filter(|byte| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31 | 127)).count();
    controls * 20 > bytes.len()
}

impl Document {
    pub(in crate::tools) fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        let form = Form::detect(bytes)?;
        let text = match form {
            Form::Utf8 => String::from_utf8(bytes.to_vec()).map_err(|_| NotText::Malformed)?,
            Form::Utf8Bom => String::from_utf8(bytes[UTF_8_BOM.len()..].to_vec()).map_err(|_| NotText::Malformed)?,
            Form::Utf16Le | Form::Utf16Be => {
                let text = form.encoding().decode_without_bom_handling_and_without_replacement(&bytes[2..]);
                text.ok_or(NotText::Malformed)?.into_owned()
            }
            Form::Latin1 => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        };
        let document = Self { text, form };
        // Unchanged bytes are preserved only if the conversion is reversible.
        if document.form.encode(&document.text).as_deref() == Some(bytes) { Ok(document) } else { Err(NotText::Malformed) }
    }

    /// Returns the fingerprint of the file that the document encodes to.
    pub(in crate::tools) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::hash(&self.form.encode(&self.text).unwrap_or_default())
    }
}
