//! `/theme` command, and selection of a theme from the list.

use super::draft::take_draft;
use crate::protocol::{HostRequest, Query};
use crate::text;
use crate::tui::interface::ThemeChoice;
use crate::tui::layers::{AUTO, ThemeList};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::theme::{self, Theme};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Handles `/theme NAME`. If the name is omitted, opens the theme list.
pub(crate) fn theme(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if name.is_empty() {
        let _ = take_draft(model, now, effects);
        return open(model);
    }
    if name != AUTO
        && let Err(problem) = theme::find(model.options.themes.as_deref(), name)
    {
        if problem.starts_with("unknown theme") {
            return model.show_toast(problem, now);
        }
        // The problem with a file may be long, so a note in the transcript shows it.
        return note(model, problem, NoteTone::Warning);
    }
    let _ = take_draft(model, now, effects);
    choose(model, name, now, effects);
}

/// Applies a theme and saves it as the user's choice.
pub(super) fn choose(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    model.options.theme = if name == AUTO { ThemeChoice::Auto } else { ThemeChoice::Named(name.to_owned()) };
    model.choose_theme();
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::KeepTheme { name: name.to_owned() })));
    model.show_toast(format!("theme {name}"), now);
    warn_of_contrast(model);
}

/// Opens the theme list. Line mode prints it instead.
fn open(model: &mut UiModel) {
    if model.screen.in_lines {
        return note(model, to_text(model), NoteTone::Plain);
    }
    let list = ThemeList::new(model.options.theme.clone(), model.options.themes.as_deref());
    model.layers.open(list);
}

/// Applies a theme to the screen without saving it as the user's choice.
pub(super) fn show(model: &mut UiModel, choice: ThemeChoice) {
    if choice != model.options.theme {
        model.options.theme = choice;
        model.retheme();
        model.screen.dirty = true;
    }
}

/// Restores the theme that was in use when the list was opened.
pub(super) fn restore(model: &mut UiModel, choice: ThemeChoice) {
    model.options.theme = choice;
    model.choose_theme();
}

/// Reports whether the chosen theme was saved.
pub(crate) fn on_saved(model: &mut UiModel, name: &str, kept: Result<String, String>, now: u64) {
    match kept {
        Ok(file) => model.show_toast(format!("theme {name}, saved in {}", text::reveal(&file)), now),
        Err(why) => note(model, format!("theme {name} applies to this session only: {}", why.trim_end()), NoteTone::Warning),
    }
}

/// Returns the valid arguments of `/theme`.
pub(crate) fn names(model: &UiModel) -> Vec<String> {
    let own = theme::list(model.options.themes.as_deref());
    std::iter::once(AUTO).chain(Theme::names()).map(str::to_owned).chain(own).collect()
}

/// Reports a theme named in the settings that cannot be used, once the transcript can show the message.
pub(crate) fn check(model: &mut UiModel) {
    let ThemeChoice::Named(name) = &model.options.theme else { return };
    if let Err(problem) = theme::find(model.options.themes.as_deref(), name) {
        note(model, format!("{problem}\nusing theme {} until this is fixed", model.screen.theme.name), NoteTone::Warning);
    }
}

/// Returns the theme list as text for line mode.
fn to_text(model: &UiModel) -> String {
    let built_in = Theme::names().collect::<Vec<_>>().join(", ");
    let own = theme::list(model.options.themes.as_deref());
    let now = match &model.options.theme {
        ThemeChoice::Auto => format!("auto: {}, to match the terminal background", model.screen.theme.name),
        ThemeChoice::Named(_) => model.screen.theme.name.clone(),
    };
    let mut text = format!("current theme: {now}\navailable: auto, {built_in}");
    let place = model.options.themes.as_ref().map_or_else(String::new, |path| path.display().to_string());
    if own.is_empty() {
        text = format!("{text}\ncustom themes go in {place}");
    }
    for name in own {
        let state = match theme::find(model.options.themes.as_deref(), &name) {
            Ok(theme) => {
                if theme.light {
                    "custom, for a light background".to_owned()
                } else {
                    "custom".to_owned()
                }
            }
            Err(problem) => format!("cannot be used: {problem}"),
        };
        text = format!("{text}\n  {name}  {state}");
    }
    text::reveal(&text).into_owned()
}

/// Warns if the contrast of a user theme is too low.
fn warn_of_contrast(model: &mut UiModel) {
    let is_own = Theme::by_name(&model.screen.theme.name).is_none();
    if let Some((token, contrast)) = model.screen.theme.lowest_contrast().filter(|_| is_own) {
        let least = if token == "text" { 7.0 } else { 4.5 };
        let words = format!(
            "`{}`: {token} has a contrast of {contrast:.1} against its background; use at least {least} for readability",
            model.screen.theme.name
        );
        note(model, words, NoteTone::Warning);
    }
}

fn note(model: &mut UiModel, text: String, tone: NoteTone) {
    model.transcript.push(TranscriptEntryKind::Note { text: text::clean(&text).into_owned(), tone });
    model.screen.dirty = true;
}
