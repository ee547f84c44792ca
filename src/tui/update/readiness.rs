//! Checks that the session and its model are ready, which show a notice if they are not.

use crate::text;
use crate::tui::interface::ModelAccess;
use crate::tui::keymap::Focus;
use crate::tui::metrics::GUTTER;
use crate::tui::model::UiModel;

/// Shows why the prompt was not sent. Pressing Enter again then opens the input for the missing API key.
pub(crate) fn refuse(model: &mut UiModel, now: u64) {
    model.keys.no_key_shown = Some(now);
    is_ready(model, now);
}

/// Adds a prompt to those that will be sent once a session exists.
pub(crate) fn wait_for_session(model: &mut UiModel, text: &str, now: u64) {
    let before = model.startup.waiting_prompt.take().map(|before| format!("{before}\n\n"));
    model.startup.waiting_prompt = Some(before.unwrap_or_default() + text);
    model.show_toast("starting: this is sent as soon as everything is loaded", now);
}

/// Returns whether a session exists, even if it has no usable model.
pub(crate) fn has_session(model: &UiModel) -> bool {
    model.info.model_access.is_some()
}

/// Returns whether a session exists that can be changed, even if it has no usable model. If not, shows a notice.
pub(crate) fn check_session(model: &mut UiModel, now: u64) -> bool {
    matches!(model.info.model_access, Some(ModelAccess::NoKey { .. })) || is_ready(model, now)
}

/// Returns whether there is a session whose model is ready for use. If not, shows a notice.
pub(crate) fn is_ready(model: &mut UiModel, now: u64) -> bool {
    match &model.info.model_access {
        Some(ModelAccess::Ready) => true,
        None => {
            model.show_toast("starting: try again in a moment", now);
            false
        }
        Some(ModelAccess::NoKey { message, .. }) => {
            // The transcript contains the full message. A narrow row shows only the hint, and a wide row also the first
            // clause.
            let clause = message.split([':', ';', '\n']).next().unwrap_or_default();
            let clause = clause.split(". ").next().unwrap_or_default().trim_end_matches('.');
            if model.screen.in_lines {
                model.show_toast(format!("not sent: {clause}; type /setup to add a key, then /send"), now);
                return false;
            }
            let between = format!(" {} ", model.screen.glyphs.dot);
            let other = format!("{} change model", model.keymap.current_name(Focus::Composer, "ctrl+l"));
            let room = usize::from(model.screen.size.width.saturating_sub(GUTTER));
            let add = "enter add a key";
            let mut words = format!("not sent: {clause}{between}{add}");
            if text::width(&words) > room {
                words = format!("not sent{between}{add}");
            }
            if text::width(&words) + text::width(&between) + text::width(&other) <= room {
                words = words + &between + &other;
            }
            model.show_toast(words, now);
            false
        }
        Some(ModelAccess::ReadOnly { holder }) => {
            model.show_toast(format!("not sent: read-only, {}; your draft is unchanged", text::clean(holder)), now);
            false
        }
    }
}
