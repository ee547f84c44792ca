//! Status row and row of key hints at the bottom of the screen.

use super::approval;
use super::format::{dollars, format_count, format_estimate, tokens};
use super::interface::ModelAccess;
use super::keymap::Focus;
use super::menu::Typing;
use super::metrics::GUTTER;
use super::model::{Activity, UiModel};
use super::session_info::ExpiryStage;
use super::status_items::{StatusItem, fields, is_wanted};
use super::task::KILL_MS;
use super::theme::Token;
use super::update::focus::{InputTarget, focus, target};
use super::update::{commands, compaction, retry};
use crate::protocol::{CallId, Mode, Usage};
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use std::borrow::Cow;

/// Width of the context bar, in cells.
const BAR: u64 = 8;

/// Parts of the status row in the order in which they are dropped until the remaining ones fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DropOrder {
    Nothing,
    /// Details of the sandbox. Whether the sandbox and the network are on is dropped only later.
    Extent,
    /// Provider prefix in the model's name, such as `anthropic/`.
    Provider,
    Bar,
    Cwd,
    Branch,
    /// Output of the user's own status command.
    Own,
    Tokens,
    Effort,
    Cost,
    Model,
    /// Explanatory text next to a percentage.
    Words,
    /// State of a sandbox that is on. If the sandbox is off, this is always shown.
    Held,
    /// Long forms of the parts that remain.
    Long,
    /// Context window usage.
    Context,
}

const LEAVING: [DropOrder; 15] = [
    DropOrder::Nothing,
    DropOrder::Extent,
    DropOrder::Provider,
    DropOrder::Bar,
    DropOrder::Cwd,
    DropOrder::Branch,
    DropOrder::Own,
    DropOrder::Tokens,
    DropOrder::Effort,
    DropOrder::Cost,
    DropOrder::Model,
    DropOrder::Words,
    DropOrder::Held,
    DropOrder::Long,
    DropOrder::Context,
];

/// Maximum width, in cells, of the output of the user's own status command.
const OWN_CELLS: usize = 40;

const STOPS: &[&str] = &["esc stop"];

/// Text and colour of a status item.
type Item = (String, Token);

pub(crate) fn draw_status(model: &UiModel, area: Rect, buffer: &mut Buffer, now: u64) {
    let separator = format!(" {} ", model.screen.glyphs.separator);
    let room = usize::from(area.width.saturating_sub(GUTTER));
    let wide = |items: &[Item]| items.iter().map(|(words, _)| text::width(words) + 3).sum::<usize>() > room + 3;
    let all = LEAVING.into_iter().map(|left| items(model, left, now));
    let items = all.reduce(|wider, next| if wide(&wider) { next } else { wider }).unwrap_or_default();
    let mut spans = Vec::new();
    for (at, (words, token)) in items.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(separator.clone(), model.screen.theme.style(Token::Faint)));
        }
        spans.push(Span::styled(words, model.screen.theme.style(token)));
    }
    buffer.set_line(area.x + GUTTER, area.y, &Line::from(spans), area.width.saturating_sub(GUTTER));
}

fn items(model: &UiModel, left: DropOrder, now: u64) -> Vec<Item> {
    let header = &model.info.header;
    let plain = |words: &str, from: DropOrder| (if left < from { words.to_owned() } else { String::new() }, Token::Muted);
    let name = match header.model.rsplit_once('/') {
        Some((_, name)) if left >= DropOrder::Provider => name,
        Some(_) | None => header.model.as_str(),
    };
    // Shows the effort in use, which may differ from the setting.
    let nearest = |effort| model.info.facts.as_ref().map_or(Some(effort), |facts| facts.nearest_effort(effort));
    let name = match header.effort.and_then(nearest) {
        Some(effort) if left < DropOrder::Effort => format!("{name} {}", effort.as_str()),
        Some(_) | None => name.to_owned(),
    };
    let all = fields(&model.options.status).into_iter().flat_map(|field| match field {
        StatusItem::Model if is_without_model(model) => vec![("no model".to_owned(), Token::Warn)],
        StatusItem::Model => vec![plain(&name, DropOrder::Model)],
        // Without a model, there is no context window.
        StatusItem::Context if is_without_model(model) || left >= DropOrder::Context => Vec::new(),
        StatusItem::Context => vec![context(model, left)],
        StatusItem::Cost => vec![cost(model, left)],
        StatusItem::Mode => states(model, left, now),
        // A sandbox that is off is shown even if the user removed the item.
        StatusItem::Sandbox if !header.is_unsandboxed() && left >= DropOrder::Held => Vec::new(),
        StatusItem::Sandbox if !header.is_unsandboxed() && !is_wanted(&model.options.status, field) => Vec::new(),
        StatusItem::Sandbox => {
            vec![(sandbox(&header.sandbox, left), if header.is_unsandboxed() { Token::Danger } else { Token::Muted })]
        }
        StatusItem::Branch => vec![plain(&branch(model), DropOrder::Branch)],
        StatusItem::Directory => vec![plain(&model.options.cwd, DropOrder::Cwd)],
        StatusItem::Command => {
            let line = model.info.worktree.line.as_deref().unwrap_or_default();
            vec![plain(&text::truncate(&text::clean(line), OWN_CELLS), DropOrder::Own)]
        }
    });
    let shown = all.filter(|(words, _)| !words.is_empty());
    shown.map(|(words, token)| (text::clean(&words).replace('\t', " ").replace('·', model.screen.glyphs.dot), token)).collect()
}

/// Returns whether loading is complete but no model is configured.
fn is_without_model(model: &UiModel) -> bool {
    model.info.header.model.is_empty() && matches!(model.info.model_access, Some(ModelAccess::NoKey { .. }))
}

/// Returns the approval mode, followed by every state that needs the user's attention.
fn states(model: &UiModel, left: DropOrder, now: u64) -> Vec<Item> {
    let mode = match &model.info.model_access {
        Some(_) => model.info.header.mode.as_str(),
        None if model.startup.is_session_chooser || model.options.sets_up => "",
        None => "starting",
    };
    let broken = if left < DropOrder::Long { "policy file invalid" } else { "policy invalid" };
    vec![
        (mode.to_owned(), if model.info.header.mode == Mode::Auto { Token::Danger } else { Token::Muted }),
        (if model.info.saving.is_saved() { String::new() } else { "unsaved".to_owned() }, Token::Danger),
        (if model.info.policy.broken.is_some() { broken.to_owned() } else { String::new() }, Token::Warn),
        ending(model, left, now),
        // The problem was announced when it began. It is repeated here if there is space.
        (model.servers.problem_text().filter(|_| left < DropOrder::Effort).unwrap_or_default(), Token::Warn),
    ]
}

/// Formats the branch and the number of changed files, such as `main ±3`, or `main ±3+` if there may be more.
fn branch(model: &UiModel) -> String {
    let branch = model.info.header.branch.as_deref().unwrap_or_default();
    match model.info.worktree.changed {
        Some(changed) if changed > 0 && !branch.is_empty() => {
            let more = if model.info.worktree.more { "+" } else { "" };
            format!("{branch} {}{changed}{more}", model.screen.glyphs.changed)
        }
        Some(_) | None => branch.to_owned(),
    }
}

/// Formats the cost of the session and, if there is a budget, the remaining amount. For free models, no cost is shown.
fn cost(model: &UiModel, left: DropOrder) -> Item {
    let price = model.info.facts.as_ref().map(|facts| facts.price);
    let is_free = matches!(price, Some(Some(price)) if price.input == 0.0 && price.output == 0.0);
    let is_here = ["local/", "demo/"].iter().any(|provider| model.info.header.model.starts_with(provider));
    let words = match (model.info.tally.cost_usd, price) {
        (Some(cost), _) if cost > 0.0 || !is_free => format_estimate(cost, model.info.tally.is_estimated),
        (Some(_), _) => String::new(),
        (None, Some(Some(_))) if !is_free => dollars(0.0),
        (None, Some(None)) if !is_here && model.info.tally.usage != Usage::default() => "$?".to_owned(),
        (None, _) => String::new(),
    };
    let budget = model.info.tally.remaining_budget();
    let near = budget.is_some_and(|(left, limit)| left <= limit * 0.2);
    let token = if near { Token::Warn } else { Token::Muted };
    match (words, budget) {
        (_, _) if left >= DropOrder::Words || (left >= DropOrder::Cost && !near) => (String::new(), token),
        (_, Some((rest, _))) if left >= DropOrder::Cost => (format!("{} left", dollars(rest)), token),
        (words, Some((left, _))) if !words.is_empty() => (format!("{words}, {} left", dollars(left)), token),
        (words, _) => (words, token),
    }
}

/// Formats the expiry of the policy once it is near. It is given as a time of day, which stays correct without
/// redrawing.
fn ending(model: &UiModel, left: DropOrder, now: u64) -> Item {
    let words = |end: jiff::Timestamp| {
        let form = if left < DropOrder::Long { "policy ends %H:%M UTC" } else { "ends %H:%M" };
        end.strftime(form).to_string()
    };
    match model.info.policy.upcoming_expiry(now) {
        Some((end, ExpiryStage::Near)) => (words(end), Token::Muted),
        Some((end, ExpiryStage::Soon)) => (words(end), Token::Warn),
        Some((_, ExpiryStage::Over)) => ("policy expired".to_owned(), Token::Danger),
        None => (String::new(), Token::Muted),
    }
}

/// Shortens `sandbox on: preview · net off` by omitting the text between the colon and the dot.
fn sandbox(words: &str, left: DropOrder) -> String {
    // The details of a weaker sandbox are dropped later.
    let leaves = if words.contains(": preview") { DropOrder::Extent } else { DropOrder::Effort };
    match words.split_once(':').zip(words.split_once(" · ")) {
        Some(((on, _), (_, network))) if left >= leaves => format!("{on} · {network}"),
        Some(_) | None => words.to_owned(),
    }
}

fn context(model: &UiModel, left: DropOrder) -> Item {
    let used = model.info.tally.context_tokens;
    let Some(limit) = model.context_limit() else {
        return (if used > 0 { format!("ctx {}", tokens(used)) } else { String::new() }, Token::Muted);
    };
    let percent = used * 100 / limit;
    let filled = ((used * BAR + limit / 2) / limit).min(BAR) as usize;
    let bar = model.screen.glyphs.gauge.full.repeat(filled) + &model.screen.glyphs.gauge.empty.repeat(BAR as usize - filled);
    let bar = if left < DropOrder::Bar { format!("{bar} ") } else { String::new() };
    let (token, way) = match percent {
        80.. if left < DropOrder::Words => (Token::Warn, " /compact"),
        80.. => (Token::Warn, ""),
        _ => (Token::Muted, ""),
    };
    if left < DropOrder::Tokens {
        (format!("ctx {bar}{percent}% {}/{}{way}", tokens(used), tokens(limit)), token)
    } else {
        (format!("{percent}%{way}"), token)
    }
}

pub(crate) fn draw_hints(model: &UiModel, area: Rect, buffer: &mut Buffer, now: u64) {
    let at = focus(model);
    // The hint to leave is dropped last.
    let hints = hints(model, now).into_iter().map(|hint| (hint.starts_with("esc"), model.keymap.hint(at, hint)));
    let mut hints: Vec<_> = hints.filter_map(|(leads_back, hint)| Some((leads_back, hint?))).collect();
    let style = model.screen.theme.style(Token::Faint);
    let keys = model.keymap.current_name(Focus::Composer, "f1");
    let right: Cow<'_, str> = match (model.dialogs.is_open() || model.layers.top().is_some(), model.composer.is_empty()) {
        (true, _) => "".into(),
        (false, empty) => match (model.composer.vim_mode(), empty) {
            (Some(mode), _) => mode.into(),
            (None, true) => "? keys".into(),
            (None, false) => format!("{keys} keys").into(),
        },
    };
    let room = usize::from(area.width.saturating_sub(GUTTER));
    let beside = room.saturating_sub(right.len() + 2);
    let separator = format!(" {} ", model.screen.glyphs.dot);
    let joined = |hints: &[(bool, Cow<'_, str>)]| hints.iter().map(|(_, hint)| &**hint).collect::<Vec<_>>().join(&separator);
    while text::width(&joined(&hints)) > beside
        && let Some(at) = hints.iter().rposition(|(leads_back, _)| !leads_back).filter(|at| *at > 0)
    {
        hints.remove(at);
    }
    // The main action and the hint to leave take precedence over the hint for help, but not over Vim's mode.
    let room = if model.composer.vim_mode().is_some() { beside } else { room };
    if text::width(&joined(&hints)) > room && hints.len() > 1 {
        hints.remove(usize::from(text::width(&hints[0].1) <= room));
    }
    let is_alone = text::width(&joined(&hints)) > beside;
    buffer.set_stringn(area.x + GUTTER, area.y, joined(&hints), area.width.into(), style);
    if !is_alone {
        buffer.set_stringn(area.right().saturating_sub(right.len() as u16), area.y, &right, right.len(), style);
    }
}

/// Returns the key hints that currently apply, most useful first.
fn hints(model: &UiModel, now: u64) -> Vec<&'static str> {
    let of_panel = |panel: &approval::Dialog| approval::hints(panel, panel.guard.choice_state(now), model.dialogs.len());
    let hints = match target(model) {
        InputTarget::LayerAboveDialogs | InputTarget::Layer => model.layers.top().map(|layer| layer.hints(model.surroundings())),
        InputTarget::Inbox => model.dialogs.inbox().map(|inbox| inbox.hints(now)),
        InputTarget::Dialog => model.dialogs.open().map(of_panel),
        InputTarget::Conversation => None,
    };
    hints.unwrap_or_else(|| conversation_hints(model, now))
}

/// Returns the key hints while the transcript or the draft has keyboard focus.
fn conversation_hints(model: &UiModel, now: u64) -> Vec<&'static str> {
    if let Some(browse) = &model.browse {
        return match (&browse.typing, browse.selects) {
            (Some(_), _) => vec!["enter done", "esc cancel", "type to search"],
            (None, true) => vec!["y copy", "j k extend", "esc cancel"],
            (None, false) if model.transcript.marks.query.is_some() => {
                vec!["n N next", "enter fold", "y copy", "esc close search"]
            }
            (None, false) if !model.dialogs.is_empty() => vec!["tab review", "j k move", "enter fold", "esc back"],
            (None, false) => vec!["j k move", "enter fold", "y copy", "/ search", "v select", "esc back"],
        };
    }
    if model.draft.search.is_some() {
        return vec!["enter select", "ctrl+r older", "esc back"];
    }
    if model.menu.is_open() {
        return match model.menu.typing() {
            Some(Typing::File { .. }) => vec!["enter tab insert", "up down move", "esc close"],
            Some(Typing::Command(_)) | None => vec!["enter run", "tab complete", "up down move", "esc close"],
        };
    }
    if !model.dialogs.is_empty() {
        return pending_hints(model);
    }
    composer_hints(model, now)
}

/// Returns the key hints while the composer has keyboard focus and a dialog is pending.
fn pending_hints(model: &UiModel) -> Vec<&'static str> {
    match (model.is_running(), model.composer.is_empty()) {
        (true, true) => vec!["tab review", "esc stop", "ctrl+o fold", "pgup scroll"],
        (true, false) => vec!["tab review", "enter queue", "esc stop"],
        (false, _) => vec!["tab review", "enter send", "ctrl+o fold", "pgup scroll"],
    }
}

/// Returns the key hints for when the composer has keyboard focus and no dialog is pending.
fn composer_hints(model: &UiModel, now: u64) -> Vec<&'static str> {
    let running = model.is_running();
    let new_line = if model.keys.kitty { "shift+enter new line" } else { "ctrl+j new line" };
    if running && !model.composer.is_empty() && model.task.activity != Activity::Stopping {
        let steer = if model.keys.kitty { "ctrl+enter steer" } else { "/steer send now" };
        return vec!["enter queue", steer, "esc stop", new_line];
    }
    if running && !model.task.waiting.is_empty() && model.task.activity != Activity::Stopping {
        return vec!["esc stop", "alt+up edit queued", "ctrl+o fold", "pgup scroll"];
    }
    match (running, model.composer.is_empty()) {
        (true, _) if model.task.activity == Activity::Stopping => vec!["enter queue", "ctrl+o fold", "pgup scroll"],
        (true, true) if commands::is_running_command(model) || commands::is_running_long_in_layer(model, now) => {
            vec!["esc stop", "ctrl+b background", "ctrl+o fold", "pgup scroll"]
        }
        (true, true) => vec!["esc stop", "ctrl+o fold", "pgup scroll"],
        (true, false) => vec!["enter queue", "esc stop", new_line],
        (false, true) => vec![enter_hint(model), new_line, "/ commands", "@ files", "ctrl+p palette"],
        (false, false) => vec![enter_hint(model), new_line, "ctrl+c clear"],
    }
}

/// Returns the hint for Enter, even if the row above already shows it.
fn enter_hint(model: &UiModel) -> &'static str {
    let replaces = model.composer.is_empty() && model.task.paused.as_ref().is_some_and(|paused| paused.wants_key);
    if replaces {
        "enter replace key"
    } else if model.toast.is_some() && model.keys.no_key_shown.is_some() {
        "enter add key"
    } else {
        "enter send"
    }
}

/// Returns the current activity as shown in the strip: its symbol, its text, and its key hints, longest first.
pub(crate) fn activity(model: &UiModel, now: u64) -> Option<(&'static str, String, &'static [&'static str])> {
    let g = &model.screen.glyphs;
    // The dialog or its row shows this state.
    if model.is_waiting_for_user() {
        return None;
    }
    let elsewhere = model.has_layer() && !model.dialogs.is_open();
    let keys = |words| if elsewhere { &[][..] } else { words };
    let elapsed = format!("{} s", now.saturating_sub(model.task.since) / 1000);
    let mut words = match &model.task.activity {
        Activity::Idle => return None,
        Activity::Thinking if model.transcript.is_thinking() => vec!["Thinking".to_owned()],
        Activity::Thinking => vec!["Waiting for the model".to_owned()],
        Activity::Answering => vec!["Responding".to_owned()],
        Activity::Calling { tool, bytes } => vec![calling(tool), format_count(*bytes as usize, "byte")],
        Activity::Running { calls } => running(calls),
        Activity::Retrying(waits) => {
            let right: &[_] = if model.composer.is_empty() {
                &["r retry, ctrl+l change model, esc stop", "r retry, esc stop", "r retry"]
            } else {
                STOPS
            };
            return Some((g.state.running, retry::status_text(waits, model.screen.size.width, now), keys(right)));
        }
        Activity::Compacting { messages } => {
            let right = &["esc stop, keep all", "esc stop"];
            let what = compaction::messages(*messages);
            let long = format!("Compacting {what} into a summary {} {elapsed}", g.dot);
            let full = format!("{}. {long}", compaction::window_usage(model));
            let few = format!("Compacting {what}");
            let short = format!("{few} {} {elapsed}", g.dot);
            // The fill level is dropped first, so that the hint for Escape is never truncated.
            let room = usize::from(model.screen.size.width.saturating_sub(GUTTER));
            let all = [(full, right[0]), (long.clone(), right[0]), (long, right[1]), (short, right[1])];
            let fits = all.into_iter().find(|(words, key)| text::width(words) + key.len() + 2 <= room);
            return Some((g.state.running, fits.map_or(few, |(words, _)| words), keys(right)));
        }
        Activity::Stopping => {
            let hangs = now.saturating_sub(model.task.since) >= KILL_MS;
            return Some((
                g.state.running,
                format!("Stopping {} {elapsed}", g.dot),
                keys(if hangs { &["esc kill"] } else { &[] }),
            ));
        }
    };
    words.push(elapsed);
    // Several dialogs have their own row, and so does a closed dialog.
    if model.dialogs.is_open() && model.dialogs.len() == 1 && model.dialogs.approvals() > 0 {
        words.push("1 waiting for you".to_owned());
    }
    let usage = model.task.usage;
    if usage.input_tokens + usage.output_tokens > 0 {
        let (sent, got) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
        words.push(format!("{} {sent} {} {got} tokens", g.usage.sent, g.usage.received));
    }
    Some((g.state.running, words.join(&format!(" {} ", g.dot)), keys(STOPS)))
}

/// Describes a tool call whose arguments the model is still writing.
fn calling(tool: &str) -> String {
    match tool {
        "EditFile" => "Writing an edit".to_owned(),
        "WriteFile" => "Writing a file".to_owned(),
        "RunCommand" => "Writing a command".to_owned(),
        "ReadFile" | "ListDirectory" => "Choosing what to read".to_owned(),
        "Grep" | "Glob" => "Writing a search".to_owned(),
        other => format!("Preparing `{other}`"),
    }
}

fn running(calls: &[(CallId, String)]) -> Vec<String> {
    let newest = calls.last().map(|(_, summary)| match summary.strip_prefix("$ ") {
        Some(command) => format!("Running {command}"),
        None => summary.clone(),
    });
    let others = (calls.len() > 1).then(|| format!("{} more", calls.len() - 1));
    newest.into_iter().chain(others).collect()
}

/// Returns the title of the terminal window, such as `aye · greeter · ▲ 1 waiting`.
pub(crate) fn title(model: &UiModel) -> String {
    let dot = model.screen.glyphs.dot;
    let directory = model.options.cwd.rsplit('/').next().unwrap_or_default();
    let waiting = match model.dialogs.len() {
        0 => String::new(),
        count => format!(" {dot} {} {count} waiting", model.screen.glyphs.state.waits),
    };
    format!("aye {dot} {}{waiting}", text::reveal(directory).replace(['\t', '\n'], " "))
}
