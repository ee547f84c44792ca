//! Commands that the user has edited: a different line, only the first few commands of it, or no network access.

use super::command_run::{AccessRestrictions, PlannedCommand};
use super::git_notes::remove_settings_note;
use super::preview;
use super::run_command::redraft;
use crate::ports::{Doubts, LayerRun, Plan};
use crate::protocol::{Action, Amendable, Amendment, IN_BACKGROUND, OUTSIDE_SANDBOX, PreviewOffer, SandboxAccess, ToolError};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::background::first_line;
use crate::tools::draft::CallEffect;
use crate::tools::error::invalid;
use crate::tools::redaction::hide_in_proposal;
use crate::tools::settings::ToolSettings;

/// Name of the tool whose command line can be edited.
const LINES: &str = "RunCommand";

pub(in crate::tools) fn add_amendments(work: &PlannedCommand, offer: &mut Amendable, tool_name: &str, settings: &ToolSettings) {
    if work.narrow.unsandboxed {
        *offer = Amendable::default();
        return;
    }
    offer.unsandboxed = tool_name == LINES && settings.command.sandbox.tier.is_enforcing() && !work.background;
    let plain = tool_name == LINES && work.opens.is_empty();
    offer.command = plain.then(|| work.line.clone());
    let opens_network = work.opens.iter().any(SandboxAccess::is_network);
    let rest = work.opens.iter().any(|opened| !opened.is_network());
    let open = settings.command.sandbox.network == NetworkAccess::Open && work.opens.is_empty();
    offer.offline = settings.command.sandbox.tier.is_enforcing() && !work.narrow.no_network && (open || (opens_network && rest));
}

/// Applies an amendment to a command. `plan` must not have a payload.
pub(in crate::tools) fn amend_run(
    plan: Plan,
    work: PlannedCommand,
    amendment: &Amendment,
    settings: &ToolSettings,
) -> Result<(Plan, String), ToolError> {
    match amendment {
        Amendment::Command { line } => {
            let told = format!("[The user edited this command before it ran: {}]", to_one_line(line, settings));
            amend_line(plan, &work, line, settings).map(|plan| (plan, told))
        }
        Amendment::First { line } => {
            if !work.line.starts_with(line.as_str()) {
                return Err(invalid("the text is not the start of the command"));
            }
            let told = format!("[The user allowed only the first part of this command: {}]", to_one_line(line, settings));
            amend_line(plan, &work, line, settings).map(|plan| (plan, told))
        }
        Amendment::Offline => Ok(amend_offline(plan, work, settings)),
        Amendment::Unsandboxed if plan.effects.is_some() || plan.tool_name != LINES => {
            Err(invalid("this call cannot run outside the sandbox"))
        }
        Amendment::Unsandboxed => Ok(amend_unsandboxed(plan, work, settings)),
        Amendment::Background if plan.effects.is_some() || plan.tool_name != LINES => {
            Err(invalid("this call cannot run in the background"))
        }
        Amendment::Background => Ok(amend_background(plan, work, settings)),
        Amendment::Hunks { .. } | Amendment::File { .. } | Amendment::Effects { .. } => {
            Err(invalid("this call runs a command; it has no hunks or files to edit"))
        }
    }
}

/// Returns the redacted command on a single line, even if it consists of several lines.
fn to_one_line(line: &str, settings: &ToolSettings) -> String {
    let line = settings.redactor.redact(line).text;
    if line.contains(char::is_control) { serde_json::Value::from(line.as_ref()).to_string() } else { line.into_owned() }
}

fn amend_line(plan: Plan, work: &PlannedCommand, line: &str, settings: &ToolSettings) -> Result<Plan, ToolError> {
    if plan.tool_name != LINES || plan.effects.is_some() {
        return Err(invalid(format!("the command of {} cannot be edited", plan.tool_name)));
    }
    let draft = redraft(work, line, settings)?;
    let CallEffect::Runs { timeout_seconds, files } = draft.effect else {
        return Err(invalid("the edited line is not a command"));
    };
    let mut amends = plan.amends;
    add_amendments(&draft.work, &mut amends.offer, LINES, settings);
    Ok(Plan {
        summary: settings.redactor.redact(&draft.summary).text.into_owned(),
        actions: draft.actions,
        proposal: draft.proposal.map(|proposal| hide_in_proposal(&settings.redactor, proposal)),
        runs: files,
        preview: preview::offer(&draft.work, settings),
        opens: Vec::new(),
        timeout_seconds,
        sandbox: draft.work.narrow.describe(settings),
        amends,
        payload: Box::new(draft.work),
        ..plan
    })
}

fn amend_offline(plan: Plan, mut work: PlannedCommand, settings: &ToolSettings) -> (Plan, String) {
    work.opens.retain(|opened| !opened.is_network());
    work.narrow.no_network = true;
    let mut actions = plan.actions;
    actions.retain(|action| !matches!(action, Action::Fetch { .. }));
    let (opens, sandbox) = (work.opens.clone(), work.narrow.describe(settings));
    let plan = Plan { actions, opens, sandbox, payload: Box::new(work), ..plan };
    (plan, "[The user allowed this without network access.]".to_owned())
}

/// Plans a command that runs in the background. Because its effects could not be shown when it ends, it runs directly
/// in the workspace.
fn amend_background(plan: Plan, mut work: PlannedCommand, settings: &ToolSettings) -> (Plan, String) {
    (work.background, work.timeout_seconds) = (true, 0);
    let mut amends = plan.amends;
    add_amendments(&work, &mut amends.offer, LINES, settings);
    let mut proposal = plan.proposal;
    if let Some(proposal) = &mut proposal {
        proposal.background = true;
    }
    let told = "[The user chose to run this in the background from the start.]".to_owned();
    let plan = Plan {
        proposal,
        summary: format!("{}{IN_BACKGROUND}", plan.summary),
        preview: preview::offer(&work, settings),
        layer: preview::layer(&work, settings),
        timeout_seconds: 0,
        amends,
        payload: Box::new(work),
        ..plan
    };
    (plan, told)
}

fn amend_unsandboxed(plan: Plan, mut work: PlannedCommand, settings: &ToolSettings) -> (Plan, String) {
    work.opens.clear();
    work.narrow = AccessRestrictions { unsandboxed: true, ..AccessRestrictions::default() };
    let mut actions = plan.actions;
    actions.retain(|action| matches!(action, Action::Exec { .. }));
    let mut amends = plan.amends;
    add_amendments(&work, &mut amends.offer, LINES, settings);
    let mut proposal = plan.proposal;
    if let Some(proposal) = &mut proposal {
        proposal.unsandboxed = true;
        remove_settings_note(&mut proposal.notes);
    }
    let told = "[The user allowed this to run outside the sandbox.]".to_owned();
    let plan = Plan {
        summary: format!("{}{OUTSIDE_SANDBOX}", settings.redactor.redact(&format!("$ {}", first_line(&work.line))).text),
        proposal,
        actions,
        opens: Vec::new(),
        preview: PreviewOffer::Impossible { reason: "the command runs outside the sandbox".to_owned() },
        layer: LayerRun::None,
        doubts: Doubts::default(),
        sandbox: work.narrow.describe(settings),
        amends,
        payload: Box::new(work),
        ..plan
    };
    (plan, told)
}
