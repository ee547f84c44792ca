//! Plans that the user has edited. Their actions are checked again, but the expected states of their paths do not
//! change.

use super::draft::{CallDraft, CallEffect};
use super::error::invalid;
use super::executable_files::mark_by_actions;
use super::redaction::hide_in_proposal;
use super::settings::ToolSettings;
use super::shell::amendment as command_amended;
use super::shell::command_run::PlannedCommand;
use super::text::running;
use super::tool::{AnyTool, Payload};
use super::toolset::Toolset;
use crate::ports::{Plan, PlanAmendments};
use crate::protocol::{Amendment, TaskPlan, ToolError};

/// Returns which parts of a planned call the user may edit.
pub(super) fn offered_amendments(tool: &dyn AnyTool, payload: &Payload, settings: &ToolSettings) -> PlanAmendments {
    let (mut offer, texts) = tool.amendable(payload, settings);
    if let Some(work) = payload.downcast_ref::<PlannedCommand>() {
        command_amended::add_amendments(work, &mut offer, tool.name(), settings);
    }
    PlanAmendments { offer, texts, ..PlanAmendments::default() }
}

pub(super) fn amend_plan(plan: Plan, amendment: &Amendment, tools: &Toolset) -> Result<Plan, ToolError> {
    let tool = tools.resolve(&plan.call.tool_name)?;
    let settings = running(&plan.tool_name, &plan.call.tool_name, tools.settings());
    let earlier = plan.amends.told.clone();
    let (mut plan, told) = match plan.payload.downcast::<PlannedCommand>() {
        Ok(work) => command_amended::amend_run(Plan { payload: Box::new(()), ..plan }, *work, amendment, &settings)?,
        Err(payload) => {
            let (draft, told) = tool.amend(payload, amendment, &settings)?;
            (with_draft(Plan::empty(plan.call, plan.tool_name, Box::new(())), draft, &*tool, &settings), told)
        }
    };
    // Running a command in the background does not change the command.
    plan.amends.offer.edited = *amendment != Amendment::Background;
    let told = settings.redactor.redact(&told).text.into_owned();
    // A replaced command line makes earlier amendments obsolete.
    let earlier = earlier.filter(|_| !amendment.is_another_line());
    plan.amends.told = Some(earlier.map_or(told.clone(), |earlier| format!("{earlier}\n{told}")));
    Ok(plan)
}

/// Replaces the proposed content of files with the content that hooks have written. `texts` contains each file's
/// displayed path and new content.
pub(super) fn amend_by_hooks(plan: Plan, texts: Vec<(String, String)>, tools: &Toolset) -> Result<Plan, ToolError> {
    let tool = tools.resolve(&plan.call.tool_name)?;
    let settings = running(&plan.tool_name, &plan.call.tool_name, tools.settings());
    let mut plan = plan;
    for (path, text) in texts {
        let file = plan.amends.offer.files.iter().position(|known| *known == path);
        let file = file.ok_or_else(|| invalid(format!("`{path}` cannot be changed apart from the call")))?;
        let (doubts, empty) = (std::mem::take(&mut plan.doubts), Plan::empty(plan.call.clone(), plan.tool_name, Box::new(())));
        let (draft, _) = tool.amend(plan.payload, &Amendment::File { file, text }, &settings)?;
        plan = Plan { doubts, ..with_draft(empty, draft, &*tool, &settings) };
    }
    Ok(plan)
}

/// Builds the plan for a draft that has been edited.
fn with_draft(plan: Plan, draft: CallDraft<Payload>, tool: &dyn AnyTool, settings: &ToolSettings) -> Plan {
    Plan {
        summary: settings.redactor.redact(&draft.summary).text.into_owned(),
        proposal: draft
            .proposal
            .map(|proposal| hide_in_proposal(&settings.redactor, mark_by_actions(proposal, &draft.actions, settings))),
        actions: draft.actions,
        changes: draft.effect != CallEffect::Reads,
        task_plan: draft.work.downcast_ref::<TaskPlan>().map(|plan| Box::new(plan.clone().into())),
        places: tool.planned_changes(&draft.work),
        amends: offered_amendments(tool, &draft.work, settings),
        payload: draft.work,
        ..plan
    }
}
