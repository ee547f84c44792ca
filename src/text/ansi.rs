//! Colours in command output. Styles are encoded as private-use characters while lines are cleaned, and decoded
//! afterwards.

use std::ops::Range;

/// First of the private-use characters that encode a style between [`Ansi`] and [`parse_paints`]. If the input itself
/// contains such a character, it is replaced.
const FIRST: u32 = 0x0010_f000;
const CODES: u32 = 0x200;
/// Maximum length of an incomplete sequence, in bytes.
const MAX_LEN: usize = 64;

/// Named terminal colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    White,
    Grey,
}

const HUES: [Hue; 8] = [Hue::Red, Hue::Green, Hue::Yellow, Hue::Blue, Hue::Magenta, Hue::Cyan, Hue::White, Hue::Grey];

/// Style of a span of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paint {
    pub hue: Option<Hue>,
    pub bold: bool,
    pub italic: bool,
    pub underlined: bool,
    pub reversed: bool,
    pub struck: bool,
}

impl Paint {
    fn to_char(self) -> char {
        let hue = self.hue.and_then(|hue| HUES.iter().position(|known| *known == hue)).map_or(0, |at| at as u32 + 1);
        let flags = [self.bold, self.italic, self.underlined, self.reversed, self.struck];
        let flags = flags.iter().enumerate().map(|(bit, on)| u32::from(*on) << bit).sum::<u32>();
        char::from_u32(FIRST + hue * 32 + flags).unwrap_or('\u{fffd}')
    }

    fn from_char(letter: char) -> Option<Self> {
        let code = u32::from(letter).checked_sub(FIRST).filter(|code| *code < CODES)?;
        let hue = (code / 32).checked_sub(1).and_then(|at| HUES.get(at as usize).copied());
        let has = |bit: u32| code >> bit & 1 == 1;
        Some(Self { hue, bold: has(0), italic: has(1), underlined: has(2), reversed: has(3), struck: has(4) })
    }

    /// Applies the numeric parameters of a sequence that ends with `m`.
    fn apply_codes(&mut self, numbers: &str) {
        let mut numbers = numbers.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.hue = self.hue.or(Some(Hue::Grey)),
                3 => self.italic = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                9 => self.struck = true,
                22 => self.bold = false,
                23 => self.italic = false,
                24 => self.underlined = false,
                27 => self.reversed = false,
                29 => self.struck = false,
                30..=37 => self.hue = Some(basic(number - 30)),
                90..=97 => self.hue = Some(bright(number - 90)),
                39 => self.hue = None,
                38 => self.hue = parse_extended(&mut numbers),
                48 => {
                    parse_extended(&mut numbers);
                }
                _ => {}
            }
        }
    }
}

fn basic(number: u16) -> Hue {
    match number {
        1 => Hue::Red,
        2 => Hue::Green,
        3 => Hue::Yellow,
        4 => Hue::Blue,
        5 => Hue::Magenta,
        6 => Hue::Cyan,
        7 => Hue::White,
        _ => Hue::Grey,
    }
}

fn bright(number: u16) -> Hue {
    if number == 0 { Hue::Grey } else { basic(number) }
}

/// Parses the parameters that follow 38 or 48: either an index into 256 colours or three colour components.
fn parse_extended(numbers: &mut impl Iterator<Item = u16>) -> Option<Hue> {
    match numbers.next()? {
        5 => Some(match numbers.next()? {
            number @ 0..=7 => basic(number),
            number @ 8..=15 => bright(number - 8),
            number @ 232.. => grey((number - 232) * 10 + 8),
            number => {
                let part = |steps: u16| if steps == 0 { 0 } else { 55 + 40 * steps };
                let cube = number - 16;
                nearest(part(cube / 36), part(cube / 6 % 6), part(cube % 6))
            }
        }),
        2 => Some(nearest(numbers.next()?, numbers.next()?, numbers.next()?)),
        _ => None,
    }
}

fn grey(light: u16) -> Hue {
    if light < 160 { Hue::Grey } else { Hue::White }
}

fn nearest(red: u16, green: u16, blue: u16) -> Hue {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    if most - least < 48 {
        return grey(most);
    }
    let near = |part: u16| u32::from(part) * 3 > u32::from(most) * 2;
    match (near(red), near(green), near(blue)) {
        (true, true, _) => Hue::Yellow,
        (true, false, true) => Hue::Magenta,
        (false, true, true) => Hue::Cyan,
        (true, false, false) => Hue::Red,
        (false, true, false) => Hue::Green,
        (false, false, _) => Hue::Blue,
    }
}

/// Replaces each style sequence with a private-use character and leaves other text unchanged.
#[derive(Debug, Default)]
pub(crate) struct Ansi {
    paint: Paint,
    /// Sequence whose end has not been received yet.
    held: String,
}

impl Ansi {
    pub(crate) fn push(&mut self, chunk: &str) -> String {
        let mut out = String::with_capacity(chunk.len());
        for letter in chunk.chars() {
            self.apply(letter, &mut out);
        }
        out
    }

    fn apply(&mut self, letter: char, out: &mut String) {
        match (self.held.len(), letter) {
            (0, '\u{1b}') => self.held.push(letter),
            (0, '\n' | '\r') => {
                out.push(letter);
                // Repeat the style to make each line self-contained.
                if self.paint != Paint::default() {
                    out.push(self.paint.to_char());
                }
            }
            (0, _) if Paint::from_char(letter).is_some() => out.push('\u{fffd}'),
            (0, _) => out.push(letter),
            (1, '[') => self.held.push(letter),
            (2.., '0'..=';') if self.held.len() < MAX_LEN => self.held.push(letter),
            (2.., 'm') => {
                let before = self.paint;
                let held = std::mem::take(&mut self.held);
                self.paint.apply_codes(held.get(2..).unwrap_or_default());
                if self.paint != before {
                    out.push(self.paint.to_char());
                }
            }
            _ => {
                // The sequence does not set a style, so it is left to the cleaner.
                out.push_str(&std::mem::take(&mut self.held));
                self.apply(letter, out);
            }
        }
    }
}

/// Removes the style characters from a string. Returns the plain text, and the styles with the byte offsets at which
/// they start.
pub(crate) fn parse_paints(text: &str) -> (String, Vec<(usize, Paint)>) {
    let (mut plain, mut paints) = (String::with_capacity(text.len()), Vec::new());
    for letter in text.chars() {
        match Paint::from_char(letter) {
            Some(paint) => paints.push((plain.len(), paint)),
            None => plain.push(letter),
        }
    }
    (plain, paints)
}

/// Returns the styles that apply within a byte range of the plain text.
pub(crate) fn paints_within(paints: &[(usize, Paint)], range: Range<usize>) -> Vec<(Range<usize>, Paint)> {
    let first = paints.partition_point(|(at, _)| *at <= range.start);
    let mut paint = first.checked_sub(1).map_or(Paint::default(), |before| paints[before].1);
    let (mut out, mut at) = (Vec::new(), range.start);
    for (next, change) in paints[first..].iter().filter(|(next, _)| *next < range.end) {
        if *next > at {
            out.push((at..*next, paint));
        }
        (at, paint) = (*next, *change);
    }
    if at < range.end {
        out.push((at..range.end, paint));
    }
    out
}

/// Returns whether the text contains nothing visible.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| letter.is_whitespace() || Paint::from_char(letter).is_some())
}
