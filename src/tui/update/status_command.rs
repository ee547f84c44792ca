//! Overview of the session for `/status`.

use super::draft::take_draft;
use super::notes::show_called_for;
use crate::protocol::{HostRequest, Query};
use crate::text;
use crate::tui::format::{about, tokens};
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};

/// Width of the labels, in cells.
const NAMES: usize = 12;

pub(crate) fn ask(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    take_draft(model, now, effects);
    effects.push(Effect::Ask(Query::LookUp(HostRequest::Places)));
}

/// Shows the state of the screen and the file locations.
pub(crate) fn told(model: &mut Model, places: &[(String, String)]) {
    let header = &model.info.header;
    let session = model.info.session.as_ref().map_or_else(|| "new, no messages yet".to_owned(), ToString::to_string);
    let effort = header.effort.map(|effort| format!(", effort {}", effort.as_str())).unwrap_or_default();
    let window = model.context_limit();
    let used = model.info.tally.context_tokens;
    let context = match window {
        Some(limit) => format!("{} of {} tokens, {}%", tokens(used), tokens(limit), used * 100 / limit),
        None => format!("{} tokens", tokens(used)),
    };
    let usage = model.info.tally.usage;
    let cost =
        model.info.tally.cost_usd.map_or_else(|| "price unknown".to_owned(), |cost| about(cost, model.info.tally.is_estimated));
    let layers: Vec<String> = model
        .info
        .policy
        .layers
        .iter()
        .map(|layer| match &layer.file {
            Some(file) => format!("{} ({file})", layer.scope),
            None => layer.scope.clone(),
        })
        .collect();
    let policy = if layers.is_empty() { header.policy.clone() } else { layers.join(", ") };
    let task = if model.is_running() { format!("running, step {}", model.task.step.max(1)) } else { "none running".to_owned() };
    let model_name = if header.model.is_empty() { "none".to_owned() } else { format!("{}{effort}", header.model) };
    let own = |name: &str, fact: String| (name.to_owned(), fact);
    let mut rows = vec![
        own("aye", model.options.version.clone()),
        own("session", session),
        own("directory", model.options.cwd.clone()),
        own("branch", header.branch.clone().unwrap_or_else(|| "none".to_owned())),
        own("model", model_name),
        own("mode", header.mode.as_str().to_owned()),
        own("policy", policy),
        own("sandbox", header.sandbox.trim_start_matches("sandbox ").to_owned()),
        own("context", context),
        own("used", format!("{} in, {} out, {cost}", tokens(usage.input_tokens), tokens(usage.output_tokens))),
        own("task", task),
        own("commands", format!("{} custom", model.menu.own.len())),
    ];
    rows.extend(places.iter().cloned());
    let rows: Vec<String> =
        rows.iter().map(|(name, fact)| format!("{:NAMES$}{}", text::reveal_line(name), text::reveal_line(fact))).collect();
    show_called_for(model, Kind::Note { text: rows.join("\n"), tone: Tone::Plain });
}
