//! Mapping from palettes to the colours that the terminal supports: true colour, 256 colours, 16 colours or none.

use ratatui::style::{Color, Modifier, Style};

use super::colour::Rgb;
use super::palette::{Change, Palette};
use super::{Syntax, Token};

/// Colour support of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColourDepth {
    True,
    Indexed256,
    Sixteen,
    None,
}

/// Minimum contrast of body text after rounding to the available colours. For all other text, it is [`CONTRAST`].
const TEXT_CONTRAST: f64 = 7.0;
const CONTRAST: f64 = 4.5;

pub(super) fn token_style(palette: &Palette, colours: ColourDepth, token: Token) -> Style {
    match colours {
        ColourDepth::True => rich(palette, token, &ExactColours),
        ColourDepth::Indexed256 => rich(palette, token, &RoundedColours),
        ColourDepth::Sixteen => sixteen(token, palette.light),
        ColourDepth::None => colourless(token),
    }
}

pub(super) fn syntax_style(palette: &Palette, colours: ColourDepth, syntax: Syntax, ground: Token) -> Style {
    let changes = [(Token::Added, palette.added), (Token::Removed, palette.removed)];
    let tint = changes.iter().find(|(token, _)| *token == ground).map(|(_, change)| change.line);
    let colour = palette.syntax(syntax);
    match (colours, tint) {
        (ColourDepth::True, None) => Style::new().fg(ExactColours.text(colour, palette.background, CONTRAST)),
        (ColourDepth::True, Some(tint)) => on_tint(colour, tint, &ExactColours),
        (ColourDepth::Indexed256, None) => Style::new().fg(RoundedColours.text(colour, palette.background, CONTRAST)),
        (ColourDepth::Indexed256, Some(tint)) => on_tint(colour, tint, &RoundedColours),
        // Without tints, the colour of the line shows whether it was added or removed.
        (ColourDepth::Sixteen | ColourDepth::None, Some(_)) => token_style(palette, colours, ground),
        (ColourDepth::Sixteen, None) => sixteen_syntax(syntax, palette.light),
        (ColourDepth::None, None) => Style::new(),
    }
}

fn on_tint(colour: Rgb, tint: Rgb, fit: &impl ColourMapping) -> Style {
    let (ground, real) = fit.tint(tint);
    Style::new().fg(fit.text(colour, real, CONTRAST)).bg(ground)
}

pub(super) fn background(palette: &Palette, colours: ColourDepth) -> Option<Color> {
    match colours {
        ColourDepth::True => palette.paint.then(|| ExactColours.ground(palette.background)),
        ColourDepth::Indexed256 => palette.paint.then(|| RoundedColours.ground(palette.background)),
        ColourDepth::Sixteen | ColourDepth::None => None,
    }
}

/// Mapping from palette colours to terminal colours.
trait ColourMapping {
    fn text(&self, colour: Rgb, ground: Rgb, contrast: f64) -> Color;
    fn ground(&self, colour: Rgb) -> Color;
    /// Returns the terminal colour for a tint, and the RGB colour that the terminal displays for it.
    fn tint(&self, colour: Rgb) -> (Color, Rgb);
}

struct ExactColours;

impl ColourMapping for ExactColours {
    fn text(&self, colour: Rgb, _: Rgb, _: f64) -> Color {
        self.ground(colour)
    }

    fn ground(&self, colour: Rgb) -> Color {
        Color::Rgb(colour.red, colour.green, colour.blue)
    }

    fn tint(&self, colour: Rgb) -> (Color, Rgb) {
        (self.ground(colour), colour)
    }
}

struct RoundedColours;

impl ColourMapping for RoundedColours {
    fn text(&self, colour: Rgb, ground: Rgb, contrast: f64) -> Color {
        Color::Indexed(colour.nearest_on(ground, contrast))
    }

    fn ground(&self, colour: Rgb) -> Color {
        Color::Indexed(colour.nearest_on(colour, 1.0))
    }

    fn tint(&self, colour: Rgb) -> (Color, Rgb) {
        let index = colour.nearest_tint();
        (Color::Indexed(index), Rgb::indexed(index))
    }
}

fn rich(palette: &Palette, token: Token, fit: &impl ColourMapping) -> Style {
    let fg = |colour| Style::new().fg(fit.text(colour, palette.background, CONTRAST));
    match token {
        Token::Text => Style::new().fg(fit.text(palette.text, palette.background, TEXT_CONTRAST)),
        Token::Muted | Token::Quote => fg(palette.muted),
        Token::Faint => fg(palette.faint),
        Token::Accent => fg(palette.accent),
        Token::Code => fg(palette.syntax(Syntax::Attribute)),
        Token::Ok => fg(palette.ok),
        Token::Warn => fg(palette.warn),
        Token::Danger => fg(palette.danger),
        Token::Critical => fg(palette.critical).add_modifier(Modifier::REVERSED | Modifier::BOLD),
        Token::Heading => fg(palette.accent).add_modifier(Modifier::BOLD),
        Token::Link => fg(palette.accent).add_modifier(Modifier::UNDERLINED),
        Token::Prompt => {
            let (tint, ground) = fit.tint(palette.surface);
            Style::new().fg(fit.text(palette.text, ground, TEXT_CONTRAST)).bg(tint)
        }
        Token::Added => line(palette.added, fit),
        Token::Removed => line(palette.removed, fit),
        Token::AddedWord => word_style(palette.added, fit),
        Token::RemovedWord => word_style(palette.removed, fit),
    }
}

fn line(change: Change, fit: &impl ColourMapping) -> Style {
    let (tint, ground) = fit.tint(change.line);
    Style::new().fg(fit.text(change.text, ground, CONTRAST)).bg(tint)
}

/// Returns the style for changed words. If rounding gives words and lines the same tint, words are underlined as well.
fn word_style(change: Change, fit: &impl ColourMapping) -> Style {
    let (tint, ground) = fit.tint(change.word);
    let style = Style::new().fg(fit.text(change.text, ground, CONTRAST)).bg(tint).add_modifier(Modifier::BOLD);
    if fit.tint(change.line).0 == tint { style.add_modifier(Modifier::UNDERLINED) } else { style }
}

/// Returns the style for a role with sixteen colours. None of them is used as a background, because users can redefine
/// them.
fn sixteen(token: Token, light: bool) -> Style {
    let style = Style::new();
    let pick = |dark: Color, on_light: Color| style.fg(if light { on_light } else { dark });
    match token {
        Token::Text | Token::Muted | Token::Faint | Token::Quote => style,
        Token::Accent => pick(Color::LightCyan, Color::Blue),
        Token::Heading => pick(Color::LightCyan, Color::Blue).add_modifier(Modifier::BOLD),
        Token::Link => pick(Color::LightCyan, Color::Blue).add_modifier(Modifier::UNDERLINED),
        Token::Prompt => style.add_modifier(Modifier::BOLD),
        Token::Code => pick(Color::Cyan, Color::Blue),
        Token::Ok | Token::Added => style.fg(Color::Green),
        Token::AddedWord => style.fg(Color::Green).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Token::Warn => pick(Color::Yellow, Color::Magenta),
        Token::Danger => pick(Color::LightRed, Color::Red),
        Token::Removed => pick(Color::LightRed, Color::Red),
        Token::RemovedWord => pick(Color::LightRed, Color::Red).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Token::Critical => pick(Color::LightRed, Color::Red).add_modifier(Modifier::REVERSED | Modifier::BOLD),
    }
}

/// Returns the style for source code with sixteen colours. On many terminals, plain blue and magenta are unreadable on
/// dark backgrounds, as is cyan on light ones.
fn sixteen_syntax(syntax: Syntax, light: bool) -> Style {
    let style = Style::new();
    match (syntax, light) {
        (Syntax::Keyword, false) => style.fg(Color::LightMagenta),
        (Syntax::Keyword, true) => style.fg(Color::Magenta),
        (Syntax::Function | Syntax::Type, false) => style.fg(Color::LightCyan),
        (Syntax::Function | Syntax::Type, true) => style.fg(Color::Blue),
        (Syntax::Attribute | Syntax::Number, false) => style.fg(Color::Cyan),
        (Syntax::Attribute | Syntax::Number, true) | (Syntax::String | Syntax::Comment | Syntax::Operator, _) => style,
    }
}

fn colourless(token: Token) -> Style {
    let style = Style::new();
    match token {
        Token::Text | Token::Muted | Token::Faint | Token::Quote => style,
        Token::Ok | Token::Code | Token::Added | Token::Removed => style,
        Token::Accent | Token::Link | Token::AddedWord | Token::RemovedWord => style.add_modifier(Modifier::UNDERLINED),
        Token::Warn | Token::Danger | Token::Heading | Token::Prompt => style.add_modifier(Modifier::BOLD),
        Token::Critical => style.add_modifier(Modifier::REVERSED),
    }
}
