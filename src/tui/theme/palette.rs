//! What a theme file says.

use serde::Deserialize;

use super::Syntax;
use super::colour::Rgb;

/// Why a theme file cannot be used: the place in the file and what was expected there.
#[derive(Debug, thiserror::Error)]
#[error("not a theme: {0}")]
pub struct ThemeError(#[from] toml::de::Error);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Palette {
    pub light: bool,
    /// Whether the background is painted or left to the terminal.
    pub paint: bool,
    pub background: Rgb,
    pub text: Rgb,
    pub muted: Rgb,
    pub faint: Rgb,
    pub accent: Rgb,
    pub ok: Rgb,
    pub warn: Rgb,
    pub danger: Rgb,
    pub critical: Rgb,
    pub added: Change,
    pub removed: Change,
    pub syntax: SyntaxColours,
}

/// Changed text, the tint of its line and the tint of its changed words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub text: Rgb,
    pub line: Rgb,
    pub word: Rgb,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SyntaxColours {
    keyword: Rgb,
    function: Rgb,
    r#type: Rgb,
    string: Rgb,
    number: Rgb,
    comment: Rgb,
    attribute: Rgb,
    operator: Rgb,
}

impl Palette {
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        Ok(toml::from_str(text)?)
    }

    pub fn syntax(&self, syntax: Syntax) -> Rgb {
        let colours = &self.syntax;
        match syntax {
            Syntax::Keyword => colours.keyword,
            Syntax::Function => colours.function,
            Syntax::Type => colours.r#type,
            Syntax::String => colours.string,
            Syntax::Number => colours.number,
            Syntax::Comment => colours.comment,
            Syntax::Attribute => colours.attribute,
            Syntax::Operator => colours.operator,
        }
    }
}
