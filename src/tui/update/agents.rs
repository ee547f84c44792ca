//! Agents in the session: their events, and the command that lists, shows and stops them.

use super::draft::take_draft;
use super::notes::show_requested;
use super::spending;
use crate::protocol::{AgentEvent, HostCommand};
use crate::tui::agents::{AgentEntry, AgentsView};
use crate::tui::layers::TextViewer;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Handles `/agents`, `/agents NUMBER` and `/agents stop NUMBER`.
pub(crate) fn agents(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if model.agents.is_empty() {
        take_draft(model, now, effects);
        return model.show_toast("no agents in this session yet; ask the model to use one", now);
    }
    if words.is_empty() {
        take_draft(model, now, effects);
        return show(model, AgentsView::List);
    }
    let (number, stops) = match words.strip_prefix("stop").filter(|rest| rest.starts_with(' ')) {
        Some(rest) => (rest.trim(), true),
        None => (words, false),
    };
    let Some(entry) = number.parse().ok().and_then(|number| model.agents.at(number)) else {
        return model.show_toast("missing agent number; `/agents` lists the agents", now);
    };
    let (id, is_over) = (entry.id.clone(), entry.state.is_some());
    take_draft(model, now, effects);
    match (stops, is_over) {
        (false, _) => show(model, AgentsView::One(id)),
        (true, true) => model.show_toast("this agent has ended", now),
        (true, false) => {
            model.show_toast("stopping the agent", now);
            effects.push(UiEffect::SendToHost(HostCommand::StopAgent { agent_session_id: id }));
        }
    }
}

fn show(model: &mut UiModel, view: AgentsView) {
    let (title, text) = model.agents.text(&view);
    if model.screen.in_lines {
        return show_requested(model, TranscriptEntryKind::Note { text: format!("{title}\n{text}"), tone: NoteTone::Plain });
    }
    model.layers.open(TextViewer::with_title(&title, &text));
    model.agents.view = Some(view);
}

/// Applies an agent event.
pub(crate) fn apply(model: &mut UiModel, event: AgentEvent) {
    match event {
        AgentEvent::Started { agent_session_id, agent, title, prompt, max_steps, parent_session_id, .. } => {
            model.agents.add(AgentEntry {
                id: agent_session_id,
                parent: parent_session_id,
                agent,
                title,
                prompt,
                max_steps,
                state: None,
                calls: 0,
                summaries: Vec::new(),
                tokens: 0,
                cost_usd: None,
            });
        }
        AgentEvent::Called { agent_session_id, calls, summary } => model.agents.note_call(&agent_session_id, calls, summary),
        AgentEvent::Ended { agent_session_id, state, tokens, cost_usd, .. } => {
            model.agents.end(&agent_session_id, state, tokens, cost_usd);
        }
        AgentEvent::Spent { usage, cost_usd, session_cost_usd, estimated } => {
            spending::on_usage(model, usage, cost_usd, session_cost_usd);
            return spending::doubt(model, estimated);
        }
    }
    refresh(model);
}

/// Updates the open agent view, if any.
fn refresh(model: &mut UiModel) {
    let Some(view) = &model.agents.view else { return };
    let (title, text) = model.agents.text(view);
    let mut viewer = TextViewer::with_title(&title, &text);
    match model.layers.find_mut::<TextViewer>() {
        Some(open) if open.title == viewer.title => {
            viewer.top = open.top;
            *open = viewer;
        }
        // The user has closed the view, or opened another text.
        Some(_) | None => model.agents.view = None,
    }
}
