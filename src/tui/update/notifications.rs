//! Desktop notifications and terminal progress, used while the window is not focused.

use crate::text;
use crate::tui::interface::Notices;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::notifications::TerminalProgress;
use crate::tui::terminal::{Notice, TerminalMode};

/// Records whether the window is focused, and clears the progress once it is.
pub(crate) fn focus(model: &mut UiModel, is_focused: bool, effects: &mut Vec<UiEffect>) {
    model.screen.attention.is_focused = is_focused;
    if is_focused {
        show(model, TerminalProgress::None, effects);
    }
}

/// Notifies the user of new dialogs and of the end of work, unless the window is focused or notifications are off.
pub(crate) fn send_new(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    let (waiting, running) = (model.dialogs.len(), model.is_running());
    let before = (model.screen.attention.waiting, model.screen.attention.was_running);
    if (waiting, running) == before {
        return;
    }
    (model.screen.attention.waiting, model.screen.attention.was_running) = (waiting, running);
    if model.screen.attention.is_focused || model.options.notices == Notices::Off {
        return;
    }
    if waiting > before.0 {
        let words = if waiting == 1 {
            "1 approval or question is waiting for you".to_owned()
        } else {
            format!("{waiting} approvals or questions are waiting for you")
        };
        notify(model, &words, effects);
        show(model, TerminalProgress::Waits, effects);
    } else if before.1 && !running && waiting == 0 {
        notify(model, "the task has ended", effects);
        show(model, TerminalProgress::Ended, effects);
    } else if waiting == 0 && running {
        show(model, TerminalProgress::None, effects);
    }
}

fn notify(model: &UiModel, words: &str, effects: &mut Vec<UiEffect>) {
    if model.options.notices == Notices::Bell {
        return effects.push(UiEffect::Write(b"\x07".to_vec()));
    }
    let directory = model.options.cwd.rsplit('/').next().unwrap_or_default();
    // Some terminals treat a separator as the end of the text.
    let place = text::reveal(directory).replace([';', '\n', '\t'], " ");
    let emulator = &model.screen.terminal.emulator;
    let sequence = match emulator.notice(&model.screen.terminal.name) {
        None => return,
        Some(Notice::Nine) => format!("\x1b]9;aye in {place}: {words}\x1b\\"),
        Some(Notice::Notify) => format!("\x1b]777;notify;aye in {place};{words}\x1b\\"),
    };
    effects.push(UiEffect::Write(emulator.wrap_for_outer(&sequence)));
}

fn show(model: &mut UiModel, progress: TerminalProgress, effects: &mut Vec<UiEffect>) {
    let is_known =
        model.screen.terminal.emulator.shows_progress(&model.screen.terminal.name) && model.options.notices == Notices::Auto;
    if !is_known || std::mem::replace(&mut model.screen.attention.progress, progress) == progress {
        return;
    }
    if progress != TerminalProgress::None {
        effects.push(UiEffect::Push(TerminalMode::Progress));
    }
    let state: &[u8] = match progress {
        TerminalProgress::None => b"\x1b]9;4;0\x1b\\",
        TerminalProgress::Ended => b"\x1b]9;4;1;100\x1b\\",
        // Terminals with coloured progress show this state in yellow.
        TerminalProgress::Waits => b"\x1b]9;4;4;100\x1b\\",
    };
    effects.push(UiEffect::Write(state.to_vec()));
}
