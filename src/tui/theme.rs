//! Stand-in until the `view` branch is merged.
use ratatui::style::{Color, Modifier, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    Text,
    Muted,
    Faint,
    Accent,
    Ok,
    Warn,
    Danger,
    Critical,
    Surface,
    Raised,
    Added,
    AddedWord,
    Removed,
    RemovedWord,
    Code,
    Heading,
    Link,
    Quote,
    Selection,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    True,
    Indexed256,
    Sixteen,
    None,
}
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    light: bool,
    colours: Colours,
}
impl Theme {
    pub fn dark() -> Self {
        Self { light: false, colours: Colours::True }
    }
    pub fn light() -> Self {
        Self { light: true, colours: Colours::True }
    }
    pub fn choose(background: Option<(u8, u8, u8)>, colours: Colours) -> Self {
        Self { light: background.is_some_and(|(r, _, _)| r > 127), colours }
    }
    pub fn style(&self, token: Token) -> Style {
        match token {
            Token::Danger => Style::new().fg(Color::Red),
            Token::Critical => Style::new().add_modifier(Modifier::REVERSED),
            _ => Style::new(),
        }
    }
}
