//! Opening and updating overview screens.

use super::notes::show_requested;
use super::{
    artifacts, commands, compaction, findings, planned_steps, policy, queue, requested_list, spending, stats, status_command,
};
use crate::protocol::{ContextUse, RequestedList};
use crate::text;
use crate::tui::layers::{Overview, Topic};
use crate::tui::model::UiModel;
use crate::tui::picker::Row;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Opens the overview of a topic. Line mode prints it instead.
pub(crate) fn open(model: &mut UiModel, topic: Topic) {
    if model.screen.in_lines {
        let text = match &topic {
            Topic::Status(places) => status_command::to_text(model, places),
            Topic::Cost => spending::to_text(model),
            Topic::Policy => policy::to_text(model),
            Topic::Tools => stats::to_text(model),
            Topic::Background => commands::to_text(model),
            Topic::Queue => queue::to_text(model),
            Topic::Steps => planned_steps::printed(model),
            Topic::Artifacts => artifacts::to_text(model),
            Topic::Findings => findings::to_text(model),
            // Line mode prints the event of the context window.
            Topic::Context(_) => return,
            Topic::Requested(list) => list.to_text(),
        };
        return show_requested(model, TranscriptEntryKind::Note { text: text::clean(&text).into_owned(), tone: NoteTone::Plain });
    }
    model.layers.open(Overview::new(topic));
    refresh(model);
}

/// Opens the overview of the context window. Line mode prints the event that contains the data instead.
pub(crate) fn open_context(model: &mut UiModel, filled: ContextUse) {
    if filled.used() > 0 {
        model.info.tally.context_tokens = filled.used();
    }
    if !model.screen.in_lines {
        open(model, Topic::Context(filled));
    }
}

/// Opens a list that the user requested, or shows a notice if the list is empty.
pub(crate) fn open_list(model: &mut UiModel, list: RequestedList, now: u64) {
    if list.is_empty() && !model.screen.in_lines {
        return model.show_toast(list.to_text(), now);
    }
    open(model, Topic::Requested(list));
}

/// Updates the rows of the overview if one is open.
pub(crate) fn refresh(model: &mut UiModel) {
    let Some(topic) = model.layers.find::<Overview>().map(|overview| overview.topic.clone()) else { return };
    let (rows, notices): (Vec<Row>, Vec<String>) = match &topic {
        Topic::Status(places) => (status_command::rows(model, places), Vec::new()),
        Topic::Cost => (spending::rows(model), spending::notices(model)),
        Topic::Policy => (policy::rows(model), policy::notices(model)),
        Topic::Tools => (stats::rows(model), Vec::new()),
        Topic::Background => (commands::rows(model), Vec::new()),
        Topic::Queue => (queue::rows(model), Vec::new()),
        Topic::Steps => (planned_steps::rows(model), Vec::new()),
        Topic::Artifacts => (artifacts::rows(model), Vec::new()),
        Topic::Findings => (findings::rows(model), findings::notices(model)),
        Topic::Context(filled) => (compaction::context_rows(model, filled), compaction::context_notices(model, filled)),
        Topic::Requested(list) => (requested_list::rows(list), requested_list::notices(list)),
    };
    let aside = match &topic {
        Topic::Policy => Some(format!("mode {}", model.info.header.mode.as_str())),
        Topic::Findings => Some(findings::subject_text(model)),
        Topic::Context(filled) => Some(compaction::context_summary(filled)),
        _ => None,
    };
    let Some(overview) = model.layers.find_mut::<Overview>() else { return };
    if let Some(aside) = aside {
        overview.set_aside(aside);
    }
    overview.fill(rows, notices);
    model.screen.dirty = true;
}
