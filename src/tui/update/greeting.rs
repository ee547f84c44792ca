//! First lines of the transcript, which show the location, the permissions and suggested prompts.

use crate::text;
use crate::tui::interface::{ModelAccess, Start};
use crate::tui::model::UiModel;
use crate::tui::styled_text::{SpanStyle, StyledText};
use crate::tui::theme::Token;

/// Prompts suggested on an empty screen.
const TRY: [&str; 2] = ["explain this project", "find untested code"];

pub(crate) fn lines(model: &UiModel, start: &Start, resumed: bool) -> Vec<StyledText> {
    let mut lines = vec![location_row(model), rules(model, start)];
    if resumed {
        return lines;
    }
    let mut more: Vec<StyledText> = start.last_here.iter().map(|words| last_session_row(model, words)).collect();
    if start.model_access == ModelAccess::Ready {
        more.push(attempts(model, start.attempt.as_deref()));
    }
    if !more.is_empty() {
        lines.push(StyledText::default());
        lines.extend(more);
    }
    lines
}

/// Returns the row that describes the last session, without line breaks.
fn last_session_row(model: &UiModel, words: &str) -> StyledText {
    let words = text::reveal_line(words).replace('·', model.screen.glyphs.dot);
    StyledText::new(&words, SpanStyle::from_token(Token::Muted))
}

fn location_row(model: &UiModel) -> StyledText {
    let mut line = StyledText::new(&format!("aye {}", model.options.version), SpanStyle::from_token(Token::Heading));
    let branch = model.info.header.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let place = format!(" {} {}{branch}", model.screen.glyphs.dot, model.options.cwd);
    line.push(&text::clean(&place), SpanStyle::from_token(Token::Text));
    line
}

fn rules(model: &UiModel, start: &Start) -> StyledText {
    let header = &model.info.header;
    let dot = format!(" {} ", model.screen.glyphs.dot);
    let trusted = if start.is_trusted { format!("Trusted project{dot}") } else { String::new() };
    let policy = if header.policy.is_empty() { String::new() } else { format!("{dot}{} policy", header.policy) };
    let ends = start.policy_ends.as_ref().map(|ends| format!(" ({ends})")).unwrap_or_default();
    let words = format!("{trusted}mode {}{policy}{ends}{dot}", header.mode.as_str());
    let mut line = StyledText::new(&text::clean(&words), SpanStyle::from_token(Token::Muted));
    if header.is_unsandboxed() {
        let words = format!("{}: commands run with all your permissions", header.sandbox);
        line.push(&text::clean(&words), SpanStyle::from_token(Token::Warn));
    } else {
        line.push(&text::clean(&header.sandbox), SpanStyle::from_token(Token::Muted));
    }
    line
}

/// Returns the row of suggested prompts. If there is a suggestion specific to this project, `own`, it comes first.
fn attempts(model: &UiModel, own: Option<&str>) -> StyledText {
    let mut line = StyledText::new("Try: ", SpanStyle::from_token(Token::Muted));
    let own = own.map(text::reveal_line);
    let usual = TRY.into_iter().skip(usize::from(own.is_some()));
    for words in own.iter().map(String::as_str).chain(usual) {
        line.push(words, SpanStyle::from_token(Token::Text));
        line.push(&format!(" {} ", model.screen.glyphs.dot), SpanStyle::from_token(Token::Muted));
    }
    line.push("? keys", SpanStyle::from_token(Token::Muted));
    line
}
