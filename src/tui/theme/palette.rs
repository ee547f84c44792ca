//! File format of themes.

use serde::Deserialize;

use super::Syntax;
use super::colour::Rgb;

/// Error in a theme file, with its 1-based line number.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub(crate) struct ThemeError {
    pub line: usize,
    pub message: String,
}

impl ThemeError {
    fn new(error: &toml::de::Error, text: &str) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        Self { line, message: error.message().to_owned() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Palette {
    pub light: bool,
    /// Whether to paint the background instead of keeping the terminal's own.
    pub paint: bool,
    pub background: Rgb,
    /// Background of the user's prompts.
    pub surface: Rgb,
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

/// Colours of changed text: the text itself, and the backgrounds of the line and of the words that changed.
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
    pub(crate) fn parse(text: &str) -> Result<Self, ThemeError> {
        toml::from_str(text).map_err(|error| ThemeError::new(&error, text))
    }

    /// Parses a file that may be incomplete. Values that are missing are taken from the palette for the same kind of
    /// background.
    pub(crate) fn parse_over(text: &str, dark: &Self, light: &Self) -> Result<Self, ThemeError> {
        let file: Partial = toml::from_str(text).map_err(|error| ThemeError::new(&error, text))?;
        Ok(file.apply_to(if file.light { light } else { dark }))
    }

    pub(crate) fn syntax(&self, syntax: Syntax) -> Rgb {
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

/// Content of a user theme file, in which colours may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Partial {
    light: bool,
    paint: bool,
    background: Option<Rgb>,
    surface: Option<Rgb>,
    text: Option<Rgb>,
    muted: Option<Rgb>,
    faint: Option<Rgb>,
    accent: Option<Rgb>,
    ok: Option<Rgb>,
    warn: Option<Rgb>,
    danger: Option<Rgb>,
    critical: Option<Rgb>,
    added: PartialChange,
    removed: PartialChange,
    syntax: PartialSyntax,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PartialChange {
    text: Option<Rgb>,
    line: Option<Rgb>,
    word: Option<Rgb>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PartialSyntax {
    keyword: Option<Rgb>,
    function: Option<Rgb>,
    r#type: Option<Rgb>,
    string: Option<Rgb>,
    number: Option<Rgb>,
    comment: Option<Rgb>,
    attribute: Option<Rgb>,
    operator: Option<Rgb>,
}

impl Partial {
    fn apply_to(&self, base: &Palette) -> Palette {
        let (syntax, below) = (&self.syntax, &base.syntax);
        Palette {
            light: self.light,
            paint: self.paint,
            background: self.background.unwrap_or(base.background),
            surface: self.surface.unwrap_or(base.surface),
            text: self.text.unwrap_or(base.text),
            muted: self.muted.unwrap_or(base.muted),
            faint: self.faint.unwrap_or(base.faint),
            accent: self.accent.unwrap_or(base.accent),
            ok: self.ok.unwrap_or(base.ok),
            warn: self.warn.unwrap_or(base.warn),
            danger: self.danger.unwrap_or(base.danger),
            critical: self.critical.unwrap_or(base.critical),
            added: self.added.apply_to(base.added),
            removed: self.removed.apply_to(base.removed),
            syntax: SyntaxColours {
                keyword: syntax.keyword.unwrap_or(below.keyword),
                function: syntax.function.unwrap_or(below.function),
                r#type: syntax.r#type.unwrap_or(below.r#type),
                string: syntax.string.unwrap_or(below.string),
                number: syntax.number.unwrap_or(below.number),
                comment: syntax.comment.unwrap_or(below.comment),
                attribute: syntax.attribute.unwrap_or(below.attribute),
                operator: syntax.operator.unwrap_or(below.operator),
            },
        }
    }
}

impl PartialChange {
    fn apply_to(&self, base: Change) -> Change {
        Change {
            text: self.text.unwrap_or(base.text),
            line: self.line.unwrap_or(base.line),
            word: self.word.unwrap_or(base.word),
        }
    }
}
