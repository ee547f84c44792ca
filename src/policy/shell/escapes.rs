//! Decodes backslash escapes in `$'…'`, `echo -e` and `printf`, as bash does.

use super::arg::UNKNOWN;

/// Syntax in which an escape occurs. Some escapes are decoded differently depending on the syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `$'…'`, in which a NUL ends the text.
    Quotes,
    /// `echo -e` and `%b`, in which octal numbers need a leading 0. Text after `\c` is decoded too, because some
    /// versions of `echo` do not support `\c`.
    Echo,
    /// Format string of `printf`.
    Format,
}

/// Decodes the escapes in the text. Characters that depend on the locale and bytes that are not valid text become
/// unknown.
pub(crate) fn decode(text: &str, style: Style) -> String {
    let mut decoder = EscapeDecoder { rest: text.as_bytes(), out: Vec::with_capacity(text.len()) };
    while let Some((&byte, rest)) = decoder.rest.split_first() {
        decoder.rest = rest;
        if byte != b'\\' {
            decoder.out.push(byte);
        } else if decoder.escape(style) == End::Here {
            break;
        }
    }
    let mut decoded = String::with_capacity(decoder.out.len());
    for chunk in decoder.out.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend((!chunk.invalid().is_empty()).then_some(UNKNOWN));
    }
    decoded
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Here,
    Later,
}

struct EscapeDecoder<'t> {
    rest: &'t [u8],
    /// Decoded bytes. A 0 byte represents text that can be determined only at run time.
    out: Vec<u8>,
}

impl EscapeDecoder<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Decodes the escape whose backslash has just been read.
    fn escape(&mut self, style: Style) -> End {
        let Some(letter) = self.peek() else {
            self.out.push(b'\\');
            return End::Later;
        };
        self.skip(1);
        match letter {
            b'a' => self.out.push(7),
            b'b' => self.out.push(8),
            b'e' | b'E' => self.out.push(27),
            b'f' => self.out.push(12),
            b'n' => self.out.push(b'\n'),
            b'r' => self.out.push(b'\r'),
            b't' => self.out.push(b'\t'),
            b'v' => self.out.push(11),
            b'\\' => self.out.push(b'\\'),
            b'\'' | b'"' | b'?' if style != Style::Echo => self.out.push(letter),
            b'c' if style == Style::Quotes => return self.control(),
            b'x' => return self.hexadecimal(style),
            b'u' => return self.character(4, style),
            b'U' => return self.character(8, style),
            b'0' if style == Style::Echo => return self.octal(0, 3, style),
            b'0'..=b'7' if style != Style::Echo => return self.octal(u32::from(letter - b'0'), 2, style),
            other => self.out.extend([b'\\', other]),
        }
        End::Later
    }

    fn byte(&mut self, value: u32, style: Style) -> End {
        let byte = (value & 0xff) as u8;
        // In other syntaxes, a pipe passes the byte on, and its reader may do anything with it.
        if byte == 0 && style == Style::Quotes {
            return End::Here;
        }
        self.out.push(byte);
        End::Later
    }

    fn octal(&mut self, first: u32, more: usize, style: Style) -> End {
        let digits = self.rest.iter().take(more).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        let value = self.rest[..digits].iter().fold(first, |value, digit| value * 8 + u32::from(digit - b'0'));
        self.skip(digits);
        self.byte(value, style)
    }

    fn hexadecimal(&mut self, style: Style) -> End {
        let braced = style == Style::Quotes && self.peek() == Some(b'{');
        if braced {
            self.skip(1);
        }
        let most = if braced { usize::MAX } else { 2 };
        let digits = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let value = hex(&self.rest[..digits]);
        self.skip(digits);
        if braced {
            if self.peek() == Some(b'}') {
                self.skip(1);
            }
            return self.byte(value, style);
        }
        if digits == 0 {
            self.out.extend(*b"\\x");
            return End::Later;
        }
        self.byte(value, style)
    }

    /// Decodes `\u` and `\U`. How a non-ASCII character is encoded depends on the locale.
    fn character(&mut self, most: usize, style: Style) -> End {
        let digits = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            self.out.extend([b'\\', if most == 4 { b'u' } else { b'U' }]);
            return End::Later;
        }
        let value = hex(&self.rest[..digits]);
        self.skip(digits);
        if value < 0x80 {
            return self.byte(value, style);
        }
        self.out.push(0);
        End::Later
    }

    /// Decodes `\cX` inside quotes.
    fn control(&mut self) -> End {
        let Some(letter) = self.peek() else {
            self.out.extend(*b"\\c");
            return End::Later;
        };
        self.skip(1);
        if letter == b'\\' && self.peek() == Some(b'\\') {
            self.skip(1);
        }
        self.byte(if letter == b'?' { 0x7f } else { u32::from(letter.to_ascii_uppercase() & 0x1f) }, Style::Quotes)
    }
}

/// Parses hexadecimal digits. If there are too many, only the last ones are used.
fn hex(digits: &[u8]) -> u32 {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    digits.iter().fold(0_u32, |value, byte| value.wrapping_mul(16).wrapping_add(digit(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_decoded_as_in_bash() {
        for (text, decoded) in [
            ("\\x2ddelete", "-delete"),
            ("\\x{2d}delete", "-delete"),
            ("\\x{}a", ""),
            ("\\x{12d}x", "-x"),
            ("\\x{2dx", "-x"),
            ("\\xg", "\\xg"),
            ("\\u002dx", "-x"),
            ("\\u2dx", "-x"),
            ("\\U0000002dx", "-x"),
            ("\\ug", "\\ug"),
            ("\\055x", "-x"),
            ("\\55x", "-x"),
            ("\\455x", "-x"),
            ("a\\0b", "a"),
            ("a\\x00b", "a"),
            ("a\\c@b", "a"),
            ("\\cmx", "\rx"),
            ("\\c?", "\u{7f}"),
            ("\\-x", "\\-x"),
            ("\\'\\\"\\?\\\\", "'\"?\\"),
            ("\\xc3\\xa9", "é"),
            ("\\é", "\\é"),
        ] {
            assert_eq!(decode(text, Style::Quotes), decoded, "{text}");
        }
        for text in ["\\xff", "\\u00e9", "\\U0001f600"] {
            assert_eq!(decode(text, Style::Quotes), UNKNOWN.to_string(), "{text}");
        }
        assert_eq!(decode("\\055 \\0055\\c x", Style::Echo), "- -\\c x");
        assert_eq!(decode("\\055\\q\\'", Style::Format), "-\\q'");
    }
}
