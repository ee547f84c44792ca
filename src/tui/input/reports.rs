//! Reports from the terminal: replies to queries, and notifications that were requested.
//!
//! Any sequence with the syntax of a report is treated as a report, even if it is unknown, and never as a key.

use super::UiInput;

/// Property of the terminal that the terminal has reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalReply {
    /// The terminal supports the kitty keyboard protocol.
    Kitty,
    /// The terminal supports xterm's modified key reports.
    ModifyOtherKeys,
    /// The private mode with this number is in this state.
    Mode(u16, ModeState),
    /// The colour scheme has changed to a light or dark one.
    Scheme { light: bool },
    /// The terminal supports true colour.
    TrueColour,
    /// The terminal has this name and version.
    Name(String),
    /// Reply to `DA1`. Queries sent before it that are still unanswered will never be answered.
    Attributes,
}

/// State of a private mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeState {
    Unknown,
    On,
    Off,
    AlwaysOn,
    AlwaysOff,
}

/// Outcome of parsing a sequence as a report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedReport {
    Known(UiInput),
    /// The sequence is a report that aye did not request.
    Unknown,
    /// The sequence is not a report but a key or mouse event.
    None,
}

/// Largest plausible screen size, as width and height in cells.
const MAX_CELLS: (u16, u16) = (2000, 1000);
/// Maximum length, in characters, of the terminal name that is stored.
const NAME: usize = 64;

pub(crate) fn read(bytes: &[u8]) -> ParsedReport {
    match bytes {
        [0x1b, b'[', body @ .., last] => control(body, *last),
        [0x1b, b']', body @ ..] => osc(strip_terminator(body)),
        [0x1b, b'P', body @ ..] => dcs(strip_terminator(body)),
        // aye sends no query with such a reply. `ESC _` alone is a key.
        [0x1b, b'_' | b'^' | b'X', _, ..] => ParsedReport::Unknown,
        _ => ParsedReport::None,
    }
}

/// Removes the terminator of a string sequence. Returns `None` if there is none, because a key can look like the start
/// of a string.
fn strip_terminator(body: &[u8]) -> Option<&str> {
    let body = body.strip_suffix(b"\x07").or_else(|| body.strip_suffix(b"\x1b\\"))?;
    std::str::from_utf8(body).ok()
}

fn control(body: &[u8], last: u8) -> ParsedReport {
    match (body, last) {
        ([b'?', rest @ ..], _) => private(rest, last),
        ([b'>', rest @ ..], b'm') if rest.starts_with(b"4;") => {
            ParsedReport::Known(UiInput::Answer(TerminalReply::ModifyOtherKeys))
        }
        ([b'>' | b'=', ..], _) => ParsedReport::Unknown,
        (b"0" | b"3", b'n') => ParsedReport::Known(UiInput::Fence),
        ([b'4', b'8', b';', body @ ..], b't') => {
            size(body).map_or(ParsedReport::Unknown, |(width, height)| ParsedReport::Known(UiInput::Size(width, height)))
        }
        // This is a mouse report; `m` is a button release.
        ([b'<', ..], _) => ParsedReport::None,
        // Sizes, checksums, states and cursor positions. No key ends with one of these bytes or contains bytes such as
        // `$` or a space.
        ([_, ..], b'n' | b'c' | b't' | b'x' | b'y' | b'm' | b'h' | b'l') => ParsedReport::Unknown,
        ([.., 0x20..=0x2f], _) => ParsedReport::Unknown,
        _ => ParsedReport::None,
    }
}

/// Parses a size in rows and columns, which may be followed by its size in pixels. Returns `None` for implausible
/// sizes.
fn size(body: &[u8]) -> Option<(u16, u16)> {
    let mut parts = std::str::from_utf8(body).ok()?.split(';').map(|part| part.split(':').next()?.parse::<u16>().ok());
    let (height, width) = (parts.next()??, parts.next()??);
    ((1..=MAX_CELLS.0).contains(&width) && (1..=MAX_CELLS.1).contains(&height)).then_some((width, height))
}

fn private(body: &[u8], last: u8) -> ParsedReport {
    let Ok(body) = std::str::from_utf8(body) else { return ParsedReport::Unknown };
    let answer = match (body, last) {
        (_, b'u') => Some(TerminalReply::Kitty),
        (_, b'c') => Some(TerminalReply::Attributes),
        ("997;1", b'n') => Some(TerminalReply::Scheme { light: false }),
        ("997;2", b'n') => Some(TerminalReply::Scheme { light: true }),
        (body, b'y') => body.strip_suffix('$').and_then(mode),
        _ => None,
    };
    answer.map_or(ParsedReport::Unknown, |answer| ParsedReport::Known(UiInput::Answer(answer)))
}

fn mode(body: &str) -> Option<TerminalReply> {
    let (number, standing) = body.split_once(';')?;
    let standing = match standing {
        "0" => ModeState::Unknown,
        "1" => ModeState::On,
        "2" => ModeState::Off,
        "3" => ModeState::AlwaysOn,
        "4" => ModeState::AlwaysOff,
        _ => return None,
    };
    Some(TerminalReply::Mode(number.parse().ok()?, standing))
}

fn osc(body: Option<&str>) -> ParsedReport {
    let Some(body) = body else { return ParsedReport::None };
    match body.strip_prefix("11;").and_then(colour) {
        Some((red, green, blue)) => ParsedReport::Known(UiInput::Background(red, green, blue)),
        None => ParsedReport::Unknown,
    }
}

/// Parses a colour of the form `rgb:ffff/8080/0000`, with one to four digits per component, `rgba:` with a fourth
/// component, or `#rrggbb`.
fn colour(text: &str) -> Option<(u8, u8, u8)> {
    if let Some(digits) = text.strip_prefix('#') {
        let third = digits.len() / 3;
        let is_even = digits.is_ascii() && third > 0 && digits.len() == third * 3;
        let part = |at: usize| digits.get(at * third..(at + 1) * third).filter(|_| is_even).and_then(byte);
        return Some((part(0)?, part(1)?, part(2)?));
    }
    let parts = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
    let mut parts = parts.split('/').map(byte);
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// Scales a colour component, given as one to four hexadecimal digits, to the range of a byte.
fn byte(digits: &str) -> Option<u8> {
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let most = 16_u32.pow(digits.len() as u32) - 1;
    u8::try_from((value * 255 + most / 2) / most).ok()
}

fn dcs(body: Option<&str>) -> ParsedReport {
    let Some(body) = body else { return ParsedReport::None };
    if let Some(name) = body.strip_prefix(">|") {
        let name = name.chars().filter(|letter| !letter.is_control()).take(NAME).collect();
        return ParsedReport::Known(UiInput::Answer(TerminalReply::Name(name)));
    }
    // `RGB` and `Tc` in hexadecimal, as in the query.
    let names = body.strip_prefix("1+r").map(str::to_ascii_lowercase);
    let names = names.iter().flat_map(|names| names.split(';')).filter_map(|pair| pair.split('=').next());
    if names.into_iter().any(|name| matches!(name, "524742" | "5463")) {
        return ParsedReport::Known(UiInput::Answer(TerminalReply::TrueColour));
    }
    ParsedReport::Unknown
}
