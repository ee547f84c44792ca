//! Selection of the model and its reasoning effort: `/model`, `/effort` and the model list.

use super::draft::take_draft;
use super::failures;
use super::readiness::{has_session, is_ready};
use crate::protocol::{Command, Effort, ListedModel, ModelFacts, SecretString};
use crate::text;
use crate::tui::interface::ModelAccess;
use crate::tui::layers::ModelPicker;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::task::PauseNotice;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Handles `/model NAME`. If the name is omitted, opens the model list.
pub(crate) fn model(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if !has_session(model) {
        take_draft(model, now, effects);
        return open(model, now, effects);
    }
    take_draft(model, now, effects);
    if name.is_empty() {
        return open(model, now, effects);
    }
    effects.push(UiEffect::Send(Command::SetModel { name: name.to_owned() }));
}

/// Opens the input for a new API key if the provider rejected the current key and no request has succeeded since.
/// Returns whether the input was opened.
pub(crate) fn replaces_key(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let wants = model.task.paused.as_ref().is_some_and(|paused| paused.wants_key);
    if !wants || model.is_running() || !model.dialogs.is_empty() || model.info.header.model.is_empty() {
        return false;
    }
    let name = model.info.header.model.clone();
    open_for_key(model, &name, now, effects);
    true
}

/// Opens the model list and asks for the API key of the model called `name`.
pub(crate) fn open_for_key(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    open(model, now, effects);
    if let Some(list) = model.layers.find_mut::<ModelPicker>() {
        list.ask_for_model_key(name);
    }
}

/// Opens the model list, then requests the models already known and those that the providers offer.
pub(crate) fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if !has_session(model) {
        model.startup.wants_picker = true;
        return model.show_toast("starting: the list of models opens as soon as everything is loaded", now);
    }
    let list = ModelPicker::new(&model.info.header.model, model.info.facts.clone(), model.info.header.effort);
    model.layers.open(list);
    effects.push(UiEffect::Send(Command::ListModels { ask: false }));
    effects.push(UiEffect::Send(Command::ListModels { ask: true }));
}

/// Handles `/effort LEVEL`, such as `/effort high`.
pub(crate) fn effort(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let effort = match (name, Effort::from_name(name)) {
        ("auto" | "default", _) => None,
        (_, Some(effort)) => Some(effort),
        (_, None) => {
            let is = model.info.header.effort.map_or("chosen by the model", Effort::as_str);
            let efforts = Effort::names(efforts(model));
            let all = if efforts.is_empty() {
                "auto (the model does not support reasoning effort)".to_owned()
            } else {
                format!("{efforts} or auto")
            };
            return model.show_toast(format!("effort: {is}; change it with `/effort` {all}"), now);
        }
    };
    if is_ready(model, now) {
        take_draft(model, now, effects);
        effects.push(UiEffect::Send(Command::SetEffort { effort }));
    }
}

/// Returns the effort levels that can be chosen: those that the current model supports or, if its capabilities are
/// unknown, all levels.
pub(crate) fn efforts(model: &UiModel) -> &[Effort] {
    model.info.facts.as_ref().map_or(&Effort::ALL, |facts| facts.supported_efforts())
}

/// Adds models to the model list if it is open.
pub(crate) fn on_listed(model: &mut UiModel, models: Vec<ListedModel>, notices: &[String]) {
    if let Some(list) = model.layers.find_mut::<ModelPicker>() {
        list.add_models(models, notices);
    }
}

/// Stores the name, context window and other facts about the current model.
pub(crate) fn on_facts(model: &mut UiModel, facts: ModelFacts) {
    model.info.header.model.clone_from(&facts.name);
    model.info.header.context_tokens = Some(facts.context_window);
    model.info.facts = Some(facts);
}

pub(crate) fn on_changed(model: &mut UiModel, facts: ModelFacts, effort: Option<Effort>, message: &str) {
    if matches!(model.info.model_access, Some(ModelAccess::NoKey { .. })) {
        model.info.model_access = Some(ModelAccess::Ready);
        if let Some(words) = model.startup.no_key_note.take() {
            model.transcript.withdraw(&words);
        }
    }
    // The rejected API key is no longer in use.
    if model.task.paused.as_ref().is_some_and(|paused| paused.wants_key) {
        model.task.paused = Some(PauseNotice::new(failures::pause_location(model)));
    }
    on_facts(model, facts);
    model.info.header.effort = effort;
    show_message(model, message);
}

pub(crate) fn show_message(model: &mut UiModel, message: &str) {
    let text = text::clean(message).trim_end().to_owned();
    if !text.is_empty() {
        model.transcript.push(TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
    }
}

/// Switches to the model called `name`. Sets the reasoning effort only if the user changed it.
pub(super) fn choose(model: &mut UiModel, name: String, effort: Option<Effort>, effects: &mut Vec<UiEffect>) {
    if name != model.info.header.model {
        effects.push(UiEffect::Send(Command::SetModel { name }));
    }
    if effort.is_some() {
        effects.push(UiEffect::Send(Command::SetEffort { effort }));
    }
}

/// Saves an API key for the provider of the model called `name`.
pub(super) fn save_key(model: &mut UiModel, name: String, key: SecretString, now: u64, effects: &mut Vec<UiEffect>) {
    model.show_toast("saving the key", now);
    effects.push(UiEffect::Send(Command::AddKey { name, key }));
}
