//! Themes, which define a style for each role of text, on terminals with full, limited or no colour support.

mod colour;
mod colour_depth;
mod palette;
mod user_themes;

pub(crate) use colour::Rgb;
pub(crate) use colour_depth::ColourDepth;
pub(crate) use palette::ThemeError;
pub(crate) use user_themes::{find, list};

use ratatui::style::{Color, Modifier, Style};

use palette::Palette;

/// Role of a piece of text, to which a theme assigns a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Text,
    Muted,
    Faint,
    Accent,
    Ok,
    Warn,
    Danger,
    Critical,
    Added,
    AddedWord,
    Removed,
    RemovedWord,
    Code,
    Heading,
    Link,
    Quote,
    /// Prompt written by the user.
    Prompt,
}

/// All roles of text.
const TOKENS: [Token; 17] = [
    Token::Text,
    Token::Muted,
    Token::Faint,
    Token::Accent,
    Token::Ok,
    Token::Warn,
    Token::Danger,
    Token::Critical,
    Token::Added,
    Token::AddedWord,
    Token::Removed,
    Token::RemovedWord,
    Token::Code,
    Token::Heading,
    Token::Link,
    Token::Quote,
    Token::Prompt,
];

/// Kind of a piece of source code, to which a theme assigns a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Keyword,
    Function,
    Type,
    String,
    Number,
    Comment,
    Attribute,
    Operator,
}

/// Names of the built-in themes, each with the content of its file.
const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("high-contrast-light", include_str!("../../themes/high-contrast-light.toml")),
    ("colour-blind-dark", include_str!("../../themes/colour-blind-dark.toml")),
    ("colour-blind-light", include_str!("../../themes/colour-blind-light.toml")),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Theme {
    pub name: String,
    pub light: bool,
    palette: Palette,
    colours: ColourDepth,
}

impl Theme {
    pub(crate) fn dark() -> Self {
        Self::by_name("dark").unwrap_or_else(|| Self::plain("dark"))
    }

    pub(crate) fn light() -> Self {
        Self::by_name("light").unwrap_or_else(|| Self::plain("light"))
    }

    /// Parses a theme file, which must be complete.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ThemeError> {
        let palette = Palette::parse(text)?;
        Ok(Self { name: name.to_owned(), light: palette.light, palette, colours: ColourDepth::True })
    }

    /// Parses a user theme. Values that are missing are taken from the built-in theme for the same kind of background.
    pub(crate) fn parse_user_theme(name: &str, text: &str) -> Result<Self, ThemeError> {
        let palette = Palette::parse_over(text, &Self::dark().palette, &Self::light().palette)?;
        Ok(Self { name: name.to_owned(), light: palette.light, palette, colours: ColourDepth::True })
    }

    /// Returns the built-in theme with this name, if there is one.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// Returns the names of the built-in themes.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the default theme for a background colour. If the colour is unknown, it is assumed to be dark.
    pub(crate) fn choose(background: Option<(u8, u8, u8)>, colours: ColourDepth) -> Self {
        let light = background.is_some_and(|(red, green, blue)| Rgb { red, green, blue }.is_light());
        if light { Self::light().with_colours(colours) } else { Self::dark().with_colours(colours) }
    }

    /// Returns the theme adapted to a terminal's colour support.
    pub(crate) fn with_colours(self, colours: ColourDepth) -> Self {
        Self { colours, ..self }
    }

    pub(crate) fn style(&self, token: Token) -> Style {
        colour_depth::token_style(&self.palette, self.colours, token)
    }

    /// Returns the style for a symbol. It is never underlined, because that would make symbols hard to recognize.
    pub(crate) fn symbol(&self, token: Token) -> Style {
        self.style(token).remove_modifier(Modifier::UNDERLINED)
    }

    /// Returns the style for source code on the background of the role `ground`, so that changed lines keep their tint.
    pub(crate) fn syntax(&self, syntax: Syntax, ground: Token) -> Style {
        colour_depth::syntax_style(&self.palette, self.colours, syntax, ground)
    }

    /// Returns the contrast between a role's text and its background, if the RGB values of both are known.
    fn contrast(&self, token: Token) -> Option<f64> {
        let number = |colour: Color| match colour {
            Color::Rgb(red, green, blue) => Some(Rgb { red, green, blue }),
            Color::Indexed(index) => Some(Rgb::indexed(index)),
            _ => None,
        };
        let style = self.style(token);
        let ground = style.bg.map_or(Some(self.palette.background), number)?;
        Some(number(style.fg?)?.contrast(ground))
    }

    /// Returns the colour with which to paint the background of the screen, if the theme sets one.
    pub(crate) fn background(&self) -> Option<Color> {
        colour_depth::background(&self.palette, self.colours)
    }

    fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), light: false, palette: Palette::default(), colours: ColourDepth::None }
    }
}

#[cfg(test)]
mod tests;
