//! Themes: a style for each kind of text, including themes with few or no colours.

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

/// Role of a piece of text, which a theme maps to a style.
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
    /// The user's prompt.
    Prompt,
}

/// All text roles.
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

/// Kind of a piece of source code, which a theme maps to a colour.
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

/// Built-in themes by name.
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

    /// Parses a theme file.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ThemeError> {
        let palette = Palette::parse(text)?;
        Ok(Self { name: name.to_owned(), light: palette.light, palette, colours: ColourDepth::True })
    }

    /// Parses a user theme. Missing values come from the built-in theme for the same background.
    pub(crate) fn parse_user_theme(name: &str, text: &str) -> Result<Self, ThemeError> {
        let palette = Palette::parse_over(text, &Self::dark().palette, &Self::light().palette)?;
        Ok(Self { name: name.to_owned(), light: palette.light, palette, colours: ColourDepth::True })
    }

    /// Returns a built-in theme.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// Returns the names of the built-in themes.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the default theme for a background, which may be unknown.
    pub(crate) fn choose(background: Option<(u8, u8, u8)>, colours: ColourDepth) -> Self {
        let light = background.is_some_and(|(red, green, blue)| Rgb { red, green, blue }.is_light());
        if light { Self::light().with_colours(colours) } else { Self::dark().with_colours(colours) }
    }

    /// Returns the theme for a terminal with this colour support.
    pub(crate) fn with_colours(self, colours: ColourDepth) -> Self {
        Self { colours, ..self }
    }

    pub(crate) fn style(&self, token: Token) -> Style {
        colour_depth::token_style(&self.palette, self.colours, token)
    }

    /// Returns the style of a symbol, without the underline, which would blur it.
    pub(crate) fn symbol(&self, token: Token) -> Style {
        self.style(token).remove_modifier(Modifier::UNDERLINED)
    }

    /// Returns the colour of source code on the background of `ground`. Changed lines keep their tint.
    pub(crate) fn syntax(&self, syntax: Syntax, ground: Token) -> Style {
        colour_depth::syntax_style(&self.palette, self.colours, syntax, ground)
    }

    /// Returns the contrast of a token with its background, if the RGB values of both are known.
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

    /// Returns the background colour of the screen, if the theme sets one.
    pub(crate) fn background(&self) -> Option<Color> {
        colour_depth::background(&self.palette, self.colours)
    }

    fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), light: false, palette: Palette::default(), colours: ColourDepth::None }
    }
}

#[cfg(test)]
mod tests;
