//! Attachments to the draft: files dropped onto the terminal, and images from the clipboard.

use super::dialog_text;
use super::draft::on_draft_changed;
use super::readiness::is_ready;
use crate::protocol::{ClipboardData, DroppedFile, HostRequest, Query};
use crate::text;
use crate::tui::format::tokens;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::{drag_drop, menu, slash};

/// Approximate number of image pixels per token.
const TOKEN_PIXELS: u64 = 750;

/// Requests the clipboard content, for `ctrl+v` and `/paste`.
pub(crate) fn request_clipboard(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    model.show_toast("reading the clipboard", now);
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Clipboard)));
}

/// Handles a paste before it is inserted into the draft. Returns `true` if there is no text to insert, because the
/// clipboard may contain an image. If the text looks like file paths, requests a check of the files, so that references
/// to them can replace the text.
pub(crate) fn on_paste(model: &mut UiModel, pasted: &str, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let elsewhere = model.has_layer() || model.browse.is_some() || model.draft.search.is_some();
    if elsewhere || model.startup.is_session_chooser {
        return false;
    }
    // Some terminals paste an image as empty text.
    if pasted.is_empty() {
        request_clipboard(model, now, effects);
        return true;
    }
    let draft = model.composer.text();
    // In a command, a path is an ordinary argument.
    let takes_words = super::user_shell::parse_command(&draft).is_some() || slash::is_command(&draft, &[]);
    let readings = if takes_words { Vec::new() } else { drag_drop::interpretations(pasted) };
    if !readings.is_empty() {
        let pasted = pasted.to_owned();
        effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Dropped { pasted, readings })));
    }
    false
}

/// Replaces pasted paths in the draft with references, once the files are known to exist.
pub(crate) fn on_dropped(model: &mut UiModel, pasted: &str, files: &[DroppedFile], now: u64) {
    let names: Option<Vec<String>> = files.iter().map(|file| menu::path_reference(&file.path)).collect();
    let Some(names) = names.filter(|names| !names.is_empty()) else { return };
    let ends = |before: &str| before.ends_with(|one: char| one.is_whitespace() || "([{<\"'`,;@".contains(one));
    let in_place = |before: &str| {
        let gap = if before.is_empty() || ends(before) { "" } else { " " };
        format!("{gap}{} ", names.join(" "))
    };
    if !model.composer.replace_paste(pasted, in_place) {
        return;
    }
    on_draft_changed(model, now);
    for file in files.iter().filter(|file| file.image) {
        model.draft.attached.add(&file.path);
    }
    let name = |file: &DroppedFile| text::reveal(&file.path).into_owned();
    let words = match (files.iter().find(|file| file.outside), files) {
        (Some(file), _) => {
            format!("{} is outside the workspace, so it is not attached; aye asks you if the model wants to read it", name(file))
        }
        (None, [file]) => match file.tokens {
            Some(count) if !file.image => format!("{} {} ~{} tokens", name(file), model.screen.glyphs.dot, tokens(count)),
            _ => name(file),
        },
        (None, files) => crate::tui::format::format_count(files.len(), "file"),
    };
    model.show_toast(words, now);
    if files.iter().any(|file| file.image) {
        warn(model, now);
    }
}

/// Inserts the clipboard content into the draft.
pub(crate) fn on_clipboard(model: &mut UiModel, clipped: ClipboardData, now: u64, effects: &mut Vec<UiEffect>) {
    match clipped {
        ClipboardData::Nothing { why } => model.show_toast(text::clean(&why).into_owned(), now),
        ClipboardData::Text { text } => {
            model.toast = None;
            let words = text::clean(&text).into_owned();
            on_paste(model, &words, now, effects);
            insert_paste(model, &words, now);
        }
        ClipboardData::Image { image, by } => {
            model.draft.attached.add(&image.uri);
            let before = model.composer.before_cursor();
            let gap = if before.is_empty() || before.ends_with(char::is_whitespace) { "" } else { " " };
            insert_text(model, &format!("{gap}@{} ", image.uri), now);
            let kind = image.media_type.trim_start_matches("image/");
            let (dot, count) = (model.screen.glyphs.dot, u64::from(image.width) * u64::from(image.height) / TOKEN_PIXELS);
            let words =
                format!("image {}x{} {kind} {dot} ~{} tokens {dot} {by}", image.width, image.height, tokens(count.max(1)));
            model.show_toast(words, now);
            warn(model, now);
        }
    }
}

/// Inserts pasted text into the draft. A dialog that has opened in the meantime keeps keyboard focus.
fn insert_paste(model: &mut UiModel, pasted: &str, now: u64) {
    if model.dialogs.is_open() || model.has_layer() {
        model.composer.insert_paste(pasted);
        return on_draft_changed(model, now);
    }
    dialog_text::paste_to_draft(model, "", pasted, now);
}

/// Inserts text into the draft. A dialog that has opened in the meantime keeps keyboard focus.
fn insert_text(model: &mut UiModel, words: &str, now: u64) {
    if model.dialogs.is_open() || model.has_layer() {
        model.composer.insert(words);
        return on_draft_changed(model, now);
    }
    dialog_text::to_draft(model, words, now);
}

/// Warns the user, before an image is sent, if the model does not accept images.
fn warn(model: &mut UiModel, now: u64) {
    if let Some(name) = image_blind_model(model) {
        let dot = model.screen.glyphs.dot;
        model.show_toast(
            format!("{name} does not accept images: it would get only their dimensions {dot} ctrl+l to change the model"),
            now,
        );
    }
}

/// Returns the model's name if the model is known not to accept images.
fn image_blind_model(model: &UiModel) -> Option<String> {
    model.info.facts.as_ref().filter(|facts| !facts.images).map(|facts| text::clean(&facts.name).into_owned())
}

/// Returns whether Enter must not send the draft yet because it contains an image and the model does not accept images.
/// The next Enter sends the unchanged draft.
pub(crate) fn withholds_draft(model: &mut UiModel, draft: &str, now: u64) -> bool {
    let Some(name) = image_blind_model(model).filter(|_| model.draft.attached.said.as_deref() != Some(draft)) else {
        return false;
    };
    let Some(image) = model.draft.attached.find_image(draft).map(|image| text::reveal(image).into_owned()) else { return false };
    if !is_ready(model, now) {
        return false;
    }
    model.draft.attached.said = Some(draft.to_owned());
    let dot = model.screen.glyphs.dot;
    model.show_toast(
        format!("{name} does not accept images and would not see {image} {dot} enter to send anyway, ctrl+l to change the model"),
        now,
    );
    true
}
