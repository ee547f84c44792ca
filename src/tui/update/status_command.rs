//! Session overview for `/status`.

use super::draft::take_draft;
use crate::protocol::{HostRequest, Query};
use crate::text;
use crate::tui::approval::mode_description;
use crate::tui::format::{format_count, format_estimate, tokens};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::Row;

/// Width of the label column in line mode, in cells.
const NAMES: usize = 12;

/// Fact about the session, with its name, value and details.
struct Fact {
    name: String,
    value: String,
    more: String,
}

/// Requests the locations of aye's files, which the overview shows.
pub(crate) fn request_places(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Places)));
}

/// Returns one list row per fact.
pub(crate) fn rows(model: &UiModel, places: &[(String, String)]) -> Vec<Row> {
    let row = |fact: Fact| Row {
        cells: vec![text::reveal_line(&fact.name), text::reveal_line(&fact.value)],
        mark: "",
        lacks: None,
        detail: if fact.more.is_empty() { text::reveal_line(&fact.value) } else { text::reveal(&fact.more).into_owned() },
        key: fact.name,
    };
    facts(model, places).into_iter().map(row).collect()
}

/// Returns the facts as text for line mode.
pub(crate) fn to_text(model: &UiModel, places: &[(String, String)]) -> String {
    let line = |fact: Fact| format!("{:NAMES$}{}", text::reveal_line(&fact.name), text::reveal_line(&fact.value));
    facts(model, places).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn facts(model: &UiModel, places: &[(String, String)]) -> Vec<Fact> {
    let header = &model.info.header;
    let fact = |name: &str, value: String, more: String| Fact { name: name.to_owned(), value, more };
    let plain = |name: &str, value: String| fact(name, value, String::new());
    let session = match &model.info.session {
        None => plain("session", "new, no messages yet".to_owned()),
        Some(id) => fact("session", id.to_string(), format!("resume it with\naye --resume={id}")),
    };
    let task = if model.is_running() { format!("running, step {}", model.task.step.max(1)) } else { "none running".to_owned() };
    let sandbox = header.sandbox.trim_start_matches("sandbox ").to_owned();
    let own: Vec<String> = model.menu.own.iter().map(|command| format!("/{}  {}", command.name, command.source)).collect();
    let mut facts = vec![
        plain("aye", model.options.version.clone()),
        session,
        plain("directory", model.options.cwd.clone()),
        plain("branch", header.branch.clone().unwrap_or_else(|| "none".to_owned())),
        model_fact(model),
        fact("mode", header.mode.as_str().to_owned(), mode_description(header.mode).to_owned()),
        policy_fact(model),
        plain("sandbox", sandbox),
        context_fact(model),
        used_fact(model),
        plain("task", task),
        fact("commands", format!("{} custom", own.len()), own.join("\n")),
    ];
    if let Some(name) = header.summary_model.as_ref().filter(|name| **name != header.model) {
        let after_model = facts.iter().position(|fact| fact.name == "mode").unwrap_or(facts.len());
        facts.insert(after_model, fact("summaries", name.clone(), format!("{name}\nwrites the summaries of long conversations")));
    }
    if !model.servers.statuses.is_empty() {
        let servers: Vec<String> = model.servers.statuses.iter().map(|status| status.name.clone()).collect();
        facts.push(fact("servers", format_count(servers.len(), "MCP server"), servers.join("\n")));
    }
    facts.extend(places.iter().map(|(name, place)| plain(name, place.clone())));
    facts
}

fn model_fact(model: &UiModel) -> Fact {
    let header = &model.info.header;
    let effort = header.effort.map(|effort| format!(", effort {}", effort.as_str())).unwrap_or_default();
    let value = if header.model.is_empty() { "none".to_owned() } else { format!("{}{effort}", header.model) };
    let more = model.info.facts.as_ref().map_or_else(String::new, |facts| {
        let price = facts.price.map_or_else(
            || "price unknown".to_owned(),
            |price| format!("${} in, ${} out per million tokens", price.input, price.output),
        );
        format!("{}\ncontext window {} tokens\n{price}", facts.name, tokens(facts.context_window))
    });
    Fact { name: "model".to_owned(), value, more }
}

fn policy_fact(model: &UiModel) -> Fact {
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
    let value = if layers.is_empty() { model.info.header.policy.clone() } else { layers.join(", ") };
    Fact { name: "policy".to_owned(), value, more: layers.join("\n") }
}

fn context_fact(model: &UiModel) -> Fact {
    let used = model.info.tally.context_tokens;
    let (value, more) = match model.context_limit() {
        Some(limit) => {
            let left = tokens(limit.saturating_sub(used));
            (format!("{} of {} tokens, {}%", tokens(used), tokens(limit), used * 100 / limit), format!("{left} tokens left"))
        }
        None => (format!("{} tokens", tokens(used)), "the size of the context window is unknown".to_owned()),
    };
    Fact { name: "context".to_owned(), value, more }
}

fn used_fact(model: &UiModel) -> Fact {
    let tally = &model.info.tally;
    let has_price = model.info.facts.as_ref().is_some_and(|facts| facts.price.is_some());
    let cost = match tally.cost_usd {
        Some(cost) => format_estimate(cost, tally.is_estimated),
        None if has_price => "$0.00".to_owned(),
        None => "price unknown".to_owned(),
    };
    let value = format!("{} in, {} out, {cost}", tokens(tally.usage.input_tokens), tokens(tally.usage.output_tokens));
    let more = format!("{} of the input came from the cache", tokens(tally.usage.cache_read_tokens));
    Fact { name: "used".to_owned(), value, more }
}
