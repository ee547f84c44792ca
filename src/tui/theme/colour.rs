//! RGB colours, the contrast between them, and their closest equivalents among the 256 indexed colours.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rgb {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

impl Rgb {
    /// Returns the relative luminance as defined by WCAG 2, from 0 to 1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }

    /// Returns the contrast ratio to another colour as defined by WCAG 2, from 1 to 21.
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance() + 0.05, other.luminance() + 0.05);
        one.max(two) / one.min(two)
    }

    /// Returns whether dark text on this colour is more readable than light text.
    pub(crate) fn is_light(self) -> bool {
        self.luminance() > 0.18
    }

    fn distance(self, other: Self) -> u32 {
        let part = |one: u8, two: u8| u32::from(one.abs_diff(two)).pow(2);
        part(self.red, other.red) + part(self.green, other.green) + part(self.blue, other.blue)
    }

    /// Returns the index of the closest indexed colour (16 to 255) whose contrast with `ground` is at least `contrast`.
    pub(crate) fn nearest_on(self, ground: Self, contrast: f64) -> u8 {
        let readable = (16..=255).filter(|index| Self::indexed(*index).contrast(ground) >= contrast);
        readable
            .min_by_key(|index| Self::indexed(*index).distance(self))
            .unwrap_or_else(|| if ground.is_light() { 16 } else { 231 })
    }

    /// Returns the index of the closest indexed colour (16 to 231). The grey ramp is excluded, so that a faint tint
    /// keeps its hue.
    pub(crate) fn nearest_tint(self) -> u8 {
        (16..=231).min_by_key(|index| Self::indexed(*index).distance(self)).unwrap_or(16)
    }

    /// Returns an indexed colour (16 to 255) of the standard palette, which consists of a 6×6×6 cube and a grey ramp.
    pub(crate) fn indexed(index: u8) -> Self {
        const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        if index >= 232 {
            let grey = 8 + (index - 232) * 10;
            return Self { red: grey, green: grey, blue: grey };
        }
        let cube = usize::from(index.saturating_sub(16));
        Self { red: STEPS[cube / 36], green: STEPS[cube / 6 % 6], blue: STEPS[cube % 6] }
    }
}

impl<'de> Deserialize<'de> for Rgb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hex = text.strip_prefix('#').unwrap_or(&text);
        let valid = hex.len() == 6 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(hex, 16).ok().filter(|_| valid);
        let value = value
            .ok_or_else(|| D::Error::custom(format!("invalid colour `{text}`; expected six hex digits, for example `7AB7FF`")))?;
        let [_, red, green, blue] = value.to_be_bytes();
        Ok(Self { red, green, blue })
    }
}
